// The page's events, and its start.

function tip(event) {
  const target = event.target.closest?.("#chart [data-launch], #chart [data-life]");
  if (target !== state.pointed) hint(target);
  $("tip").hidden = !target;
  if (!target) return;
  const text = target.dataset.launch ? launchTip(state.model.launches[target.dataset.launch])
    : lifeTip(state.model.lives[target.dataset.life]);
  $("tip").replaceChildren(node("b", {}, text[0]), text[1]);
  const { offsetWidth: width, offsetHeight: height } = $("tip");
  const x = event.clientX + 14 + width > innerWidth ? event.clientX - width - 14 : event.clientX + 14;
  const y = event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16;
  $("tip").style.transform = `translate(${Math.max(4, x)}px, ${Math.max(4, y)}px)`;
}

// Shows what the launch under the pointer touches, or which launches touch the buffer under it.
function hint(target) {
  for (const old of document.querySelectorAll(".hinted")) old.classList.remove("hinted");
  state.pointed = target;
  if (!target) return;
  const { launch, life: one } = target.dataset, { launches, lives } = state.model;
  const touched = launch === undefined
    ? [...lives[one].readers, ...lives[one].writers].map((at) => state.bars[at])
    : [...launches[launch].reads, ...launches[launch].writes].map(({ index }) => state.rects[index]);
  for (const shape of touched) shape.classList.add("hinted");
}

function launchTip(launch) {
  const line = (one) => `${one.write ? "writes" : "reads"} ${one.name} ${shape(one.sizes)} ${one.form}, ${size(one.bytes)}`;
  const where = launch.layer === null ? "" : `, layer ${launch.layer}`;
  const shown = launch.moved.slice(0, 9).map(line);
  if (launch.moved.length > 9) shown.push(`and ${launch.moved.length - 9} more`);
  return [`${launch.index} · ${launch.entry}`,
    [`${counted(launch.ops.length, "op")}${where}, moves ${size(launch.bytes)}`, ...shown].join("\n")];
}

function lifeTip(one) {
  return [one.tensor, `${shape(one.sizes)} ${one.piece}, ${size(one.bytes)}\nat offset ${one.offset.toLocaleString("en")}`
    + `\nlaunches ${one.first} to ${one.last}`];
}

function press(event) {
  const target = event.target.closest("[data-launch], [data-life], [data-query], [data-form]");
  if (!target) return;
  const { launch, life: one, query, form } = target.dataset;
  if (form !== undefined) showForm(form);
  else if (query !== undefined) search($("search").value === query ? "" : query);
  else if (launch !== undefined) choose("launch", Number(launch));
  else choose("life", Number(one));
}

function walk(event) {
  const { launches, layers } = state.model, chosen = state.chosen;
  const from = chosen === null ? -1 : chosen.kind === "launch" ? chosen.index : state.model.lives[chosen.index].first;
  const layer = layers.findIndex((group) => group.launches.some((launch) => launch.index === from));
  const to = {
    ArrowRight: () => from + 1,
    ArrowLeft: () => Math.max(from, 1) - 1,
    ArrowDown: () => layers[Math.min(layer + 1, layers.length - 1)].launches[0].index,
    ArrowUp: () => layers[Math.max(layer - 1, 0)].launches[0].index,
    Home: () => 0,
    End: () => launches.length - 1,
  }[event.key];
  if (!to) return false;
  choose("launch", Math.min(to(), launches.length - 1));
  if (event.target.closest("#list")) $("list").querySelector('[aria-current="true"]').focus();
  return true;
}

function keydown(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { search(""); choose(null, null); return; }
  if (event.target === $("search") || event.target === $("zoom")) return;
  const chosen = state.chosen, keep = chosen?.kind === "launch" ? chosen.index + 0.5 : null;
  const level = Number($("zoom").value);
  if (event.key === "/") $("search").focus();
  else if (event.key === "+" || event.key === "=") zoomTo(Math.min(level + 15, 100), keep);
  else if (event.key === "-") zoomTo(Math.max(level - 15, 0), keep);
  else if (!event.target.closest("#chart, #list, #details") || !walk(event)) return;
  event.preventDefault();
}

function walkTabs(event) {
  const tabs = [...$("forms").children], at = tabs.indexOf(event.target);
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by || at < 0) return;
  const tab = tabs[(at + by + tabs.length) % tabs.length];
  showForm(tab.dataset.form);
  tab.focus();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", `Switch to ${theme === "dark" ? "light" : "dark"} colours`);
}

function start() {
  $("model").textContent = FACTS.model;
  const held = FACTS.held.length ? ` · held back: ${FACTS.held.join(", ")}` : "";
  $("about").textContent = `${FACTS.architecture} · ${FACTS.numerics} · context ${FACTS.context.toLocaleString("en")}${held}`;
  $("forms").append(...Object.keys(FACTS.forms).map((form) =>
    node("button", { type: "button", role: "tab", "data-form": form }, form)));
  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  $("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  $("finder").addEventListener("submit", (event) => { event.preventDefault(); walkFound(1); });
  $("search").addEventListener("input", () => search($("search").value));
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.shiftKey) { event.preventDefault(); walkFound(-1); }
  });
  $("zoom").addEventListener("input", () => zoomTo(Number($("zoom").value)));
  $("fit").addEventListener("click", () => zoomTo(0));
  $("forms").addEventListener("keydown", walkTabs);
  document.addEventListener("click", press);
  document.addEventListener("keydown", keydown);
  document.addEventListener("pointermove", tip);
  addEventListener("resize", () => zoomTo(Number($("zoom").value)));
  showForm(Object.keys(FACTS.forms)[0]);
}

start();
