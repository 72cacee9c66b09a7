// Writes the programs in the guide to generated clients to OUT, next to the clients that
// their generators generate from a document. Compilers then check that the two still fit.
//
//   node guide.mjs GUIDE DOCUMENT OUT
import { createClient } from "@hey-api/openapi-ts";
import openapiTS, { astToString } from "openapi-typescript";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const [guide, document, out] = process.argv.slice(2);
const typescript = join(out, "ts"), go = join(out, "go");
for (const folder of [typescript, join(go, "partner")]) mkdirSync(folder, { recursive: true });

let written = 0;
for (const [, language, text] of readFileSync(guide, "utf8").matchAll(/^```(ts|go|yaml)\n(.*?)^```$/gms)) {
  const files = {
    ts: join(typescript, text.match(/^\/\/ (\S+\.ts)$/m)?.[1] ?? "none"),
    yaml: join(go, "oapi-codegen.yaml"), go: join(go, "main.go"),
  };
  // The program is a part of this module, and not of one of its own.
  writeFileSync(files[language], text.replace("example.com/sync/partner", "partnerapi/tools/out/guide/go/partner"));
  written++;
}
if (written !== 4) throw new Error(`${guide} has ${written} programs and settings, not 4`);

writeFileSync(join(typescript, "api.d.ts"), astToString(await openapiTS(pathToFileURL(document), { defaultNonNullable: false })));
await createClient({ input: document, output: join(typescript, "client"), logs: { level: "silent" } });
const modules = fileURLToPath(new URL("../node_modules", import.meta.url));
writeFileSync(join(typescript, "tsconfig.json"), JSON.stringify({
  compilerOptions: {
    strict: true, noEmit: true, skipLibCheck: true, module: "esnext", moduleResolution: "bundler", target: "es2022",
    types: ["node"], typeRoots: [join(modules, "@types")], paths: { "openapi-fetch": [join(modules, "openapi-fetch")] },
  },
  include: ["*.ts"],
}));
