"use strict";

const access = () => {
  const key = document.getElementById("key").value.trim();
  return key ? { authorization: `Bearer ${key}` } : {};
};

/* What a response that is no success says. */
async function fault(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return `the server answered ${response.status}`;
  }
}

/* The JSON of each event of a stream. */
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      if (!block.startsWith("data: ")) continue;
      const data = block.slice(6);
      if (data === "[DONE]") return;
      yield JSON.parse(data);
    }
  }
}

/* Ask for an answer; `told` takes each delta. The counts at its end. */
async function chat(body, signal, told) {
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", ...access() },
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  if (!response.ok) throw new Error(await fault(response));
  let usage = null;
  for await (const event of events(response)) {
    if (event.error) throw new Error(event.error.message);
    usage = event.usage ?? usage;
    for (const choice of event.choices) told(choice.delta);
  }
  return usage;
}
