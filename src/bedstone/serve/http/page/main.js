"use strict";

const MOST_RATES = 120;
const EVERY = 1000;

const at = (id) => document.getElementById(id);
const turns = [];
const rates = [];
let before = null;
let going = null;

function say(role, text) {
  const item = document.createElement("li");
  item.className = role;
  item.textContent = text;
  at("log").append(item);
  item.scrollIntoView({ block: "end" });
  return item;
}

function setState(text, bad = false) {
  at("state").textContent = text;
  at("state").classList.toggle("bad", bad);
}

/* Shows deltas in an item, thoughts before what is said. Once a frame: however fast an answer comes
   and however slow the machine is, the page still hears a click. */
function writer(item) {
  const spans = { thought: document.createElement("span"), said: document.createElement("span") };
  const texts = { thought: "", said: "" };
  spans.thought.className = "thought";
  item.append(spans.thought, spans.said);
  let frame = 0;
  function show() {
    cancelAnimationFrame(frame);
    frame = 0;
    const log = at("log");
    const follow = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
    for (const [name, span] of Object.entries(spans)) span.textContent = texts[name];
    if (follow) log.scrollTop = log.scrollHeight;
  }
  function take(delta) {
    texts.thought += delta.reasoning_content ?? "";
    texts.said += delta.content ?? "";
    frame ||= requestAnimationFrame(show);
  }
  return { texts, take, show };
}

function asked() {
  const body = { messages: turns };
  if (at("temperature").value !== "") body.temperature = Number(at("temperature").value);
  if (at("most").value !== "") body.max_tokens = Number(at("most").value);
  return body;
}

async function send(text) {
  say("user", text);
  turns.push({ role: "user", content: text });
  const item = say("assistant", "");
  const { texts, take, show } = writer(item);
  going = new AbortController();
  at("send").disabled = true;
  at("stop").disabled = false;
  let first = 0;
  try {
    const usage = await chat(asked(), going.signal, (delta) => {
      first ||= performance.now();
      take(delta);
    });
    const seconds = (performance.now() - first) / 1000;
    if (usage && usage.completion_tokens > 1) {
      at("own").textContent = Math.round((usage.completion_tokens - 1) / Math.max(seconds, 1e-3));
    }
  } catch (error) {
    if (error.name !== "AbortError") {
      item.classList.add("fault");
      item.append(`${texts.said ? "\n" : ""}${error.message}`);
    }
  } finally {
    show();
    going = null;
    at("send").disabled = false;
    at("stop").disabled = true;
  }
  if (texts.said) turns.push({ role: "assistant", content: texts.said });
  else turns.pop();
}

function draw(stats) {
  at("model").textContent = stats.model;
  if (before) {
    const seconds = Math.max(stats.seconds - before.seconds, 1e-3);
    rates.push((stats.made_tokens - before.made_tokens) / seconds);
    if (rates.length > MOST_RATES) rates.shift();
    at("rate").textContent = Math.round(rates[rates.length - 1]);
  }
  before = stats;
  at("running").textContent = stats.running;
  at("waiting").textContent = stats.waiting;
  at("pages").textContent = `${stats.pages_held} of ${stats.pages_total}`;
  at("hits").textContent = Math.round((100 * stats.cached_tokens) / Math.max(1, stats.prompt_tokens));
  drawRates(at("rates"), rates);
  drawBatch(at("batch"), stats.batch, stats.context);
  drawCache(at("cache"), stats);
}

async function watch() {
  if (!document.hidden) {
    try {
      const response = await fetch("/stats", { headers: access() });
      if (response.status === 401) at("access").open = true;
      if (!response.ok) throw new Error(await fault(response));
      draw(await response.json());
      setState("ready");
    } catch (error) {
      setState(error instanceof TypeError ? "the server cannot be reached" : error.message, true);
    }
  }
  setTimeout(watch, EVERY);
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = at("text").value.trim();
  if (!text || going) return;
  at("text").value = "";
  send(text);
});
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    at("ask").requestSubmit();
  }
});
at("unlock").addEventListener("submit", (event) => event.preventDefault());
at("stop").addEventListener("click", () => going?.abort());
at("clear").addEventListener("click", () => {
  going?.abort();
  turns.length = 0;
  at("log").replaceChildren();
  at("text").focus();
});
watch();
