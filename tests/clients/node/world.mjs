// The example gateway in front of a simulated provider, both on loopback.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const CONFIG = new URL("../gateway.toml", import.meta.url);

/** One of the examples, and the lines that it prints. */
class Process {
  #waiting = [];
  #lines = [];

  constructor(name, ...args) {
    this.child = spawn(join(process.env.EXAMPLES, name), args, { stdio: ["ignore", "pipe", "inherit"] });
    this.gone = new Promise((resolve) => this.child.once("exit", resolve));
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      this.#lines.push(line);
      this.#waiting = this.#waiting.filter(({ isIt, resolve }) => !(isIt(line) && (resolve(line), true)));
    });
  }

  /** A line of which this can be said, be it there or still to come. */
  line(isIt) {
    const there = this.#lines.find(isIt);
    return there ? Promise.resolve(there) : new Promise((resolve) => this.#waiting.push({ isIt, resolve }));
  }

  async end() {
    this.child.kill("SIGTERM");
    const kill = setTimeout(() => this.child.kill("SIGKILL"), 5_000);
    await this.gone;
    clearTimeout(kill);
  }
}

export async function start() {
  const provider = new Process("simulated_provider", "--key", "sk-upstream", "--pace", "2", "--for", "300");
  const url = (await provider.line((line) => line.startsWith("url "))).split(" ")[1];
  const folder = mkdtempSync(join(tmpdir(), "clients-"));
  const file = join(folder, "gateway.toml");
  writeFileSync(file, readFileSync(CONFIG, "utf8").replaceAll("PROVIDER", url));
  const args = ["--config", file, "--listen", "127.0.0.1:0", "--for", "300s", "--drain", "1s", "--quiet"];
  const gateway = new Process("gateway", ...args);
  const line = await gateway.line((line) => line.includes("OPENAI_BASE_URL="));
  return {
    v1: line.split("OPENAI_BASE_URL=")[1],
    /** What the provider says of a request that is over. */
    seen: async (isIt) =>
      JSON.parse(await provider.line((line) => line.startsWith("{") && isIt(JSON.parse(line)))),
    end: async () => {
      await gateway.end();
      await provider.end();
      rmSync(folder, { recursive: true });
    },
  };
}
