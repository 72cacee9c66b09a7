// Validates pages of clients and of events with the Zod schemas that orval generates. One event has a type that the
// document lacks; the page must still be valid, including its cursor.
import { clientsListResponse, eventsListResponse } from "../../out/programs/orval-zod";
import { base, key } from "./steps";

const get = async (path: string): Promise<unknown> =>
  (await fetch(base + path, { headers: { "X-API-Key": key } })).json();

async function main() {
  const clients = clientsListResponse.parse(await get("/clients?limit=2"));
  if (clients.data.length !== 2) throw new Error("not two clients");

  const events = await get("/events?limit=2") as { data: object[]; page: { next_cursor: string } };
  events.data.push({
    id: "evt_1", type: "moon.rose", created_at: "2026-01-31T08:00:00.000000Z", client_id: "cli_1", data: { phase: "full" },
  });
  const read = eventsListResponse.parse(events);
  if (read.data.length !== events.data.length || read.page.next_cursor !== events.page.next_cursor) {
    throw new Error("an event of an unknown type loses the page");
  }
  console.log("orval: the schemas of zod accept clients, and an event of an unknown type");
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
