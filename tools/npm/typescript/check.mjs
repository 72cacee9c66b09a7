// Writes the types that openapi-typescript generates from a document, and a program that
// assigns every example to its type. tsc then checks that the examples have these types.
//
//   node check.mjs DOCUMENT EXAMPLES OUT
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const [document, examples, out] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const types = astToString(await openapiTS(pathToFileURL(document)));
writeFileSync(join(out, "types.ts"), types);

// Parameters are texts in the examples, and numbers in the types where they can be.
const typed = (values) =>
  Object.fromEntries(Object.entries(values).map(([k, v]) => [k, /^\d+$/.test(v) ? Number(v) : v]));

const lines = ['import type { operations } from "./types.js";', ""];
let n = 0;
const assign = (type, value) => {
  lines.push(`export const example${n++}: ${type} = ${JSON.stringify(value, null, 2)};`, "");
};
for (const file of readdirSync(examples).sort()) {
  const id = file.replace(/\.json$/, "");
  // A document of an earlier release has fewer operations.
  if (!types.includes(`operations["${id}"]`) && !types.includes(`operations.${id}`)) continue;
  const e = JSON.parse(readFileSync(join(examples, file), "utf8"));
  const operation = `operations["${id}"]`;
  if (e.path) assign(`${operation}["parameters"]["path"]`, typed(e.path));
  if (e.query) assign(`NonNullable<${operation}["parameters"]["query"]>`, typed(e.query));
  if (e.body) assign(`NonNullable<${operation}["requestBody"]>["content"]["application/json"]`, e.body);
  if (e.response) assign(`${operation}["responses"][${e.status}]["content"]["application/json"]`, e.response);
}
writeFileSync(join(out, "examples.ts"), lines.join("\n"));
console.log(`${n} requests and answers of ${document} are to have their types`);
