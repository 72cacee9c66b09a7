// What all pages can do: samples show the reader's key, are copied, and are seen in the language that the reader chose;
// lists of pages and of contents show where the reader is. It runs before the page is shown, so that nothing moves.
"use strict";

// stored reads and writes a value of the browser, which may have forbidden that.
function stored(storage, name, value) {
  try {
    if (value === undefined) return window[storage].getItem(name) ?? "";
    if (value === "") window[storage].removeItem(name);
    else window[storage].setItem(name, value);
  } catch {}
  return value ?? "";
}

// The panels that are shown: those of the chosen language, else the first of each.
const choice = new CSSStyleSheet();
document.adoptedStyleSheets = [choice];
function choose(language) {
  const chosen = `> [data-language="${/^[a-z]+$/.test(language) ? language : "none"}"]`;
  choice.replaceSync(`@media screen {
    .tabs:has(${chosen}) > .panel:not(${chosen.slice(2)}), .tabs:not(:has(${chosen})) > .panel ~ .panel { display: none }
  }`);
  for (const list of document.querySelectorAll(".languages")) {
    const tabs = [...list.children];
    const selected = tabs.find((tab) => tab.dataset.language === language) ?? tabs[0];
    for (const tab of tabs) {
      tab.ariaSelected = String(tab === selected);
      tab.tabIndex = tab === selected ? 0 : -1;
    }
  }
}
choose(stored("localStorage", "language"));

// selectTab chooses a tab's language. The tab stays where it is on the screen.
function selectTab(tab) {
  const before = tab.getBoundingClientRect().top;
  choose(stored("localStorage", "language", tab.dataset.language));
  scrollBy({ top: tab.getBoundingClientRect().top - before, behavior: "instant" });
  tab.focus();
}

// sampleOf is the text of a button's sample. Of a session of a console it is what was typed.
function sampleOf(button) {
  const text = button.parentElement.querySelector("code").textContent;
  const typed = text.match(/^\$ (?:.*\\\n)*.*/gm);
  return typed ? typed.map((line) => line.slice(2)).join("\n") : text;
}

// markdownOf is the Markdown that the link before a button leads to.
async function markdownOf(button) {
  const answer = await fetch(button.previousElementSibling.href);
  if (!answer.ok) throw new Error(answer.statusText);
  return answer.text();
}

async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  document.addEventListener("copy", (event) => { // the page came without TLS
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  }, { once: true });
  if (!document.execCommand("copy")) throw new Error("the browser does not copy");
}

// copy copies a text. The button says for two seconds whether it did, and so does the page to a screen reader.
async function copy(button, textOf) {
  const label = (button.dataset.label ??= button.textContent);
  const said = document.getElementById("said");
  try {
    await toClipboard(await textOf(button));
    said.textContent = button.textContent = "Copied";
  } catch {
    said.textContent = button.textContent = "Not copied";
  }
  setTimeout(() => {
    button.textContent = label;
    said.textContent = "";
  }, 2000);
}

// showKey shows a key in all samples, or what stands in its place.
function showKey(key) {
  for (const place of document.querySelectorAll(".your-key")) {
    place.dataset.before ??= place.textContent;
    place.textContent = key || place.dataset.before;
  }
  document.querySelector(".key").classList.toggle("known", key !== "");
}

// reveal scrolls a list, and nothing else, so that one of its links is in its middle, unless it is in sight.
function reveal(list, link) {
  const frame = list.getBoundingClientRect();
  const { top, bottom } = link.getBoundingClientRect();
  if (top < frame.top || bottom > frame.bottom) list.scrollTop += (top + bottom - frame.top - frame.bottom) / 2;
}

// followReader marks the link to the section that is being read: the last whose heading has been passed or, at the end
// of the page, the last that is in sight.
function followReader() {
  const list = document.querySelector("nav.contents");
  const sections = [...(list?.querySelectorAll("a") ?? [])]
    .map((link) => ({ link, heading: document.getElementById(decodeURIComponent(link.hash.slice(1))) }))
    .filter(({ heading }) => heading);
  if (sections.length === 0) return;
  let marked;
  const mark = () => {
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2 && scrollY > 0;
    const line = atEnd ? innerHeight : 120;
    const now = sections.findLast(({ heading }) => heading.getBoundingClientRect().top < line)?.link;
    if (now === marked) return;
    marked?.removeAttribute("aria-current");
    now?.setAttribute("aria-current", "location");
    if (now) reveal(list, now);
    marked = now;
  };
  let asked = false;
  addEventListener("scroll", () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      mark();
    });
  }, { passive: true });
  mark();
}

document.addEventListener("click", ({ target }) => {
  if (target.matches(".copy")) copy(target, sampleOf);
  else if (target.matches(".markdown")) copy(target, markdownOf);
  else if (target.matches(".languages button")) selectTab(target);
});
document.addEventListener("keydown", (event) => {
  const tab = event.target.closest?.(".languages button");
  const tabs = tab ? [...tab.parentElement.children] : [];
  const at = tabs.indexOf(tab);
  const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (tab && next !== undefined) {
    event.preventDefault();
    selectTab(tabs.at(next % tabs.length));
  }
});
document.addEventListener("DOMContentLoaded", () => {
  choose(stored("localStorage", "language"));
  const pages = document.querySelector("nav.pages");
  const current = pages?.querySelector("[aria-current]");
  if (current) reveal(pages, current);
  followReader();
  const box = document.querySelector(".key");
  const input = box.querySelector("input");
  const fault = box.querySelector("[role=status]");
  input.value = stored("sessionStorage", "key");
  showKey(input.value);
  input.addEventListener("input", () => {
    input.value = input.value.trim();
    const valid = input.checkValidity();
    input.setAttribute("aria-invalid", String(!valid));
    fault.textContent = valid ? "" : "This is not an API key: keys contain only letters, digits and underscores (_).";
    showKey(stored("sessionStorage", "key", valid ? input.value : ""));
  });
  box.querySelector("button").addEventListener("click", () => {
    input.value = "";
    for (const type of ["input", "change"]) input.dispatchEvent(new Event(type));
    input.focus();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    box.open = false;
    box.querySelector("summary").focus();
  });
  document.addEventListener("click", ({ target }) => {
    if (!box.contains(target)) box.open = false;
  });
});
