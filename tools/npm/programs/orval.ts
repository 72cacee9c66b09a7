// Runs the steps with orval's functions.
import {
  clientsCreate, clientsList, phishingSend, phishingTemplatesList, reportsCreate, reportsGet, usersCreate, webhooksCreate, webhooksTest,
  type Event,
} from "../../out/programs/orval";
import { run } from "./steps";

/** ok is the data of an answer with the status of success. */
async function ok<A extends { status: number; data: unknown }, S extends A["status"]>(
  status: S, answer: Promise<A>,
): Promise<Extract<A, { status: S }>["data"]> {
  const got = await answer;
  if (got.status !== status) throw new Error(`${got.status}: ${JSON.stringify(got.data)}`);
  return got.data;
}

run<Event>("orval", {
  clients: (cursor) => ok(200, clientsList({ limit: 10, sort: "name", ...(cursor && { cursor }) })),
  createClient: (name) => ok(201, clientsCreate({ name })),
  createUser: (client, email) => ok(201, usersCreate(client, { email, role: "finance" })),
  template: async () => (await ok(200, phishingTemplatesList())).data[0],
  send: (client, user, template_id) => ok(202, phishingSend(client, { user_ids: [user], template_id })),
  createWebhook: (url, client) => ok(201, webhooksCreate({ url, events: ["user.created"], client_ids: [client] })),
  ping: (webhook) => ok(200, webhooksTest(webhook)),
  requestReport: (client) => ok(201, reportsCreate(client, { type: "executive_summary" })),
  report: (client, report) => ok(200, reportsGet(client, report)),
  emailOf: (event) => (event.type === "user.created" ? event.data.email as string : undefined),
}).catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
