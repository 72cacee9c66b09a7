// Runs scenarios of the Model Context Protocol's conformance suite against the server, except those that need the
// suite's own test tools, resources and prompts. The suite sends no API key, so it calls a proxy that adds one. The
// proxy also replaces its own port with the server's port in Host and Origin. Command demonstration runs this program.
// The exit status is 1 if a scenario fails.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const scenarios = [
  "server-initialize", "ping", "logging-set-level", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection",
];

const target = new URL("/mcp?toolsets=all", process.env.BASE);
const proxy = createServer((from, to) => {
  const headers = { ...from.headers, "x-api-key": process.env.KEY };
  for (const name of ["host", "origin"]) {
    headers[name] &&= headers[name].replace(`:${proxy.address().port}`, `:${target.port}`);
  }
  const forward = request(target, { method: from.method, headers }, (answer) => {
    to.writeHead(answer.statusCode, answer.headers);
    answer.pipe(to);
  });
  forward.on("error", () => to.destroy());
  from.pipe(forward);
});
await new Promise((resolve) => proxy.listen(0, "127.0.0.1", resolve));
const url = `http://localhost:${proxy.address().port}/mcp`;

const suite = join(dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/package.json")), "dist", "index.js");
const results = await mkdtemp(join(tmpdir(), "conformance-"));
let failed = 0;
for (const scenario of scenarios) {
  const run = spawn(process.execPath, [suite, "server", "--url", url, "--scenario", scenario, "--output-dir", results], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  run.stdout.on("data", (text) => (said += text));
  run.stderr.on("data", (text) => (said += text));
  const code = await new Promise((resolve) => run.on("close", resolve));
  if (code !== 0) {
    failed++;
    console.log(`FAIL ${scenario}\n${said}`);
  }
}
await rm(results, { recursive: true });
proxy.close();
console.log(failed ? `${failed} conformance scenarios failed` : `the MCP conformance suite's ${scenarios.length} scenarios without fixtures pass`);
process.exit(failed ? 1 : 0);
