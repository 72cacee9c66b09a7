// The steps of a small integration, for any client library. It lists the clients page by
// page, creates a client with a user, and sends the user a simulated phishing email. It
// also receives an event, verifies the event's signature, and downloads a report.
import type { IncomingHttpHeaders } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Webhook } from "standardwebhooks";

// The service, and the certificate of this program's endpoint.
const env = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set`);
  return value;
};
export const base = env("BASE") + "/v2";
export const key = env("KEY");

/** Calls are the operations, as a generated client makes them; each rejects on an error. */
export interface Calls<Event> {
  clients(cursor?: string): Promise<{ data: { id: string }[]; page: { next_cursor: string | null } }>;
  createClient(name: string): Promise<{ id: string; name: string }>;
  createUser(client: string, email: string): Promise<{ id: string; role: string; preferred_language: string }>;
  template(): Promise<{ id: string } | undefined>;
  send(client: string, user: string, template: string): Promise<{ sends: { user_id: string }[] }>;
  createWebhook(url: string, client: string): Promise<{ id: string; secret: string }>;
  ping(webhook: string): Promise<{ delivered: boolean }>;
  requestReport(client: string): Promise<{ id: string }>;
  report(client: string, report: string): Promise<{ status: string; download_url: string | null }>;
  /** The address of the user whom a user.created event is about, by the event's type. */
  emailOf(event: Event): string | undefined;
}

function want(holds: unknown, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

/** until asks again, at most 300 times, until there is an answer. */
async function until<T>(what: string, ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let tries = 0; tries < 300; tries++) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await pause(200);
  }
  throw new Error(`${what} did not come`);
}

/** run takes the steps, and says so. */
export async function run<Event>(name: string, calls: Calls<Event>): Promise<void> {
  const posted: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer({ cert: readFileSync(env("TLS_CERT")), key: readFileSync(env("TLS_KEY")) }, (req, res) => {
    let body = "";
    req.setEncoding("utf8").on("data", (part: string) => (body += part)).on("end", () => {
      posted.push({ headers: req.headers, body });
      res.writeHead(204).end();
    });
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    const seen = new Set<string>();
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const page = await calls.clients(cursor);
      for (const client of page.data) seen.add(client.id);
      cursor = page.page.next_cursor;
    }
    want(seen.size >= 30, `${seen.size} clients were paged through`);

    const client = await calls.createClient(`Made by ${name}`);
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const webhook = await calls.createWebhook(url, client.id);
    const email = `ada@${name}.example`;
    const user = await calls.createUser(client.id, email);
    want(user.preferred_language === "en", `the user reads ${user.preferred_language}`);

    const template = await calls.template();
    want(template, "there is no template");
    const { sends } = await calls.send(client.id, user.id, template.id);
    want(sends.length === 1 && sends[0]?.user_id === user.id, "the simulation was not sent");

    want((await calls.ping(webhook.id)).delivered, "the ping was not delivered");
    const events = await until("the event", () => {
      const verified = posted.map((p) => new Webhook(webhook.secret).verify(p.body, p.headers as Record<string, string>) as Event);
      return verified.some((event) => calls.emailOf(event) === email) ? verified : undefined;
    });

    const report = await calls.requestReport(client.id);
    const file = await until("the report", async () => {
      const now = await calls.report(client.id, report.id);
      want(now.status !== "failed", "the report failed");
      return now.download_url ?? undefined;
    });
    const pdf = await (await fetch(file)).text();
    want(pdf.startsWith("%PDF"), "the report is no PDF");
    console.log(`${name}: ${seen.size} clients, ${events.length} verified deliveries, a report of ${pdf.length} characters`);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
