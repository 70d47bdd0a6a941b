// The official OpenAI client for Node: where all is well, and what it makes of our refusals.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import OpenAI from "openai";
import { start } from "./world.mjs";

const messages = [{ role: "user", content: "Say something." }];
const text = Array.from({ length: 12 }, (_, index) => `w${index} `).join("");
const schema = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};
const tools = [{ type: "function", function: { name: "weather", parameters: schema, strict: true } }];
let world;
let client;
const make = (more = {}) =>
  new OpenAI({ baseURL: world.v1, apiKey: "sk-caller", timeout: 20_000, maxRetries: 0, ...more });
const chat = (model, using = client, body = {}, options = {}) =>
  using.chat.completions.create({ model, messages, ...body }, options);

before(async () => {
  world = await start();
  client = make();
});
after(() => world.end());

async function read(stream) {
  let said = "";
  for await (const chunk of stream) said += chunk.choices[0]?.delta.content ?? "";
  return said;
}

async function fails(kind, asked) {
  const error = await asked.then(
    () => assert.fail("it was answered"),
    (error) => error,
  );
  assert.equal(error.constructor, kind);
  return error;
}

test("chat, whole and streamed", async () => {
  const done = await chat("chat");
  assert.equal(done.choices[0].message.content, text);
  assert.ok(done._request_id);
  assert.equal(await read(await chat("chat", client, { stream: true })), text);
  const runner = client.chat.completions.stream({ model: "chat", messages });
  assert.equal(await runner.finalContent(), text);
});

test("tools and structured output", async () => {
  const done = await chat("chat", client, { tools });
  assert.equal(done.choices[0].finish_reason, "tool_calls");
  assert.deepEqual(JSON.parse(done.choices[0].message.tool_calls[0].function.arguments), { city: "w0", days: 1 });
  const runner = client.chat.completions.stream({ model: "chat", messages, tools });
  const called = await runner.finalFunctionToolCall();
  assert.deepEqual([called.name, JSON.parse(called.arguments)], ["weather", { city: "w0", days: 1 }]);
  const response_format = { type: "json_schema", json_schema: { name: "weather", strict: true, schema } };
  const parsed = await chat("chat", client, { response_format });
  assert.deepEqual(JSON.parse(parsed.choices[0].message.content), { city: "w0", days: 1 });
});

test("responses, whole and streamed", async () => {
  const done = await client.responses.create({ model: "chat", input: "Say something." });
  assert.equal(done.output_text, text);
  const runner = client.responses.stream({ model: "chat", input: "Say something." });
  assert.equal((await runner.finalResponse()).output_text, text);
});

test("embeddings come in base64, and out as numbers", async () => {
  const done = await client.embeddings.create({ model: "chat", input: ["one", "two"] });
  assert.deepEqual(done.data.map((item) => [...item.embedding]), Array(2).fill([0.25, -0.5, 0.125]));
});

test("models", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes("chat"));
});

test("fifty at once", async () => {
  const asked = Array.from({ length: 50 }, async (_, number) =>
    read(await chat("chat", client, { stream: true, max_completion_tokens: 1 + (number % 12) })),
  );
  const lengths = (await Promise.all(asked)).map((said) => said.trim().split(" ").length);
  assert.deepEqual(lengths, Array.from({ length: 50 }, (_, number) => 1 + (number % 12)));
});

test("a stream that is given up ends at the provider too", async () => {
  const stream = await chat("chat", client, { stream: true }, { headers: { "x-fault": "stall:3" } });
  for await (const chunk of stream) if (chunk.choices[0].delta.content === "w2 ") break;
  const seen = await world.seen((seen) => seen.tokens === 3 && seen.ended !== "complete");
  assert.equal(seen.ended, "disconnected");
});

test("429 says when to come back", async () => {
  await chat("one");
  const error = await fails(OpenAI.RateLimitError, chat("one"));
  assert.deepEqual([error.status, error.code, error.type], [429, "rate_limited", "rate_limit_error"]);
  const wait = Number(error.headers.get("retry-after"));
  assert.ok(wait >= 1 && wait <= 60, `${wait}`);
  assert.ok(error.requestID);
});

test("402 is not retried", async () => {
  const retrying = make({ maxRetries: 2 });
  const spend = async () => {
    for (let at = 0; at < 20; at += 1) await chat("dear", retrying, { max_completion_tokens: 12 });
  };
  const error = await fails(OpenAI.APIError, spend());
  assert.deepEqual([error.status, error.code], [402, "budget_exhausted"]);
});

test("503 ends with the call that fills the upstream", async () => {
  const held = await chat("narrow", client, { stream: true }, { headers: { "x-fault": "stall:1" } });
  const error = await fails(OpenAI.InternalServerError, chat("narrow"));
  assert.deepEqual([error.status, error.code], [503, "full"]);
  held.controller.abort();
  const done = await chat("narrow", make({ maxRetries: 3 }));
  assert.equal(done.choices[0].message.content, text);
});

test("503 of an open breaker, 504 when the time is over", async () => {
  const failing = { headers: { "x-fault": "500" } };
  let error = await fails(OpenAI.InternalServerError, chat("broken", client, {}, failing));
  assert.equal(error.status, 500);
  // There is no other target: one call at a time finds out whether it is back.
  const probe = await chat("broken", client, { stream: true }, { headers: { "x-fault": "stall:1" } });
  error = await fails(OpenAI.InternalServerError, chat("broken"));
  assert.deepEqual([error.status, error.code], [503, "open"]);
  probe.controller.abort();
  error = await fails(OpenAI.InternalServerError, chat("late"));
  assert.deepEqual([error.status, error.code], [504, "timeout_total"]);
});

test("the client's own limit", async () => {
  await fails(OpenAI.APIConnectionTimeoutError, chat("late", make({ timeout: 500 })));
});

test("a stream that breaks off is no whole answer", async () => {
  const stream = await chat("chat", client, { stream: true }, { headers: { "x-fault": "cut:3" } });
  await assert.rejects(read(stream));
});
