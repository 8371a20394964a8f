// The facts of one form, indexed for drawing and searching; and how amounts are written.

const FACTS = JSON.parse(document.getElementById("facts").textContent);

function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit + 1 < units.length) { bytes /= 1024; unit += 1; }
  return `${unit ? bytes.toFixed(1) : bytes} ${units[unit]}`;
}

function duration(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  return seconds >= 1e-3 ? `${(seconds * 1e3).toFixed(2)} ms` : `${(seconds * 1e6).toFixed(1)} µs`;
}

function flops(operations) {
  const [unit, per] = operations >= 1e12 ? ["TFLOP", 1e12] : operations >= 1e9 ? ["GFLOP", 1e9] : ["MFLOP", 1e6];
  return `${(operations / per).toFixed(1)} ${unit}`;
}

function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : noun.endsWith("ch") ? "es" : "s"}`;
}

function shape(sizes) { return `[${sizes.map((n) => n.toLocaleString("en")).join(", ")}]`; }

// Operands and lives arrive as arrays, to keep the page small.
function operand([name, what, form, sizes, bytes, write]) {
  return { name, what, form, sizes, bytes, write: Boolean(write) };
}

function life([tensor, piece, sizes, offset, bytes, first, last, readers, writers], index) {
  return { index, tensor, piece, sizes, offset, bytes, first, last, readers, writers };
}

function model(name) {
  const form = FACTS.forms[name];
  const missed = new Map();
  for (const [op, rule, reason, why] of form.missed) {
    missed.set(op, [...(missed.get(op) || []), { rule, reason, why }]);
  }
  const launches = form.steps.map((step, index) => {
    const moved = step.moved.map(operand);
    const bytes = moved.reduce((sum, one) => sum + one.bytes, 0);
    const misses = step.ops.flatMap((op) => missed.get(op) || []);
    return { ...step, index, moved, bytes, misses, reads: [], writes: [] };
  });
  const lives = form.lives.map(life);
  for (const one of lives) {
    one.family = launches[one.first].family;
    for (const at of one.readers) launches[at].reads.push(one);
    for (const at of one.writers) launches[at].writes.push(one);
  }
  for (const launch of launches) launch.text = haystack(launch, form.ops);
  return { name, form, launches, lives, layers: byLayer(launches) };
}

function haystack(launch, ops) {
  const words = [launch.entry, launch.kind, ...launch.rules, ...launch.moved.map((one) => one.name)];
  for (const op of launch.ops) words.push(ops[op]);
  return words.join("\n").toLowerCase();
}

function byLayer(launches) {
  const groups = [];
  for (const launch of launches) {
    const last = groups[groups.length - 1];
    if (last && last.layer === launch.layer) last.launches.push(launch);
    else groups.push({ layer: launch.layer, launches: [launch] });
  }
  for (const group of groups) group.bytes = group.launches.reduce((sum, one) => sum + one.bytes, 0);
  return groups;
}

function groupName(group) {
  if (group.layer !== null) return `layer ${group.layer}`;
  return group.launches[0].index === 0 ? "first" : "last";
}
