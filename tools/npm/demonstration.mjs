import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

// demonstration serves one of a program from a folder of its own, and reads its address and
// a key from its greeting.
export async function demonstration(program) {
  const dir = await mkdtemp(join(tmpdir(), "partnerapi-check-"));
  // What the environment says of another service, as its database, is not for this one.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PARTNERAPI_")));
  const child = spawn(program, ["serve", "--demo", "--release", "latest", "--listen", "127.0.0.1:0", "--data-dir", dir],
    { env, stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "close");
  ended.catch(() => {}); // where it cannot be started: stop tells
  let said = "";
  child.stderr.on("data", (text) => (said = (said + text).slice(-10_000)));
  const stop = async () => {
    child.kill();
    await ended.catch(() => {});
    await rm(dir, { recursive: true, force: true });
  };
  const seen = {};
  for await (const line of createInterface({ input: child.stdout })) {
    seen.base ??= line.match(/ serves v2 .* at (http:\S+)$/)?.[1];
    seen.key ??= line.match(/^ {2}(\S+) +all clients; read, write$/)?.[1];
    if (seen.base && seen.key) {
      child.stdout.resume(); // what else it says, nobody reads
      return { ...seen, stop };
    }
  }
  await stop();
  throw new Error(`${program} serve did not begin:\n${said}`);
}
