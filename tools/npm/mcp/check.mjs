// Checks the MCP server with both generations of the official TypeScript clients over HTTP,
// and with the older one also over the bridge of standard input and output:
//
//   node check.mjs PROGRAM
//
// PROGRAM is the partnerapi binary. Command demonstration runs this program with the
// service's URL in BASE and an API key in KEY. The exit status is 1 if a check fails.
import { Client as NewerClient, StreamableHTTPClientTransport as NewerTransport } from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const program = process.argv[2];
const { BASE: base, KEY: key } = process.env;

let failed = 0;
function check(what, holds, seen) {
  if (!holds) {
    failed++;
    console.log(`FAIL ${what}\n     ${JSON.stringify(seen)?.slice(0, 500)}`);
  }
}

function overHTTP(query = "", headers = { "X-API-Key": key }) {
  return new StreamableHTTPClientTransport(new URL("/mcp" + query, base), { requestInit: { headers } });
}

async function connected(transport) {
  const client = new Client({ name: "check", version: "1" });
  await client.connect(transport);
  return client;
}

async function toolsOf(client) {
  const tools = [];
  let cursor;
  do {
    const page = await client.listTools({ cursor });
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor);
  return tools;
}

async function checkSession(name, client) {
  const tools = await toolsOf(client);
  check(`${name}: tools are listed, with annotations`,
    tools.length > 20 && tools.every((t) => typeof t.annotations?.destructiveHint === "boolean"), tools.map((t) => t.name));
  check(`${name}: a tool without an answer has no output schema`,
    tools.find((t) => t.name === "collections_delete")?.outputSchema === undefined, tools);

  // The client checks structured content against the output schema.
  const list = await client.callTool({ name: "clients_list", arguments: { limit: 1 } });
  const id = list.structuredContent?.data?.[0]?.id;
  check(`${name}: a call gives structured content and the same as text`,
    id && JSON.stringify(JSON.parse(list.content[0].text)) === JSON.stringify(list.structuredContent), list);
  const reads = tools.filter((t) => t.annotations.readOnlyHint && t.inputSchema.required?.join() === "client_id");
  for (const tool of reads) {
    const out = await client.callTool({ name: tool.name, arguments: { client_id: id } });
    const code = out.isError && JSON.parse(out.content[0].text).error.code;
    check(`${name}: ${tool.name}`, !out.isError || code === "conflict" || code === "not_found", out);
  }

  const wrong = await client.callTool({ name: "clients_list", arguments: { limit: "many", unknown: 1 } });
  const envelope = JSON.parse(wrong.content[0].text);
  check(`${name}: wrong arguments are named in the envelope`,
    wrong.isError && !wrong.structuredContent && envelope.error.code === "invalid_request" &&
      envelope.error.fields.map((f) => f.field).sort().join() === "limit,unknown", wrong);
  const missing = await client.callTool({ name: "clients_get", arguments: { client_id: "cli_01h455vb4pex5vsknk084sn02q" } });
  check(`${name}: what is not there is an error`,
    missing.isError && JSON.parse(missing.content[0].text).error.code === "not_found", missing);

  const resource = await client.readResource({ uri: "partner://clients/" + id });
  check(`${name}: a client is a resource`, JSON.parse(resource.contents[0].text).id === id, resource);
  const { resources } = await client.listResources();
  for (const { uri } of resources) {
    const guide = await client.readResource({ uri });
    check(`${name}: ${uri}`, guide.contents[0].text.startsWith("# "), guide);
  }
}

async function refused(what, transport, status) {
  try {
    await connected(transport);
    check(what, false, "it was accepted");
  } catch (e) {
    check(what, e.code === status || String(e).includes(String(status)), String(e));
  }
}

// checkCompact: without schemas the usual tools are on one page, and a list is lines of
// text, said once.
async function checkCompact(name, client) {
  const page = await client.listTools();
  check(`${name}: the usual tools are few, on one page, and have no output schema`,
    page.tools.length > 10 && page.tools.length < 40 && !page.nextCursor && page.tools.every((t) => !t.outputSchema), page);
  const list = await client.callTool({ name: "clients_list", arguments: { limit: 2, fields: ["id", "risk.grade"] } });
  const lines = list.content[0].text.split("\n");
  check(`${name}: a list is a line for each row`,
    !list.structuredContent && lines.length === 4 && lines[0] === "id\trisk.grade" && lines[1].startsWith("cli_"), list);
}

// checkTask plays the prompt remind_overdue: the three riskiest clients, their users whose
// courses are overdue, and a reminder to those. From is how many clients are left out, for
// one is reminded once a day.
async function checkTask(client, from = 0) {
  const { messages } = await client.getPrompt({ name: "remind_overdue", arguments: { clients: "3" } });
  check("the task names its tools", ["clients_list", "users_list", "training_remind"].every((t) => messages[0].content.text.includes(t)), messages);
  const rows = async (name, args) => {
    const out = await client.callTool({ name, arguments: args });
    return out.content[0].text.split("\n").slice(1, -1).map((line) => line.split("\t"));
  };
  const riskiest = (await rows("clients_list", { sort: "risk_score", limit: from + 3, fields: ["id", "risk.average_score"] })).slice(from);
  check("the riskiest clients come first", riskiest.length === 3 && riskiest.every((r, i) => !i || +riskiest[i - 1][1] <= +r[1]), riskiest);
  for (const [id] of riskiest) {
    const late = await rows("users_list", { client_id: id, overdue: true, status: "active", limit: 500, fields: ["id", "training.overdue_count"] });
    check("only users with overdue courses are listed", late.every((u) => +u[1] > 0), late);
    const out = JSON.parse((await client.callTool({ name: "training_remind", arguments: { client_id: id } })).content[0].text);
    check("all of them are reminded", out.recipient_count === late.length && out.skipped.length === 0, out);
  }
}

// checkNewer plays the task with the client of the protocol without sessions, which refuses
// a result that does not say that it is complete.
async function checkNewer() {
  const client = new NewerClient({ name: "check", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new NewerTransport(new URL("/mcp", base), { requestInit: { headers: { "X-API-Key": key } } }));
  const version = client.getNegotiatedProtocolVersion();
  check("newer: the protocol is that of 2026-07-28", version === "2026-07-28", version);
  await checkCompact("newer", client);
  await checkTask(client, 3);
  const { resources } = await client.listResources();
  for (const { uri } of resources) {
    check(`newer: ${uri}`, (await client.readResource({ uri })).contents[0].text.startsWith("# "));
  }
  const missing = await client.readResource({ uri: "partner://guides/none" }).then(() => 0, (e) => e.code);
  check("newer: an unknown resource is an invalid parameter", missing === -32602, missing);
  await client.close();
}

// checkSelection: single tools alone, one client, and the search of the guides, in a session and without one.
async function checkSelection(id) {
  const newer = new NewerClient({ name: "check", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await newer.connect(new NewerTransport(new URL(`/mcp?tools=clients_list,docs_search&client_id=${id}`, base), { requestInit: { headers: { "X-API-Key": key } } }));
  const older = await connected(overHTTP(`?client_id=${id}`, { "X-API-Key": key, "X-MCP-Tools": "docs_search, clients_list" }));
  const bridge = await connected(new StdioClientTransport({
    command: program, args: ["mcp", "--url", base, "--tools", "clients_list,docs_search", "--client", id], env: { ...process.env, PARTNERAPI_KEY: key }, stderr: "inherit",
  }));
  for (const [name, client] of Object.entries({ newer, older, bridge })) {
    const names = (await client.listTools()).tools.map((t) => t.name).sort().join();
    check(`${name}: single tools are those alone`, names === "clients_list,docs_search", names);
    const list = await client.callTool({ name: "clients_list", arguments: { fields: ["id"] } });
    check(`${name}: one client is listed`, list.content[0].text === `id\n${id}\n1 rows, no more`, list);
    const found = await client.callTool({ name: "docs_search", arguments: { query: "verify a webhook's signature", limit: 2 } });
    check(`${name}: the guides are searched`, found.content[0].text.includes(`${base}/docs/guide/webhooks#`), found);
    await client.close();
  }
  await refused("an unknown tool is refused", overHTTP("?tools=none"), 400);
  await refused("an unknown client is refused", overHTTP("?client_id=none"), 400);
}

const everything = "?toolsets=all&schemas=1";

async function checkAll() {
  const transport = overHTTP(everything);
  const client = await connected(transport);
  check("a session has an id", !!transport.sessionId, transport.sessionId);
  await checkSession("http", client);

  const usual = await connected(overHTTP());
  await checkCompact("http", usual);
  await checkNewer();
  await checkTask(usual);
  await checkSelection((await client.callTool({ name: "clients_list", arguments: { limit: 1 } })).structuredContent.data[0].id);

  const bearer = await connected(overHTTP("", { Authorization: "Bearer " + key }));
  check("a bearer token is a key", (await bearer.listTools()).tools.length > 0);

  const only = await connected(overHTTP("?read_only=1"));
  check("a read-only session has tools that read", (await toolsOf(only)).every((t) => t.annotations.readOnlyHint));
  const write = await only.callTool({ name: "clients_create", arguments: { name: "Never" } });
  check("a read-only session refuses others", write.isError && write.content[0].text.includes("forbidden"), write);

  await refused("a wrong key is refused", overHTTP("", { "X-API-Key": "wrong" }), 401);
  await refused("a page of another origin is refused", overHTTP("", { "X-API-Key": key, Origin: "https://other.example" }), 403);

  await transport.terminateSession();
  const after = await fetch(new URL("/mcp", base), {
    method: "POST",
    headers: {
      "X-API-Key": key, "Mcp-Session-Id": transport.sessionId ?? "none", "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  });
  check("a session that is ended or unknown is not found", after.status === 404, after.status);

  const bridge = await connected(new StdioClientTransport({
    command: program, args: ["mcp", "--url", base, "--toolsets", "all", "--schemas"], env: { ...process.env, PARTNERAPI_KEY: key }, stderr: "inherit",
  }));
  await checkSession("stdio", bridge);
  await Promise.all([bridge.close(), client.close(), bearer.close(), only.close(), usual.close()]);
}

try {
  await checkAll();
} catch (e) {
  check("all was checked", false, String(e?.stack ?? e));
}
console.log(failed ? `${failed} of the MCP checks failed` : "the official MCP clients of both generations agree, over HTTP and over stdio");
process.exit(failed ? 1 : 0);
