// The example gateway's page in a real browser: an upstream goes out and comes back, and the page shows both in time.
// Usage: node page.mjs GATEWAY_BINARY CHROMIUM [SCREENSHOTS_DIRECTORY]
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [binary, browserPath, pictures] = process.argv.slice(2);
/// How long the page may take to show what the gateway knows.
const IN_TIME = 2_000;

/// An upstream that can be switched off.
async function provider() {
  const state = { out: false };
  const answer = JSON.stringify({
    id: "c", object: "chat.completion", model: "m",
    choices: [{ index: 0, message: { role: "assistant", content: "Hello." }, finish_reason: "stop" }],
    usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
  });
  const server = http.createServer((request, response) => {
    request.resume().on("end", () => {
      response.writeHead(state.out ? 503 : 200, { "content-type": "application/json" });
      response.end(state.out ? "{}" : answer);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { state, server, url: `http://127.0.0.1:${server.address().port}/v1` };
}

const config = (first, second) => `
listen = "127.0.0.1:0"
[upstreams.first]
base_url = "${first}"
max_concurrent = 15
[upstreams.second]
base_url = "${second}"
[[routes]]
model = "chat"
targets = [{ upstream = "first", model = "m" }, { upstream = "second", model = "m" }]
[retry]
base = "10ms"
[breaker]
open_for = "2s"
open_at_most = "2s"
[alerts]
enabled = false
[[budgets]]
limit = "5.00"
window = "day"
[prices.m]
input_per_million = "1"
output_per_million = "2"
`;

/// Starts the gateway; its address, once it says so.
async function start(file) {
  const child = spawn(binary, ["--config", file, "--quiet"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const found = /^page\s+(http:\S+)/.exec(line);
    if (found) return { child, address: found[1] };
  }
  throw new Error("the gateway ended before it listened");
}

async function until(what, limit, isSo) {
  const began = performance.now();
  for (;;) {
    if (await isSo()) return performance.now() - began;
    assert(performance.now() - began < limit, what);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function look(address, first, page) {
  const breaker = async () => {
    const stats = await (await fetch(address + "stats")).json();
    return stats.upstreams.find((one) => one.name === "first").breaker;
  };
  const says = async (text) => (await page.textContent("#state")).includes(text);
  const row = () => page.textContent("#targets tr:first-child");

  await until("the page says that all is well", 20_000, () => says("all well"));
  await until("the page shows calls", 20_000, async () => (await page.textContent("#since")).match(/[1-9]\d* calls/));
  assert.match(await row(), /first \/ m.*closed/);
  assert.match(await page.textContent("#budgets"), /day.*of \$?5/);

  first.out = true;
  await until("the breaker opens", 20_000, async () => (await breaker()) === "Open");
  const shown = await until("the page shows the outage", IN_TIME, () => says("out: first"));
  await until("the table shows it too", IN_TIME, async () => /open/.test(await row()));
  if (pictures) await page.screenshot({ path: join(pictures, "outage.png"), fullPage: true });

  first.out = false;
  await until("the breaker closes", 30_000, async () => (await breaker()) === "Closed");
  const back = await until("the page shows the recovery", IN_TIME, () => says("all well"));
  console.log(`browser: the outage was on the page after ${shown.toFixed(0)} ms, the recovery after ${back.toFixed(0)} ms`);
}

const folder = await mkdtemp(join(tmpdir(), "seawall-page-"));
const providers = [await provider(), await provider()];
let gateway, browser, asking = true;
try {
  const file = join(folder, "gateway.toml");
  await writeFile(file, config(...providers.map((one) => one.url)));
  gateway = await start(file);
  const ask = async () => {
    while (asking) {
      const body = JSON.stringify({ model: "chat", max_tokens: 10, messages: [{ role: "user", content: "Hello" }] });
      const request = { method: "POST", headers: { "content-type": "application/json" }, body };
      const response = await fetch(gateway.address + "v1/chat/completions", request);
      assert.equal(response.status, 200, await response.text());
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  };
  const callers = Promise.all([ask(), ask()]);
  callers.catch(() => {});
  browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  const page = await browser.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (message) => message.type() === "error" && problems.push(message.text()));
  const elsewhere = [];
  page.on("request", (request) => request.url().startsWith(gateway.address) || request.url().startsWith("data:") || elsewhere.push(request.url()));
  await page.goto(gateway.address);
  await look(gateway.address, providers[0].state, page);
  if (pictures) {
    for (const [name, colorScheme, width] of [["light", "light", 1280], ["dark", "dark", 1280], ["phone", "dark", 390]]) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
    }
  }
  await page.setViewportSize({ width: 390, height: 844 });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert(wide <= 390, `on a phone it is ${wide} wide`);
  assert.deepEqual(problems, [], "no error in the page");
  assert.deepEqual(elsewhere, [], "no request elsewhere");
  asking = false;
  await callers;
} finally {
  asking = false;
  await browser?.close();
  gateway?.child.kill("SIGTERM");
  for (const one of providers) one.server.close(), one.server.closeAllConnections();
  await rm(folder, { recursive: true, force: true });
}
