// Runs the configurations in the Markdown of the guide "Connect your tools" with their programs: Benthos, mito (which
// runs the program of Elastic's CEL input), Node-RED and Telegraf, and adnanh/webhook if it is installed. Each tool
// runs twice. The first run loads all rows. The second run loads the rows that have changed since, and again the newest
// row of each list. One client disappears after it was listed and is back for the second run, another has no Dark Web
// Monitoring, lists have several pages, and one request returns 429. Command demonstration runs this program. The exit
// status is 1 if a check fails.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as listener } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parse, parseAllDocuments } from "yaml";

const { BASE: base, KEY: key } = process.env;
// reader is the key of the tools: what they read leaves the rate limit of the other checks' key alone.
const reader = "pk_demo_readonly";
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const guide = readFileSync(here("../../../docs/guide/connect-tools.md"), "utf8");
const bin = (name) => here("../../out/bin/" + name);
const folder = mkdtempSync(join(tmpdir(), "connect-"));

let failed = 0;
function check(what, holds, seen) {
  if (!holds) {
    failed++;
    console.log(`FAIL ${what}\n     ${JSON.stringify(seen)?.slice(0, 800)}`);
  }
}

// sample returns a block of the guide: the nth of a language below a heading, for the service behind the proxy.
function sample(heading, language, n = 0) {
  const section = guide.split(/^## /m).find((text) => text.startsWith(heading));
  const blocks = [...section.matchAll(/^```(\S+)\n(.*?)^```$/gms)].filter(([, its]) => its === language);
  if (!blocks[n]) throw new Error(`the guide has no block ${n} of ${language} for ${heading}`);
  return blocks[n][2].replaceAll("http://127.0.0.1:8080", proxy.url).replaceAll("pk_demo_all", reader);
}

// api calls the service itself. It waits where it has to, as its key is also that of the programs before.
async function api(method, path, body) {
  for (;;) {
    const response = await fetch(base + path, { method, headers: { "X-API-Key": key }, body: body && JSON.stringify(body) });
    if (response.status === 429) {
      await pause(1000 * Number(response.headers.get("retry-after")));
      continue;
    }
    return { status: response.status, body: response.status === 204 ? null : await response.json() };
  }
}

// all returns the rows of a list. A list that the client does not have is empty.
async function all(path) {
  const rows = [];
  for (let cursor = ""; cursor !== null;) {
    const { status, body } = await api("GET", `${path}${path.includes("?") ? "&" : "?"}limit=500&cursor=${cursor}`);
    if (status === 403) return rows;
    if (status !== 200) throw new Error(`GET ${path}: ${status}`);
    rows.push(...body.data);
    cursor = body.page.next_cursor;
  }
  return rows;
}

// The proxy is the service to the tools. It makes pages small, hides a client that was archived after it was listed, by
// asking for one that does not exist, and refuses one request of a run with 429.
const proxy = { seen: [], gone: null, refuse: false, refused: null, pageSize: 40, url: "" };

async function forward(request, response) {
  const url = new URL(request.url, base);
  const answer = async () => {
    check(`${url.pathname} has the key`, request.headers["x-api-key"] === reader, request.headers);
    check("a page has 500 rows", url.searchParams.get("limit") === "500", request.url);
    if (proxy.refuse && url.searchParams.get("updated_since") !== null) {
      proxy.refuse = false;
      proxy.refused = { url: request.url, at: performance.now() };
      response.setHeader("Retry-After", "1");
      return [429, { error: { code: "rate_limited", message: "too many requests", request_id: "req_1" } }];
    }
    if (proxy.refused?.url === request.url && !proxy.refused.waited) {
      proxy.refused.waited = performance.now() - proxy.refused.at;
    }
    url.searchParams.set("limit", proxy.pageSize);
    const path = url.pathname.replace(`/v2/clients/${proxy.gone}/`, "/v2/clients/cli_00000000000000000000000000/");
    const { status, body } = await api("GET", path + url.search);
    return [status, body];
  };
  const [code, body] = await answer();
  proxy.seen.push({ path: url.pathname, code });
  response.writeHead(code, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}

const server = createServer((request, response) => {
  forward(request, response).catch((error) => {
    check("the proxy forwards", false, String(error));
    response.writeHead(500).end("{}");
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
proxy.url = `http://127.0.0.1:${server.address().port}`;

// run runs a program to its end and returns what it printed.
function run(program, args, dir) {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: dir, stdio: ["ignore", "pipe", "pipe"] });
    let out = "", log = "";
    child.stdout.on("data", (text) => (out += text));
    child.stderr.on("data", (text) => (log += text));
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve(out) : reject(new Error(`${program}: ${code}\n${(out + log).slice(-3000)}`))));
  });
}

// linesOf reads and removes a file of lines of JSON.
function linesOf(file) {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
  rmSync(file);
  return lines;
}

// Each tool returns a function that runs it once, and returns the rows that it stored, by list.
const tools = {
  Benthos(dir) {
    mkdirSync(join(dir, "positions"));
    writeFileSync(join(dir, "partner.yaml"), sample("Benthos", "yaml"));
    return async () => {
      await run(bin("benthos"), ["run", "partner.yaml"], dir);
      return { users: linesOf(join(dir, "users.jsonl")), exposures: linesOf(join(dir, "exposures.jsonl")) };
    };
  },

  // Filebeat adds the URL to the state, keeps the cursor of what it published, and repeats refused requests itself.
  "Elastic's CEL input"(dir) {
    const [input] = parse(sample("Elastic", "yaml"))["filebeat.inputs"];
    writeFileSync(join(dir, "src.cel"), input.program);
    let cursor = {};
    return async () => {
      writeFileSync(join(dir, "state.json"), JSON.stringify({ ...input.state, url: input["resource.url"], ...cursor }));
      const out = await run(bin("mito"), ["-data", "state.json", "src.cel"], dir);
      const states = out.trim().split(/(?<=^\})\n/m).map((text) => JSON.parse(text));
      cursor = { cursor: states.at(-1).cursor };
      const events = states.flatMap((state) => state.events);
      const of = (list) => events.filter((event) => event.list === list).map((event) => event.row);
      return { users: of("users"), exposures: of("exposures") };
    };
  },

  "Node-RED"(dir) {
    writeFileSync(join(dir, "flow.mjs"), sample("Node-RED", "js"));
    writeFileSync(join(dir, "flow.json"), execFileSync("node", ["flow.mjs"], { cwd: dir }));
    const settings = `uiPort: 0, uiHost: "127.0.0.1", httpAdminRoot: false, telemetry: { enabled: false }, ${sample("Node-RED", "js", 1)}`;
    writeFileSync(join(dir, "settings.js"), `module.exports = { ${settings} };`);
    return async () => {
      await untilSaid("all lists were read", here("../node_modules/node-red/red.js"), ["-u", ".", "-s", "settings.js", "flow.json"], dir);
      const lines = linesOf(join(dir, "partner.jsonl"));
      const of = (list) => lines.filter((line) => line.list === list).map((line) => line.row);
      return { users: of("users"), exposures: of("exposures") };
    };
  },
};

// untilSaid runs a program of Node until it printed a text, and stops it.
async function untilSaid(text, program, args, dir) {
  const child = spawn("node", [program, ...args], { cwd: dir, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const said = [];
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(line);
    if (/\[error\]/.test(line)) check("a flow has no error", false, line);
    if (line.includes(text) || /\[error\]/.test(line)) child.kill("SIGTERM");
  }
  await ended;
  if (!said.some((line) => line.includes(text))) throw new Error(`${program} ended:\n${said.join("\n")}`);
}

const identity = { users: (row) => row.id, exposures: (row) => `${row.user_id} ${row.breach_name}` };
const paths = { users: "users", exposures: "dark-web/exposures" };

// snapshot reads the rows of all clients, by list and identity.
async function snapshot(clients) {
  const rows = { users: new Map(), exposures: new Map() };
  for (const { id } of clients) {
    for (const list of ["users", "exposures"]) {
      for (const row of await all(`/v2/clients/${id}/${paths[list]}`)) rows[list].set(identity[list](row), { ...row, client: id });
    }
  }
  return rows;
}

// compare holds the rows that a tool stored to those that it should have stored, each once.
function compare(what, list, got, wanted) {
  const keys = got.map(identity[list]);
  const missing = [...wanted].filter((id) => !keys.includes(id)), surplus = keys.filter((id, i) => !wanted.has(id) || keys.indexOf(id) !== i);
  check(`${what}: ${wanted.size} ${list}`, missing.length + surplus.length === 0, { got: keys.length, missing, surplus });
}

// again returns the identities that a second run has to store: rows that changed, and the newest of each list, or all
// of a list whose rows do not show when they changed.
function again(list, before, after) {
  const newest = new Map();
  for (const { client, updated_at } of before.values()) {
    if (updated_at > (newest.get(client) ?? "")) newest.set(client, updated_at);
  }
  const wanted = [...after].filter(([, { client, updated_at }]) => !updated_at || updated_at >= (newest.get(client) ?? ""));
  return new Set(wanted.map(([id]) => id));
}

// change changes two users and adds one, each of another client, waits until lists of changes show them, and returns
// their identities.
async function change(name, before) {
  const clients = [...new Map([...before.users.values()].map((row) => [row.client, row])).values()].slice(0, 3);
  const changed = [];
  for (const [i, user] of clients.entries()) {
    const { body } = i < 2
      ? await api("PATCH", `/v2/users/${user.id}`, { department: `Changed by ${name}` })
      : await api("POST", `/v2/clients/${user.client}/users`, { email: `user-${Date.now()}@connect.example` });
    changed.push(body.id);
    for (let tries = 0; tries < 200; tries++) {
      const rows = await all(`/v2/clients/${user.client}/users?updated_since=${body.updated_at}`);
      if (rows.some((row) => row.id === body.id)) break;
      await pause(200);
    }
  }
  return changed;
}

// twice runs a tool twice and holds what it stores to what the service has.
async function twice(name, start) {
  const { body: { id: gone } } = await api("POST", "/v2/clients", { name: `Archived while ${name} reads, ${Date.now()}` });
  await api("POST", `/v2/clients/${gone}/users`, { email: "gone@connect.example" });
  const clients = await all("/v2/clients");
  const before = await snapshot(clients.filter(({ id }) => id !== gone));
  const dir = join(folder, name.replace(/\W/g, "-"));
  mkdirSync(dir);
  const once = start(dir);

  Object.assign(proxy, { seen: [], gone, refuse: !name.startsWith("Elastic"), refused: null });
  const first = await once();
  for (const list of ["users", "exposures"]) compare(`${name} loads`, list, first[list], new Set(before[list].keys()));
  const codes = new Set(proxy.seen.map(({ code }) => code));
  check(`${name} skips 403 and 404`, codes.has(403) && codes.has(404), [...codes]);
  check(`${name} waits for Retry-After`, !proxy.refused || proxy.refused.waited >= 990, proxy.refused);

  Object.assign(proxy, { seen: [], gone: null, refuse: false, refused: null });
  const changed = await change(name, before);
  const after = await snapshot(clients);
  const second = await once();
  const wanted = { users: again("users", before.users, after.users), exposures: again("exposures", before.exposures, after.exposures) };
  for (const list of ["users", "exposures"]) compare(`${name} polls`, list, second[list], wanted[list]);
  check(`${name} polls the changes`, changed.every((id) => wanted.users.has(id)) && wanted.users.size < before.users.size / 2, wanted.users.size);
  console.log(`${name}: first ${first.users.length} users and ${first.exposures.length} exposures, then ${second.users.length} and ${second.exposures.length}`);
}

// telegraf collects twice; in between a client gets a user.
async function telegraf() {
  const dir = join(folder, "telegraf");
  mkdirSync(dir);
  writeFileSync(join(dir, "telegraf.conf"), sample("Telegraf", "toml"));
  const collect = async () => {
    const active = new Map();
    for (const [, id, n] of (await run(bin("telegraf"), ["telegraf.conf"], dir)).matchAll(/^partner_client,id=(\w+),.*\busers_active=(\d+)/gm)) {
      active.set(id, Number(n));
    }
    return active;
  };
  const clients = await all("/v2/clients");
  const wanted = new Map(clients.map(({ id, users }) => [id, users.active]));
  proxy.pageSize = 500; // Telegraf reads one page.
  const first = await collect();
  check("Telegraf collects all clients", wanted.size === first.size && [...wanted].every(([id, n]) => first.get(id) === n), [...first]);
  await api("POST", `/v2/clients/${clients[0].id}/users`, { email: `telegraf-${Date.now()}@connect.example` });
  wanted.set(clients[0].id, clients[0].users.active + 1);
  const second = await collect();
  check("Telegraf collects the change", wanted.size === second.size && [...wanted].every(([id, n]) => second.get(id) === n), [...second]);
  console.log(`Telegraf: ${first.size} clients, then ${second.size}, one of them changed`);
}

// hooks runs adnanh/webhook with both of its configurations. It takes deliveries as the service signs them.
async function hooks() {
  if (spawnSync("webhook", ["-version"]).error) {
    console.log("adnanh/webhook is not installed: its configurations were not run");
    return;
  }
  const signed = JSON.parse(readFileSync(here("../../../platform/webhook/testdata/signatures.json"), "utf8")).filter(({ body }) => body);
  const token = encodeURIComponent("a long random token of your own"), [{ secrets: [secret] }] = signed;
  const requests = [
    signed.flatMap(({ body }) => [[`?token=${token}`, body, {}, true], ["?token=wrong", body, {}, false]]),
    signed.flatMap(({ body, headers }) => [["", body, headers, true], ["", body + " ", headers, false], ["", body, {}, false]]),
  ];
  for (const [n, deliveries] of requests.entries()) {
    const file = join(folder, `hooks-${n}.json`);
    writeFileSync(file, sample("adnanh/webhook", "json", n).replace("whsec_…", secret).replace("/usr/local/bin/take-event", "/bin/true"));
    const free = listener().listen(0, "127.0.0.1");
    await new Promise((resolve) => free.on("listening", resolve));
    const { port } = free.address();
    await new Promise((resolve) => free.close(resolve));
    const child = spawn("webhook", ["-hooks", file, "-ip", "127.0.0.1", "-port", String(port), "-verbose"], { stdio: ["ignore", "ignore", "pipe"] });
    for await (const line of createInterface({ input: child.stderr })) {
      if (line.includes("serving hooks")) break;
    }
    const post = async (query, body, headers) => {
      const response = await fetch(`http://127.0.0.1:${port}/hooks/partner${query}`, { method: "POST", body, headers: { "Content-Type": "application/json", ...headers } });
      return response.status;
    };
    for (const [query, body, headers, valid] of deliveries) {
      const status = await post(query, body, headers);
      check(`adnanh/webhook, configuration ${n}: ${body}`, valid ? status === 204 : [403, 500].includes(status), { status, query, headers });
    }
    child.kill();
  }
  console.log("adnanh/webhook: takes what is signed, and nothing else");
}

// wellFormed parses the configurations of tools that are not run here.
function wellFormed() {
  JSON.parse(sample("Microsoft Sentinel", "json"));
  JSON.parse(sample("Singer", "json"));
  const [manifest] = parseAllDocuments(sample("Airbyte", "yaml"));
  check("Airbyte's manifest is YAML", manifest.errors.length === 0 && manifest.toJS().streams.length === 3, manifest.errors);
  for (const tool of ["dlt", "Singer"]) {
    const { status, stderr } = spawnSync("python3", ["-c", "import ast, sys; ast.parse(sys.stdin.read())"], { input: sample(tool, "python") });
    check(`the program for ${tool} is Python`, !status, String(stderr));
  }
  const workflow = JSON.parse(execFileSync("node", ["--input-type=module"], { input: sample("n8n", "js") }));
  const code = workflow.nodes.map(({ parameters }) => parameters.jsCode).filter(Boolean);
  code.forEach((text) => new Function("$input", "$getWorkflowStaticData", "$", text));
  check("n8n's workflow is one chain", code.length === 3 && Object.keys(workflow.connections).length === workflow.nodes.length - 1, workflow);
}

try {
  wellFormed();
  for (const [name, start] of Object.entries(tools)) await twice(name, start);
  await telegraf();
  await hooks();
} catch (error) {
  check("all was checked", false, String(error?.stack ?? error));
} finally {
  server.close();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);
