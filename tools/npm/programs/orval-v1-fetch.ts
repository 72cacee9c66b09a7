// Adds the service's URL and the API key to the requests of orval's functions for version 1.
import { base, key } from "./steps";

export async function callV1<T>(path: string, init: RequestInit): Promise<T> {
  const headers = new Headers(init.headers);
  headers.set("X-API-Key", key);
  const answer = await fetch(base.replace(/\/v2$/, "/v1") + path, { ...init, headers });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, data: text && JSON.parse(text) } as T;
}
