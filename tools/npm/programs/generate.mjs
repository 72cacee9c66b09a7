// Generates the TypeScript clients that the programs in this folder use, with the default
// settings of their generators.
//
//   node generate.mjs DOCUMENT V1-DOCUMENT OUT
import { createClient } from "@hey-api/openapi-ts";
import openapiTS, { astToString } from "openapi-typescript";
import { generate } from "orval";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [document, older, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
writeFileSync(join(out, "openapi.ts"), astToString(await openapiTS(pathToFileURL(document))));
await createClient({ input: document, output: join(out, "hey-api"), logs: { level: "silent" } });
const mutator = (file, name) => ({ mutator: { path: fileURLToPath(new URL(file, import.meta.url)), name } });
await generate({
  input: document,
  output: { target: join(out, "orval.ts"), client: "fetch", override: mutator("orval-fetch.ts", "call") },
});
await generate({ input: document, output: { target: join(out, "orval-zod.ts"), client: "zod" } });
await generate({
  input: older,
  output: { target: join(out, "orval-v1.ts"), client: "fetch", override: mutator("orval-v1-fetch.ts", "callV1") },
});
