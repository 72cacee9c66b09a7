// The search of all pages. Its index and its library are loaded when its field is first used.
"use strict";

const form = document.querySelector("[data-search]");
const input = form.querySelector("input");
const found = form.querySelector("[data-found]");
const status = found.querySelector("[role=status]");
const list = found.querySelector("ul");
const shown = 12;
const alike = 3; // of which one title
const few = 3; // results, to which others are added

// Words that say nothing of what is looked for.
const empty = new Set("how to get an a the of with for is are s was do does i my can what which in on and or it".split(" "));

// stemOf is a word without its ending. The name of a field stays as it is.
function stemOf(word) {
  const term = word.toLowerCase();
  return /^\p{L}+$/u.test(term) ? term.replace(/(?<=...)(at(ion|e|or)s?|ions?|ings?|ers?|ed|es|s|e)$/u, "") : term;
}

// aWord matches a word, the name of a field, or a number such as that of a release, 2.4.
const aWord = /\p{N}+(?:\.\p{N}+)+|[\p{L}\p{N}_]+/gu;

// wordsOf splits a text. The name of a field is a word, and so are its parts, with all that are one word in it.
function wordsOf(text) {
  const words = text.match(aWord) ?? [];
  return words.flatMap((word) => (word.includes("_") ? [word, ...word.split("_").filter(Boolean)] : [word]));
}

async function load() {
  const [{ default: MiniSearch }, response] = await Promise.all([import(form.dataset.library), fetch(form.dataset.index)]);
  const entries = await response.json();
  const search = new MiniSearch({
    fields: ["title", "words", "place", "text"], storeFields: ["title", "place", "path", "text", "weight"],
    // A word is found by its stem, and a mistaken one by the whole.
    tokenize: wordsOf, processTerm: (word) => [...new Set([stemOf(word), word.toLowerCase()])],
    searchOptions: {
      tokenize: (text) => [text], processTerm: (term) => term,
      boost: { title: 4, words: 6 }, boostDocument: (_, __, stored) => stored.weight,
    },
  });
  search.addAll(entries.map((entry, id) => ({ id, ...entry })));
  return search;
}

// Ways to search, each of which is tried where those before find too little: all words as they
// are, all with mistakes, some, some with mistakes.
const ways = [["AND", false], ["AND", true], ["OR", false], ["OR", true]];

// queryOf makes MiniSearch's query. The last word may have been only begun.
function queryOf(words, combineWith, mistaken) {
  return { combineWith, queries: words.map((word, i) => {
    const exact = { queries: [stemOf(word)], prefix: i === words.length - 1 || word.length > 3 };
    const letters = /^\p{L}{4,}$/u.test(word) ? (word.length < 7 ? 1 : 2) : 0;
    const fuzzy = { queries: [word.toLowerCase()], fuzzy: letters };
    return { combineWith: "OR", queries: mistaken && letters ? [exact, fuzzy] : [exact] };
  }) };
}

let loading;
function loaded() {
  loading ??= load().catch((error) => {
    loading = undefined; // the next word tries again
    throw error;
  });
  return loading;
}

function element(name, text, className) {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

// excerpt is the part of a text around the first of the words that it has.
function excerpt({ text, terms }) {
  const places = terms.map((term) => text.toLowerCase().indexOf(term)).filter((place) => place >= 0);
  const from = Math.max(0, (places.length ? Math.min(...places) : 0) - 40);
  const part = text.slice(from, from + 140).replace(/\s+/g, " ").trim();
  return (from > 0 ? "… " : "") + part + (from + 140 < text.length ? " …" : "");
}

function itemOf(result) {
  const link = element("a", "");
  link.href = result.path;
  link.append(element("strong", result.title));
  if (result.place !== result.title) link.append(element("span", result.place, "place"));
  if (result.text) link.append(element("span", excerpt(result)));
  const item = document.createElement("li");
  item.append(link);
  return item;
}

// resultsOf finds words. What has them as its name, and the operations at a path, come first.
function resultsOf(search, text) {
  const pathOf = (place) => place.replace(/^[A-Z]+ /i, "");
  const named = ({ title, place, weight }) => (title === text && weight >= 1.5) || (text.includes("/") && pathOf(place) === pathOf(text));
  // Whoever looks for a field looks for that one, not for its parts.
  const all = text.match(aWord) ?? [];
  const telling = all.filter((word) => !empty.has(word.toLowerCase()));
  const found = new Map();
  for (const [combineWith, mistaken] of ways) {
    if (found.size >= few) break;
    for (const result of search.search(queryOf(telling.length ? telling : all, combineWith, mistaken))) {
      if (!found.has(result.id)) found.set(result.id, result);
    }
  }
  const seen = {};
  return [...found.values()].sort((a, b) => named(b) - named(a))
    .filter(({ title }) => (seen[title] = (seen[title] ?? 0) + 1) <= alike);
}

async function show() {
  const words = input.value.trim();
  found.hidden = words === "";
  if (words === "") return;
  try {
    const search = await loaded();
    if (words !== input.value.trim()) return; // another one has begun
    const results = resultsOf(search, words);
    list.replaceChildren(...results.slice(0, shown).map(itemOf));
    status.textContent = results.length === 0 ? "No results."
      : results.length > shown ? `The first ${shown} of ${results.length} results` : `${results.length} ${results.length === 1 ? "result" : "results"}`;
  } catch {
    list.replaceChildren();
    status.textContent = "Search could not be loaded. Reload the page to try again.";
  }
}

// move goes to another result, from the field to the first.
function move(by) {
  const stops = [input, ...list.querySelectorAll("a")];
  const next = stops[stops.indexOf(document.activeElement) + by];
  if (next) next.focus();
}

function close() {
  found.hidden = true;
}

form.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    close();
    input.focus();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && !found.hidden) {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  }
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  list.querySelector("a")?.click();
});
form.addEventListener("focusout", (event) => {
  if (!form.contains(event.relatedTarget)) close();
});
list.addEventListener("click", close); // the page may stay
input.addEventListener("focus", () => {
  loaded().catch(() => {});
  show();
});
input.addEventListener("input", show);
if ("missing" in form.dataset) input.focus({ preventScroll: true }); // on the page for unknown paths
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
  const held = event.ctrlKey || event.metaKey;
  const slash = event.key === "/" && !typing && !held;
  if (!event.altKey && (slash || (held && event.key.toLowerCase() === "k"))) {
    event.preventDefault();
    input.focus();
    input.select();
  }
});
