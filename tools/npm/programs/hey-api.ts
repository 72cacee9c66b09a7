// Runs the steps with the SDK from hey-api.
import {
  clientsCreate, clientsList, phishingSend, phishingTemplatesList, reportsCreate, reportsGet, usersCreate, webhooksCreate, webhooksTest,
} from "../../out/programs/hey-api/sdk.gen";
import { client as service } from "../../out/programs/hey-api/client.gen";
import type { Event } from "../../out/programs/hey-api/types.gen";
import { base, key, run } from "./steps";

service.setConfig({ baseUrl: base, headers: { "X-API-Key": key } });

async function ok<T>(answer: Promise<{ data: T }>): Promise<T> {
  return (await answer).data;
}
const throwOnError = true;

run<Event>("hey-api", {
  clients: (cursor) => ok(clientsList({ throwOnError, query: { limit: 10, sort: "name", ...(cursor && { cursor }) } })),
  createClient: (name) => ok(clientsCreate({ throwOnError, body: { name } })),
  createUser: (client_id, email) => ok(usersCreate({ throwOnError, path: { client_id }, body: { email, role: "finance" } })),
  template: async () => (await ok(phishingTemplatesList({ throwOnError }))).data[0],
  send: (client_id, user, template_id) => ok(phishingSend({ throwOnError, path: { client_id }, body: { user_ids: [user], template_id } })),
  createWebhook: (url, client) => ok(webhooksCreate({ throwOnError, body: { url, events: ["user.created"], client_ids: [client] } })),
  ping: (webhook_id) => ok(webhooksTest({ throwOnError, path: { webhook_id } })),
  requestReport: (client_id) => ok(reportsCreate({ throwOnError, path: { client_id }, body: { type: "executive_summary" } })),
  report: (client_id, report_id) => ok(reportsGet({ throwOnError, path: { client_id, report_id } })),
  emailOf: (event) => (event.type === "user.created" ? event.data.email as string : undefined),
}).catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
