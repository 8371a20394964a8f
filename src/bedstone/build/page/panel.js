// What stands around the drawing: numbers, chips, the list by layer, and what is selected.

function node(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

function dot(family) { return node("span", { class: "dot", style: color(family) }); }

function showNumbers({ form }) {
  const { traffic } = form, rate = FACTS.bandwidth;
  const even = new Set(form.layers).size === 1 ? "" : " at most";
  const numbers = [
    ["launches", form.launches.toLocaleString("en"), `${counted(form.layers.length, "layer")} of ${form.per_layer}${even}, ${form.outside} outside`],
    ["moved a step", size(form.bytes), `weights ${size(traffic.weights)}, cache ${size(traffic.cache)}, activations ${size(traffic.activations)}`],
    ["roofline", duration(form.roofline_seconds), `${(rate.bytes_per_second / 1e9).toFixed(1)} GB/s ${rate.measured ? "measured" : "given"}, position ${form.at.toLocaleString("en")}`],
    ["arena", size(form.arena.bytes), `sharing saves ${size(form.arena.saved)}`],
    ["rows", form.rows.toLocaleString("en"), `${flops(form.operations)} a step`],
  ];
  document.getElementById("numbers").replaceChildren(
    ...numbers.map(([name, big, small]) =>
      node("div", {}, node("dt", {}, name), node("dd", { class: "big" }, big), node("dd", {}, small))),
  );
}

function showChips({ form, launches }) {
  const families = new Map(launches.map((launch) => [launch.kind, launch.family]));
  const chip = (query, text, hint, mark = null) =>
    node("button", { type: "button", class: "chip", "data-query": query, title: hint, "aria-pressed": "false" }, mark, text);
  const rows = {
    launches: Object.entries(form.census).map(([kind, count]) =>
      chip(`kind:${kind}`, `${kind} ${count}`, `the ${counted(count, "launch")} of this kind`, dot(families.get(kind)))),
    fused: Object.entries(form.fusions).map(([rule, count]) =>
      chip(`rule:${rule}`, `${rule} ${count}`, `where this rule fired`)),
    missed: form.misses.map(({ rule, reason, why, count }) =>
      chip(`missed:${rule}`, `${rule} ${count} · ${reason}`, why)),
  };
  const shown = Object.entries(rows).filter(([, chips]) => chips.length);
  document.getElementById("chips").replaceChildren(
    ...shown.map(([name, chips]) => node("p", {}, node("b", {}, name), ...chips)),
  );
}

function showList({ layers, form }) {
  const list = document.getElementById("list");
  list.replaceChildren(...layers.map((group, i) => {
    const head = node("summary", {}, node("b", {}, groupName(group)),
      node("span", {}, counted(group.launches.length, "launch")), node("span", {}, size(group.bytes)));
    const body = node("ol", {}, ...group.launches.map((launch) => node("li", {}, row(launch, form.ops))));
    return node("details", i < 2 ? { open: "" } : {}, head, body);
  }));
}

function row(launch, ops) {
  const makes = launch.ops.map((op) => ops[op].split(" = ")[0]).join(" · ") || "the quantized form of a result";
  return node("button", { type: "button", "data-launch": launch.index }, dot(launch.family),
    node("span", { class: "number" }, String(launch.index)), node("span", { class: "mono" }, launch.entry),
    node("span", { class: "mono makes" }, makes), node("span", { class: "bytes" }, size(launch.bytes)));
}

function details(...children) { document.getElementById("details").replaceChildren(...children.filter((child) => child !== null)); }

function showHelp() {
  const key = (name) => node("kbd", {}, name);
  details(node("h3", {}, "Nothing selected"),
    node("p", { class: "quiet" }, "Point at a launch or a buffer for its shapes and bytes; click to keep it here. ",
      key("/"), " searches, ", key("Enter"), " walks what was found, ", key("←"), " ", key("→"), " walk launches, ",
      key("↑"), " ", key("↓"), " layers, ", key("+"), " ", key("−"), " zoom, ", key("Esc"), " lets go."),
    node("p", { class: "quiet" }, "A bar's height is the bytes its launch moves, on a log scale. A buffer's rectangle ",
      "spans the launches it lives through; offsets are in order but not to scale. Its colour is that of the launch that makes it."));
}

function showLaunch(launch, { form }) {
  const where = launch.layer === null ? "outside the layers" : `layer ${launch.layer}`;
  details(
    node("h3", {}, dot(launch.family), `${launch.index} · `, node("code", {}, launch.entry)),
    node("p", { class: "quiet" }, `${launch.kind}, ${where}, ${launch.source || "no source"} · moves ${size(launch.bytes)}`,
      launch.operations ? ` · ${flops(launch.operations)}` : ""),
    section("Graph ops", launch.ops.length
      ? node("ol", {}, ...launch.ops.map((op) => node("li", {}, node("code", {}, form.ops[op]))))
      : node("p", { class: "quiet" }, "none: made by the lane")),
    launch.rules.length ? section("Joined by", node("p", {}, launch.rules.join(", "))) : null,
    launch.misses.length ? section("Missed", node("ol", {}, ...launch.misses.map(({ rule, reason, why }) =>
      node("li", {}, `${rule}: ${reason}, ${why}`)))) : null,
    section("Operands", operands(launch)),
  );
}

function section(title, body) { return node("div", {}, node("h4", {}, title), body); }

function operands(launch) {
  const touched = [...launch.reads, ...launch.writes];
  const name = (one) => {
    const home = touched.find((other) => other.tensor === one.name);
    return home ? node("button", { type: "button", class: "link mono", "data-life": home.index }, one.name)
      : node("span", { class: "mono" }, one.name);
  };
  const cells = (one) => node("tr", {},
    node("td", { class: one.write ? "write" : "read" }, one.write ? "writes" : "reads"), node("td", {}, name(one)),
    node("td", {}, shape(one.sizes)), node("td", {}, one.form), node("td", { class: "amount" }, size(one.bytes)));
  const head = ["", "tensor", "shape", "form"].map((text) => node("th", {}, text));
  return node("table", {}, node("tr", {}, ...head, node("th", { class: "amount" }, "bytes")), ...launch.moved.map(cells));
}

function showLife(one, { launches }) {
  const users = (indices) => node("ol", {}, ...indices.map((at) => node("li", {},
    node("button", { type: "button", class: "link mono", "data-launch": at }, `${at} ${launches[at].entry}`))));
  details(
    node("h3", {}, dot(one.family), node("code", {}, one.tensor)),
    node("p", { class: "quiet" }, `${shape(one.sizes)} ${one.piece} · ${size(one.bytes)} at offset ${one.offset.toLocaleString("en")}`,
      ` · lives through launches ${one.first} to ${one.last}`),
    section("Written by", users(one.writers)),
    section("Read by", one.readers.length ? users(one.readers) : node("p", { class: "quiet" }, "the caller")),
  );
}
