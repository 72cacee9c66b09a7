// The key is kept in the page's own field: it goes with the page.
"use strict";

const keyForm = document.querySelector("[data-key]");

function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

// addressOf is the request that a form describes: empty parameters are left out.
function addressOf(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input")) {
    const value = input.value.trim();
    if (input.dataset.in === "path") {
      path = path.replace("{" + input.name + "}", encodeURIComponent(value));
    } else if (value !== "") {
      query.set(input.name, value);
    }
  }
  const text = query.toString();
  return text ? path + "?" + text : path;
}

const shownHeaders = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"];

function show(answer, address, response, body) {
  const lines = [response.status + " " + response.statusText];
  for (const name of shownHeaders) {
    const value = response.headers.get(name);
    if (value !== null) lines.push(name + ": " + value);
  }
  let text = body;
  try {
    text = JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    // It is shown as it came.
  }
  const head = element("pre", "GET " + address + "\n" + lines.join("\n"), "code");
  const shown = element("pre", text, "code answer");
  head.tabIndex = 0;
  shown.tabIndex = 0;
  answer.replaceChildren(head, shown);
}

async function send(event) {
  event.preventDefault();
  const form = event.currentTarget;
  const answer = form.querySelector("[data-answer]");
  const button = form.querySelector("button");
  const key = document.getElementById("api-key").value.trim();
  if (key === "") {
    answer.replaceChildren(element("p", "Type a key at the top of the page first."));
    document.getElementById("api-key").focus();
    return;
  }
  const address = addressOf(form);
  button.disabled = true;
  try {
    const response = await fetch(address, {
      headers: { "X-API-Key": key }, credentials: "omit", redirect: "error", cache: "no-store",
    });
    show(answer, address, response, await response.text());
  } catch (error) {
    answer.replaceChildren(element("p", "No answer: " + error.message));
  } finally {
    button.disabled = false;
  }
}

for (const form of document.querySelectorAll("[data-try]")) {
  form.hidden = false;
  form.addEventListener("submit", send);
}
if (keyForm && document.querySelector("[data-try]")) {
  keyForm.hidden = false;
  keyForm.addEventListener("submit", (event) => event.preventDefault());
}

const filter = document.querySelector("[data-filter]");
if (filter) {
  const input = filter.querySelector("input");
  const entries = [...document.querySelectorAll(".entries li")];
  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    let count = 0;
    for (const entry of entries) {
      const text = entry.textContent.toLowerCase();
      entry.hidden = !words.every((word) => text.includes(word));
      if (!entry.hidden) count++;
    }
    filter.querySelector("[data-count]").textContent = words.length === 0 ? "" : count + (count === 1 ? " entry" : " entries");
  };
  filter.hidden = false;
  filter.addEventListener("submit", (event) => event.preventDefault());
  input.addEventListener("input", apply);
}
