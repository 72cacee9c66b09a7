// Calls version 1 with orval's functions.
import { clients } from "../../out/programs/orval-v1";

async function main() {
  const page = await clients({ limit: 2 });
  if (page.status !== 200 || page.data.items.length !== 2) throw new Error(`the clients: ${JSON.stringify(page)}`);
  console.log(`orval: version 1 lists ${page.data.items.length} of ${page.data.total} clients`);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
