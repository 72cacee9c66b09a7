// What the samples of all pages can do: show the reader's key, be copied, and be seen in the
// language that he chose. It runs before the page is shown, so that nothing moves.
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
  const box = document.querySelector(".key");
  const input = box.querySelector("input");
  const fault = box.querySelector("[role=status]");
  input.value = stored("sessionStorage", "key");
  showKey(input.value);
  input.addEventListener("input", () => {
    input.value = input.value.trim();
    const valid = input.checkValidity();
    input.setAttribute("aria-invalid", String(!valid));
    fault.textContent = valid ? "" : "Not used: a key has only letters, digits and underscores (_).";
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
