"use strict";

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 240;
const MOST_ROWS = 16;

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function bar(kind, x, y, width, height) {
  return shape("rect", { class: kind, x, y, width: Math.max(0, width), height });
}

/* Rates over time, oldest first. */
function drawRates(svg, rates) {
  const most = Math.max(1, ...rates);
  const step = WIDTH / Math.max(1, rates.length - 1);
  const points = rates.map((rate, at) => `${at * step},${56 - (48 * rate) / most}`);
  svg.replaceChildren(
    shape("polyline", { points: points.join(" ") }),
    shape("text", { x: 4, y: 10 }, `${Math.round(most)}`),
  );
}

/* A bar for each request: of its context, what the prompt and the answer hold. */
function drawBatch(svg, batch, context) {
  const shown = batch.slice(0, MOST_ROWS);
  const height = Math.min(12, 92 / Math.max(1, shown.length));
  const bars = shown.flatMap(({ held, made }, at) => {
    const scale = WIDTH / context;
    const y = 2 + at * height;
    return [
      bar("free", 0, y, WIDTH, height - 1),
      bar("fed", 0, y, (held - made) * scale, height - 1),
      bar("made", (held - made) * scale, y, made * scale, height - 1),
    ];
  });
  const more = batch.length - shown.length;
  if (more > 0) bars.push(shape("text", { x: WIDTH - 4, y: 92, "text-anchor": "end" }, `and ${more} more`));
  svg.replaceChildren(...bars);
}

/* Pages of the cache: held by requests, kept for prompts, free. */
function drawCache(svg, { pages_total: total, pages_held: held, pages_cached: kept }) {
  const scale = total ? WIDTH / total : 0;
  svg.replaceChildren(
    bar("free", 0, 0, WIDTH, 20),
    bar("made", 0, 0, held * scale, 20),
    bar("kept", held * scale, 0, kept * scale, 20),
  );
}
