// The page's state, and what changes it: the form, the zoom, the pointer, the keys, the search.

const state = { model: null, unit: 1, chosen: null, matches: [], at: -1, bars: [], rects: [], pointed: null, foundLives: new Set() };
const $ = (id) => document.getElementById(id);
const MOST_UNIT = 46;

function fitUnit() { return Math.max(0.5, ($("scroller").clientWidth - 2) / state.model.launches.length); }

function zoomTo(percent, keep = null) {
  const fit = fitUnit(), most = Math.max(MOST_UNIT, fit);
  const scroller = $("scroller"), middle = scroller.clientWidth / 2;
  const anchor = keep ?? (scroller.scrollLeft + middle) / state.unit;
  $("zoom").value = percent;
  state.unit = fit * (most / fit) ** (percent / 100);
  drawChart(state);
  scroller.scrollLeft = anchor * state.unit - middle;
  mark();
}

function showForm(name) {
  state.model = model(name);
  state.chosen = null;
  for (const tab of $("forms").children) {
    tab.setAttribute("aria-selected", String(tab.dataset.form === name));
    tab.tabIndex = tab.dataset.form === name ? 0 : -1;
  }
  showNumbers(state.model);
  showChips(state.model);
  showList(state.model);
  showHelp();
  find($("search").value);
  zoomTo(0);
}

// --- what is selected ---------------------------------------------------------------------------

function choose(kind, index, { scroll = true } = {}) {
  state.chosen = index === null ? null : { kind, index };
  if (index === null) showHelp();
  else if (kind === "launch") showLaunch(state.model.launches[index], state.model);
  else showLife(state.model.lives[index], state.model);
  mark();
  if (index !== null && scroll) reveal(kind === "launch" ? index : state.model.lives[index].first);
}

function reveal(index) {
  const scroller = $("scroller"), x = index * state.unit;
  if (x < scroller.scrollLeft || x + state.unit > scroller.scrollLeft + scroller.clientWidth) {
    scroller.scrollLeft = x - scroller.clientWidth / 2;
  }
  const row = $("list").querySelector(`[data-launch="${index}"]`);
  row.closest("details").open = true;
  const list = $("list"), top = row.offsetTop;
  const above = top - list.scrollTop;
  if (above < 40 || above > Math.min(list.clientHeight - 40, 240)) list.scrollTop = top - 80;
}

// Marks what is selected, what it touches, and what the search found.
function mark() {
  const { launches, lives } = state.model, chosen = state.chosen;
  const launch = chosen?.kind === "launch" ? launches[chosen.index] : null;
  const one = chosen?.kind === "life" ? lives[chosen.index] : null;
  const searched = $("search").value.trim() !== "";
  const found = new Set(state.matches);
  const users = one ? new Set([...one.readers, ...one.writers]) : null;
  state.bars.forEach((bar, i) => {
    bar.classList.toggle("chosen", launch?.index === i);
    bar.classList.toggle("dim", users ? !users.has(i) : searched && !found.has(i));
  });
  const reads = new Set(launch?.reads), writes = new Set(launch?.writes);
  state.rects.forEach((rect, i) => {
    const touched = reads.has(lives[i]) || writes.has(lives[i]);
    rect.classList.toggle("chosen", one?.index === i);
    rect.classList.toggle("reads", reads.has(lives[i]));
    rect.classList.toggle("writes", writes.has(lives[i]));
    rect.classList.toggle("dim", launch ? !touched : one ? one.index !== i : searched && !state.foundLives.has(i));
  });
  for (const row of $("list").querySelectorAll("li button")) {
    const i = Number(row.dataset.launch);
    row.setAttribute("aria-current", String(launch?.index === i));
    row.classList.toggle("dim", searched && !found.has(i));
  }
}

// --- searching ----------------------------------------------------------------------------------

const FIELDS = {
  kind: (launch, word) => launch.kind === word,
  rule: (launch, word) => launch.rules.includes(word),
  missed: (launch, word) => launch.misses.some((miss) => miss.rule === word),
  layer: (launch, word) => String(launch.layer) === word,
};

function find(text) {
  const query = text.trim().toLowerCase();
  const [field, word] = query.split(":", 2);
  const test = FIELDS[field] && word ? (launch) => FIELDS[field](launch, word) : (launch) => launch.text.includes(query);
  const { launches, lives } = state.model;
  state.matches = query ? launches.filter(test).map((launch) => launch.index) : [];
  const named = query ? lives.filter((one) => one.tensor.toLowerCase().includes(query)) : [];
  const touched = state.matches.flatMap((at) => [...launches[at].reads, ...launches[at].writes]);
  state.foundLives = new Set((named.length ? named : touched).map((one) => one.index));
  state.at = -1;
  $("found").textContent = query
    ? `${counted(state.matches.length, "launch")}, ${counted(state.foundLives.size, "buffer")}` : "";
  for (const chip of document.querySelectorAll(".chip")) {
    chip.setAttribute("aria-pressed", String(chip.dataset.query === query));
  }
}

function search(text) {
  $("search").value = text;
  find(text);
  mark();
}

function walkFound(by) {
  if (!state.matches.length) return;
  state.at = (state.at + by + state.matches.length) % state.matches.length;
  choose("launch", state.matches[state.at]);
}
