// The drawing: a bar for each launch, as high as the bytes it moves (a log scale), and below it the
// arena, where each buffer is a rectangle over the launches it lives through.

const RIBBON = 20, BARS = 130, GAP = 26, TOP = RIBBON + 8;
const SVG = "http://www.w3.org/2000/svg";
const LEAST_ARENA = 240, MOST_ARENA = 420, ROW = 4, LABELLED = 15;

function svg(parent, tag, attributes = {}, text = null) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== null) made.textContent = text;
  parent.append(made);
  return made;
}

const color = (family) => `--color: var(--${family})`;

// Heights of bars: bytes from 256 up, by their logarithm.
function barScale(launches) {
  const most = Math.max(...launches.map((launch) => launch.bytes), 512);
  const span = Math.log2(most / 256);
  const height = (bytes) => Math.max(2, (BARS * Math.log2(Math.max(bytes, 257) / 256)) / span);
  const ticks = [2 ** 10, 2 ** 20, 2 ** 30].filter((bytes) => bytes > 256 && bytes < most);
  return { height, ticks };
}

// Where offsets lie: not to scale, for one buffer may be a hundred times another. Each stretch
// between two neighbouring ends of slots is as high as its bytes' logarithm.
function arenaScale(lives) {
  const ends = [...new Set(lives.flatMap((one) => [one.offset, one.offset + one.bytes]))];
  ends.sort((a, b) => a - b);
  const heights = ends.slice(1).map((end, i) => ROW + 3 * Math.log2(1 + (end - ends[i]) / 1024));
  const total = heights.reduce((sum, h) => sum + h, 0);
  const stretch = Math.min(Math.max(total, LEAST_ARENA), MOST_ARENA) / Math.max(total, 1);
  const places = new Map([[ends[0], 0]]);
  let y = 0;
  heights.forEach((h, i) => { y += h * stretch; places.set(ends[i + 1], y); });
  return { at: (offset) => places.get(offset), height: y, ends };
}

function drawAxis(bars, arena) {
  const axis = document.getElementById("axis");
  axis.replaceChildren();
  const base = TOP + BARS, top = base + GAP;
  axis.setAttribute("width", 78);
  axis.setAttribute("height", top + arena.height + 12);
  const label = (y, text) => svg(axis, "text", { x: 72, y: y + 4, "text-anchor": "end" }, text);
  for (const tick of bars.ticks) label(base - bars.height(tick), size(tick).replace(".0", ""));
  label(base, "bytes");
  svg(axis, "text", { x: 72, y: top - 7, "text-anchor": "end" }, "offset");
  let free = -Infinity;
  for (const end of arena.ends) {
    if (arena.at(end) - free < 15) continue;
    free = arena.at(end);
    label(top + free, size(end).replace(".0", ""));
  }
}

function drawChart(state) {
  const { launches, lives, layers } = state.model;
  const bars = barScale(launches), arena = arenaScale(lives);
  drawAxis(bars, arena);
  const chart = document.getElementById("chart");
  chart.replaceChildren();
  const unit = state.unit, base = TOP + BARS, top = base + GAP;
  chart.classList.toggle("labelled", unit >= LABELLED);
  chart.setAttribute("width", Math.ceil(unit * launches.length) + 1);
  chart.setAttribute("height", top + arena.height + 12);
  layers.forEach((group, i) => drawBand(chart, group, i, unit, top + arena.height + 12));
  for (const tick of bars.ticks) {
    const y = base - bars.height(tick);
    svg(chart, "line", { class: "rule", x1: 0, x2: unit * launches.length, y1: y, y2: y });
  }
  state.bars = launches.map((launch) => drawLaunch(chart, launch, unit, base, bars));
  state.rects = lives.map((one) => drawLife(chart, one, unit, top, arena));
}

function drawBand(chart, group, i, unit, height) {
  const x = unit * group.launches[0].index, width = unit * group.launches.length;
  if (i % 2) svg(chart, "rect", { class: "band", x, y: 0, width, height });
  const full = groupName(group), short = group.layer === null ? "" : String(group.layer);
  const text = width > 6.8 * full.length + 6 ? full : width > 6.8 * short.length + 2 ? short : "";
  if (text) svg(chart, "text", { x: x + width / 2, y: 14, "text-anchor": "middle" }, text);
}

function drawLaunch(chart, launch, unit, base, bars) {
  const x = unit * launch.index, height = bars.height(launch.bytes);
  const g = svg(chart, "g", { class: "launch", style: color(launch.family), "data-launch": launch.index });
  svg(g, "rect", { class: "bar", x: x + unit * 0.08, y: base - height, width: unit * 0.84, height });
  svg(g, "rect", { class: "hit", x, y: TOP - 4, width: unit, height: BARS + 8 });
  if (unit >= LABELLED) {
    const label = { transform: `translate(${x + unit / 2 + 4} ${base - 6}) rotate(-90)`, class: "name-of" };
    svg(g, "text", label, launch.entry);
  }
  return g;
}

function drawLife(chart, one, unit, top, arena) {
  const x = unit * one.first, width = unit * (one.last - one.first + 1);
  const y = top + arena.at(one.offset), height = arena.at(one.offset + one.bytes) - arena.at(one.offset);
  const g = svg(chart, "g", { class: "life", style: color(one.family), "data-life": one.index });
  svg(g, "rect", { x, y, width, height: Math.max(height, 2) });
  const name = one.piece === "f32" || one.piece === "i32" ? one.tensor : `${one.tensor} ${one.piece}`;
  if (width > 6.8 * name.length + 8 && height >= 12) {
    svg(g, "text", { x: x + 4, y: y + Math.min(height / 2 + 4, 14), class: "name-of" }, name);
  }
  return g;
}
