// Performs one task with the MCP server through the OpenAI Agents SDK, as an agent whose tools are strict functions.
// With these, OpenAI's models name every argument, and send null for unused ones. The model is scripted; nothing is
// sent to OpenAI. Command demonstration runs this program. The exit status is 1 if a check fails.
import { Agent, MCPServerStreamableHttp, run, setTracingDisabled, Usage } from "@openai/agents";

const { BASE: base, KEY: key } = process.env;
setTracingDisabled(true);

let failed = 0;
function check(what, holds, seen) {
  if (!holds) {
    failed++;
    console.log(`FAIL ${what}\n     ${JSON.stringify(seen)?.slice(0, 500)}`);
  }
}

// textOf returns the text of a tool's output, which is a string, or has one or a list of them.
function textOf(output) {
  return Array.isArray(output) ? output.map(textOf).join("") : typeof output === "string" ? output : textOf(output.text);
}

// ScriptedModel calls the tools of its steps, one in each turn. A step is a function of the texts that the calls before
// returned, and returns a tool and arguments; the model adds null for all other arguments that the tool declares.
class ScriptedModel {
  texts = [];
  constructor(steps) {
    this.steps = steps;
  }

  async getResponse(request) {
    const results = request.input.filter((item) => item.type === "function_call_result");
    this.texts = results.map(({ output }) => textOf(output));
    const step = this.steps[results.length];
    if (!step) {
      const content = [{ type: "output_text", text: "done" }];
      return { usage: new Usage(), output: [{ type: "message", role: "assistant", status: "completed", content }] };
    }
    check("all tools are strict functions", request.tools.length > 20 && request.tools.every((t) => t.strict), request.tools.filter((t) => !t.strict));
    const [name, given] = step(this.texts);
    const tool = request.tools.find((t) => t.name === name);
    const args = Object.fromEntries(tool.parameters.required.map((argument) => [argument, given[argument] ?? null]));
    check(`${name} has the arguments`, Object.keys(given).every((argument) => argument in args), Object.keys(args));
    const call = { type: "function_call", callId: `call_${results.length}`, name, status: "completed", arguments: JSON.stringify(args) };
    return { usage: new Usage(), output: [call] };
  }
}

const server = new MCPServerStreamableHttp({
  url: base + "/mcp", name: "partnerapi", cacheToolsList: true, requestInit: { headers: { "X-API-Key": key } },
});
await server.connect();
try {
  const name = "Strict Agents", industry = "Retail", external_id = "A-1";
  let client;
  const model = new ScriptedModel([
    () => ["clients_create", { name, industry, external_id }],
    () => ["clients_list", { q: name, fields: ["id", "name"] }],
    (texts) => {
      client = texts[1].split("\n")[1]?.split("\t")[0];
      return ["clients_get", { client_id: client }];
    },
    () => ["clients_update", { client_id: client, name: name + " Ltd" }], // null for industry, external_id and clear
    () => ["clients_update", { client_id: client, clear: ["external_id"] }],
    () => ["clients_get", { client_id: "cli_01h455vb4pex5vsknk084sn02q" }],
  ]);
  const agent = new Agent({ name: "check", model, mcpServers: [server], mcpConfig: { convertSchemasToStrict: true } });
  const result = await run(agent, "Rename the client.");
  const [, list, read, renamed, cleared, missing] = model.texts;
  check("the task ends", result.finalOutput === "done" && model.texts.length === 6, model.texts);
  check("a list has the chosen columns", list.startsWith("id\tname\n") && list.includes(name), list);
  check("a client is read", JSON.parse(read).industry === industry, read);
  const after = JSON.parse(renamed);
  check("unused arguments change nothing", after.name === name + " Ltd" && after.industry === industry && after.external_id === external_id, after);
  check("clear empties a field", JSON.parse(cleared).external_id === null && JSON.parse(cleared).industry === industry, cleared);
  check("an error is the envelope", JSON.parse(missing).error?.code === "not_found", missing);

  // Without the SDK's help: null reaches the server as it is.
  const plain = await server.callTool("clients_update", { client_id: client, name, industry: null, external_id: null, clear: null });
  check("null is absent", JSON.parse(plain[0].text).industry === industry, plain);
} catch (e) {
  check("the task was done", false, String(e?.stack ?? e));
} finally {
  await server.close();
}
console.log(failed ? `${failed} of the checks with the OpenAI Agents SDK failed` : "the OpenAI Agents SDK, with strict functions, does a task");
process.exit(failed ? 1 : 0);
