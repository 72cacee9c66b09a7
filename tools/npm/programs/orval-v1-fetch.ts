// How the functions of orval for version 1 reach the service.
import { base, key } from "./steps";

export async function callV1<T>(path: string, init: RequestInit): Promise<T> {
  const headers = new Headers(init.headers);
  headers.set("X-API-Key", key);
  const answer = await fetch(base.replace(/\/v2$/, "/v1") + path, { ...init, headers });
  const text = await answer.text();
  return { status: answer.status, headers: answer.headers, data: text && JSON.parse(text) } as T;
}
