// Runs the steps with openapi-fetch and the types from openapi-typescript.
import createClient from "openapi-fetch";
import type { components, paths } from "../../out/programs/openapi";
import { base, key, run } from "./steps";

const api = createClient<paths>({ baseUrl: base, headers: { "X-API-Key": key } });

async function ok<T>(answer: Promise<{ data?: T; error?: { error: { code: string; message: string } } }>): Promise<T> {
  const { data, error } = await answer;
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

run<components["schemas"]["Event"]>("openapi-typescript", {
  clients: (cursor) => ok(api.GET("/clients", { params: { query: { limit: 10, sort: "name", ...(cursor && { cursor }) } } })),
  createClient: (name) => ok(api.POST("/clients", { body: { name } })),
  createUser: (client_id, email) => ok(api.POST("/clients/{client_id}/users", { params: { path: { client_id } }, body: { email, role: "finance" } })),
  template: async () => (await ok(api.GET("/phishing/templates", {}))).data[0],
  send: (client_id, user, template_id) =>
    ok(api.POST("/clients/{client_id}/phishing/sends", { params: { path: { client_id } }, body: { user_ids: [user], template_id } })),
  createWebhook: (url, client) => ok(api.POST("/webhooks", { body: { url, events: ["user.created"], client_ids: [client] } })),
  ping: (webhook_id) => ok(api.POST("/webhooks/{webhook_id}/test", { params: { path: { webhook_id } } })),
  requestReport: (client_id) =>
    ok(api.POST("/clients/{client_id}/reports", { params: { path: { client_id } }, body: { type: "executive_summary" } })),
  report: (client_id, report_id) => ok(api.GET("/clients/{client_id}/reports/{report_id}", { params: { path: { client_id, report_id } } })),
  emailOf: (event) => (event.type === "user.created" ? event.data.email as string : undefined),
}).catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
