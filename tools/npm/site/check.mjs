// Checks the pages for people in Chromium. Command demonstration runs this program with
// the service's URL in BASE and an API key in KEY. If there is no Chromium, the program says
// so and checks nothing. The exit status is 1 if a check fails.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const browserPath = [process.env.CHROMIUM, "/usr/bin/chromium"].find((path) => path && existsSync(path));
if (!browserPath) {
  console.log("there is no /usr/bin/chromium: the pages were not checked in a browser");
  process.exit(0);
}

// Words that readers look for, with the beginning of the path of a page that has to be among
// the results, or among as many of them.
const words = {
  "rate limit": "/docs/guide/rate-limits",
  "429": "/docs/guide/rate-limits",
  pagination: "/docs/guide/paging",
  updated_since: "/docs/guide/delta-sync",
  "since user": "/docs/reference/v2#tag/users/users-list",
  click_rate_90d: "/docs/reference/v2#tag/",
  timeout: "/docs/guide/errors",
  signature: "/docs/guide/webhooks",
  rate_limited: "/docs/guide/errors",
  "create a webhook": "/docs/reference/v2#tag/webhooks/webhooks-create",
  "create user": ["/docs/reference/v2#tag/users/users-create", 2],
  "delete user": ["/docs/reference/v2#tag/users/users-update", 2],
  "create client": ["/docs/reference/v2#tag/clients/clients-create", 2],
  "how to get an api key": ["/docs/guide/keys", 3],
  "GET /v2/clients": ["/docs/reference/v2#tag/clients/clients-list", 2],
  sdk: "/docs/guide/generate-client",
  postman: "/docs/guide/generate-client",
  sandbox: "/docs/guide/start",
  "phishing.result.updated": ["/docs/guide/events", 1],
  "changed since yesterday": ["/docs/guide/delta-sync", 1],
  airbyte: ["/docs/guide/connect-tools", 1],
  "power bi": ["/docs/guide/connect-tools", 1],
  sentinel: ["/docs/guide/connect-tools", 1],
  "n8n pagination": ["/docs/guide/connect-tools", 2],
  "nightly job": ["/docs/examples/nightly-sync", 1],
  "how many requests per minute": ["/docs/guide/rate-limits", 1],
  "loop over all pages": ["/docs/guide/paging", 1],
  "rotate key": ["/docs/guide/keys", 1],
  "read only key": ["/docs/guide/keys", 3],
  quickstart: ["/docs/guide/start", 1],
  request_id: ["/docs/guide/errors", 2],
  "not found": ["/docs/guide/errors", 1],
  "retry a POST": ["/docs/guide/idempotency", 2],
  "release 2.3": ["/docs/guide/releases", 3],
  "replay attack": ["/docs/guide/webhooks", 1],
  "test webhooks on localhost": ["/docs/guide/webhooks", 1],
  okta: ["/docs/guide/onboard", 1],
  ldap: ["/docs/guide/onboard", 1],
  excel: ["/docs/guide/report", 1],
  "executive summary": ["/docs/guide/report", 3],
  swagger: ["/docs/guide/generate-client", 1],
  copilot: ["/docs/guide/mcp", 1],
  "cancel simulation": ["/docs/", 1],
  grade: ["/docs/guide/risk-score", 3],
  baseline: ["/docs/guide/risk-score", 4],
  "remind users": ["/docs/reference/v2#tag/training/training-remind", 2],
  "compliance framework": ["/docs/reference/v2#tag/frameworks/", 3],
  "leaked passwords": ["/docs/", 1],
  idempotncy: ["/docs/guide/idempotency", 1],
  authentcation: ["/docs/guide/keys", 3],
  phising: ["/docs/guide/simulation", 1],
  simulaton: ["/docs/guide/simulation", 3],
  webhoks: ["/docs/guide/webhooks", 1],
  "no such words but webhooks": ["/docs/", 1],
};

const { BASE: base, KEY: key } = process.env;
const program = process.argv[2];
const axeSource = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
let failed = 0;
function check(what, holds, seen) {
  if (!holds) {
    failed++;
    console.log(`FAIL ${what}\n     ${JSON.stringify(seen)?.slice(0, 700)}`);
  }
}

const desk = { width: 1280, height: 900 };
const phone = { width: 390, height: 844 };
const profile = await mkdtemp(join(tmpdir(), "partnerapi-chromium-"));
const browser = await chromium.launchPersistentContext(profile, {
  executablePath: browserPath, headless: true, viewport: desk,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
  ],
});
async function stop() {
  await browser.close();
  await rm(profile, { recursive: true, force: true });
}
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, async () => {
    await stop();
    process.exit(1);
  });
}

// opened is a page that fails the check at an error in its console, and at a request to
// another host.
async function opened() {
  const page = await browser.newPage();
  page.setDefaultTimeout(180_000); // what is not there after that is taken for missing
  page.on("console", (message) => check(`${page.url()}: no errors in the console`, message.type() !== "error", message.text()));
  page.on("pageerror", (error) => check(`${page.url()}: no errors`, false, String(error)));
  page.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    check(`${page.url()}: no request to another host`, origin === base || protocol === "data:", request.url());
  });
  return page;
}

async function visit(page, path) {
  return page.goto(new URL(path, base).href);
}

// accessible fails the check at what axe finds serious in a part of the page.
async function accessible(page, part) {
  if (!(await page.evaluate(() => "axe" in window))) {
    // The page's policy refuses a script element, but not what the browser's tools run.
    await page.evaluate(axeSource);
  }
  const { violations } = await page.evaluate((part) => axe.run(part, { resultTypes: ["violations"] }), part);
  for (const v of violations.filter((v) => ["serious", "critical"].includes(v.impact))) {
    check(`${page.url()}: axe: ${v.id}`, false, v.nodes.map((node) => node.html.slice(0, 150)));
  }
}

// accessibleInBoth is accessible for the whole page, dark and light. The links of headings, which a pointer shows, count.
async function accessibleInBoth(page) {
  await page.evaluate(() => document.querySelectorAll(".permalink").forEach((link) => (link.style.opacity = 1)));
  for (const colorScheme of ["dark", "light"]) {
    await page.emulateMedia({ colorScheme });
    await accessible(page, "body");
  }
}

// checkGuides visits the guides and the other pages that need no script, each once: its weight and its steadiness
// as it loads, then what axe finds in it, light and dark, and its width on a screen, on paper and on a phone.
async function checkGuides(page) {
  const paths = new Set(["/"]);
  for (const list of ["/docs", "/docs/operate"]) {
    await visit(page, list);
    const links = await page.locator("main a[href^='/docs/'], nav.pages a").evaluateAll((all) => all.map((a) => a.pathname));
    links.filter((path) => !path.startsWith("/docs/reference/") && !path.endsWith(".atom")).forEach((path) => paths.add(path));
  }
  check("there are guides", paths.size > 30, [...paths]);

  const client = await browser.newCDPSession(page);
  await client.send("Network.enable");
  let received = 0;
  client.on("Network.loadingFinished", ({ encodedDataLength }) => (received += encodedDataLength));
  await client.send("Network.setCacheDisabled", { cacheDisabled: true });
  const weights = [], paints = [];
  for (const path of paths) {
    received = 0;
    const answer = await visit(page, path);
    check(`${path}: compressed at the first request`, (await answer.allHeaders())["content-encoding"] === "gzip");
    await checkSteady(page, path);
    const most = path === "/docs/operate/operating" ? 50_000 : 40_000; // the handbook is one long text for operators
    check(`${path}: at most ${most / 1000} kB with its assets`, received > 0 && received < most, received);
    weights.push(received);
    paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0));
    await accessibleInBoth(page);
    await checkWidths(page, path);
  }
  await client.detach();
  paints.sort((a, b) => a - b);
  console.log(`${paths.size} pages weigh up to ${Math.max(...weights)} bytes, and are painted after ${Math.round(paints[paints.length >> 1])} ms (median) to ${Math.round(paints.at(-1))} ms`);
}

// checkSteady holds a page to moving nothing once it is shown.
async function checkSteady(page, path) {
  const shifts = await page.evaluate(() => new Promise((resolve) => {
    let sum = 0;
    const observer = new PerformanceObserver((list) => list.getEntries().forEach(({ value }) => (sum += value)));
    observer.observe({ type: "layout-shift", buffered: true });
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(sum)));
  }));
  check(`${path}: nothing moves`, shifts < 0.001, shifts);
}

// checkPieces holds pages to moving nothing while they arrive, as slow connections bring them: in pieces, which begin
// anywhere. Each of these pages moved when its layout was that of its beginning.
async function checkPieces() {
  const slow = createServer(async (request, response) => {
    const answer = await fetch(new URL(request.url, base));
    const body = Buffer.from(await answer.arrayBuffer());
    const type = answer.headers.get("content-type");
    response.writeHead(answer.status, { "content-type": type });
    const piece = type.startsWith("text/html") ? 700 : body.length; // styles and scripts come whole
    for (let from = 0; from < body.length; from += piece) {
      response.write(body.subarray(from, from + piece));
      await new Promise((resolve) => setTimeout(resolve, 20)); // time to show what is there, which no result depends on
    }
    response.end();
  });
  await new Promise((resolve) => slow.listen(0, "127.0.0.1", resolve));
  const page = await browser.newPage();
  for (const path of ["/", "/docs/guide/connect-tools", "/docs/operate/metrics"]) {
    await page.goto(new URL(path, `http://127.0.0.1:${slow.address().port}`).href);
    await checkSteady(page, `${path}, in pieces`);
  }
  await page.close();
  slow.close();
}

// checkWidths holds the samples to their column, on the screen and on paper, and the page to a phone.
async function checkWidths(page, path) {
  const wide = () => [...document.querySelectorAll("pre.code")].filter((pre) => pre.scrollWidth > pre.clientWidth).map((pre) => pre.textContent.slice(0, 80));
  for (const media of ["print", "screen"]) {
    await page.emulateMedia({ media });
    const found = await page.evaluate(wide);
    check(`${path}: every sample fits its column, ${media}`, found.length === 0, found);
  }
  await page.emulateMedia({ media: null });
  await page.setViewportSize(phone);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  check(`${path} fits a phone`, width <= phone.width, width);
  await page.setViewportSize(desk);
}

// resultsOf returns the paths of the results for words.
async function resultsOf(page, text) {
  await page.keyboard.press("Escape");
  await page.locator("#search-words").fill("");
  await page.locator("#search-words").fill(text);
  await page.locator("[data-found] [role=status]").filter({ hasText: /result|found/ }).waitFor();
  return page.locator("[data-found] a").evaluateAll((links) => links.map((a) => a.getAttribute("href")));
}

// checkSearch looks for words as a reader does, with the keyboard. queries.tsv lists those whose first result matters.
async function checkSearch(page) {
  await visit(page, "/docs/guide/start");
  for (const [text, wanted] of Object.entries(words)) {
    const [path, most] = [wanted].flat();
    const found = await resultsOf(page, text);
    check(`search: ${text}`, found.slice(0, most).some((at) => at.startsWith(path)), found);
  }
  const queries = (await readFile(new URL("queries.tsv", import.meta.url), "utf8")).split("\n").filter((line) => line && !line.startsWith("#"));
  for (const [text, pattern] of queries.map((line) => line.split("\t"))) {
    const found = await resultsOf(page, text);
    check(`search: ${text}: the first result matches ${pattern}`, new RegExp(pattern).test(found[0]), found.slice(0, 4));
  }
  await accessible(page, "body");

  await page.locator("#search-words").fill("Create a webhook");
  await page.locator("[data-found] a[href$='webhooks-create']").waitFor();
  await page.keyboard.press("ArrowDown");
  const target = await page.evaluate(() => document.activeElement.getAttribute("href"));
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.href.endsWith(target));
  await page.goBack();
  await page.locator("#search-words").fill("zzqxv");
  await page.locator("[data-found] [role=status]").filter({ hasText: "No results" }).waitFor();
}

// checkSearchKeys verifies that / and Ctrl K open the search on all pages, and that the reference has no other search.
async function checkSearchKeys(page) {
  for (const path of ["/", "/docs/guide/start", "/docs/reference/v2"]) {
    for (const keys of ["/", "Control+k", "Meta+k"]) {
      await visit(page, "about:blank");
      await visit(page, path);
      if (path.includes("/reference/")) await page.locator("#reference h1").waitFor();
      check(`${path}: the field shows the key`, await page.locator(".search kbd").isVisible());
      await page.keyboard.press(keys);
      await page.waitForTimeout(0);
      const focused = await page.evaluate(() => document.activeElement.id);
      check(`${path}: ${keys} opens the search`, focused === "search-words", focused);
      check(`${path}: there is one search`, (await page.locator("[role=search]:visible, [role=dialog]:visible, .scalar-app input[type=search]:visible").count()) === 1);
    }
  }
}

// checkSamples tries what scripts add to samples.
async function checkSamples(page) {
  await browser.grantPermissions(["clipboard-read", "clipboard-write"]);
  await visit(page, "/docs/guide/webhooks");
  check("the buttons that copy are visible", await page.locator(".sample .copy").first().evaluate((button) => getComputedStyle(button).opacity === "1") && (await page.locator(".markdown").boundingBox()).y < 400);
  await page.locator(".languages [role=tab]").first().focus();
  await page.keyboard.press("ArrowRight");
  await page.locator(".panel[data-language=python]").first().waitFor();
  await page.locator(".panel:visible .copy").first().click();
  await page.locator("#said[role=status]", { hasText: "Copied" }).waitFor({ state: "attached" });
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  check("a sample is copied", copied.startsWith("import json, urllib.error"), copied);
  await page.locator("button.markdown").click();
  await page.locator("button.markdown", { hasText: "Copied" }).waitFor();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  check("the page is copied as Markdown", text.startsWith("# Webhooks"), text);
  const named = ["heading", "link"].map((role) => page.getByRole(role, { name: role === "link" ? "Link to: Receive" : "Receive", exact: true }));
  check("a heading's name is its text alone", (await Promise.all(named.map((all) => all.count()))).join() === "1,1");
  await visit(page, "/docs/guide/paging");
  const languages = await page.locator(".panel:visible").evaluateAll((panels) => panels.map((panel) => panel.dataset.language));
  check("the language is remembered", languages.length > 3 && languages.every((language) => language === "python"), languages);
}

// checkOwnKey gives the reader's key to all pages. It stays in its tab.
async function checkOwnKey(page) {
  const own = "papi_00ABCDEFGH0123456789";
  await visit(page, "/docs/guide/start");
  await page.locator(".key summary").click();
  await page.locator("#your-key").fill(own);
  await visit(page, "/docs/guide/paging");
  const shown = await page.locator(".your-key").allTextContents();
  check("samples show the key", shown.length > 0 && shown.every((text) => text === own), shown);
  await page.locator(".key summary").click();
  await page.locator("#your-key").fill(own + "-");
  await page.locator("#your-key-fault[role=status]", { hasText: "not an API key" }).waitFor();
  const without = await page.locator(".your-key").allTextContents();
  check("no sample shows what is no key", !without.some((text) => text.includes(own)), without);
  await page.locator("#your-key").fill(own);
  check("the message goes", (await page.locator("#your-key-fault").textContent()) === "");
  check("the key is stored for its tab alone", !(await page.evaluate(() => JSON.stringify({ ...localStorage }) + document.cookie)).includes(own));
  await visit(page, "/docs/reference/v2#tag/partner/partner-get");
  await page.locator("#reference .scalar-password-input").first().waitFor({ state: "attached" });
  const taken = await page.locator("#reference .scalar-password-input").first().inputValue();
  check("the reference takes the key", taken === own, taken);
  const other = await opened();
  await visit(other, "/docs/guide/start");
  check("another tab has no key", (await other.locator("#your-key").inputValue()) === "", own);
  await other.close();
  await page.locator(".key summary").click();
  await page.getByRole("button", { name: "Forget key" }).click();
  check("the key is forgotten", (await page.evaluate(() => sessionStorage.length)) === 0);
}

// checkSkip leaves the lists of the reference out with the keyboard. Its address stays Scalar's.
async function checkSkip(page) {
  await visit(page, "/docs/reference/v2");
  await page.locator("#reference main").waitFor();
  await page.locator(".skip").focus();
  await page.keyboard.press("Enter");
  await page.locator("#reference main:focus").waitFor();
  check("the address stays", new URL(page.url()).hash !== "#reference", page.url());
}

// checkNavigation verifies that the list of pages shows the current page on every guide, that the contents follow the
// reader, and that the header with the search stays.
async function checkNavigation(page) {
  await page.setViewportSize({ width: 1440, height: 900 });
  await visit(page, "/docs");
  const paths = await page.locator("nav.pages a").evaluateAll((all) => all.map((a) => a.pathname).filter((path) => !path.includes("/reference/")));
  for (const path of paths) {
    await visit(page, path);
    const list = page.locator("nav.pages");
    const current = await list.locator("[aria-current=page]").boundingBox();
    const frame = await list.boundingBox();
    check(`${path}: the list shows the current page`, current && current.y >= frame.y && current.y + current.height <= frame.y + frame.height, [current, frame]);
  }
  await visit(page, "/docs/guide/webhooks");
  for (const id of ["receive", "failures"]) {
    await page.evaluate((id) => document.getElementById(id).scrollIntoView(), id);
    await page.locator(`nav.contents a[href='#${id}'][aria-current=location]`).waitFor();
    const [top, heading] = await page.evaluate((id) => [document.querySelector(".search"), document.getElementById(id)].map((part) => part.getBoundingClientRect().top), id);
    check(`${id}: the header stays above the heading`, top >= 0 && top < 56 && heading > 56, [top, heading]);
  }
  await page.setViewportSize(phone);
  await page.evaluate(() => scrollTo(0, 2000));
  const top = await page.evaluate(() => document.querySelector(".search").getBoundingClientRect().top);
  check("the search stays on a phone", top >= 0 && top < 56, top);
  await page.setViewportSize(desk);
}

// checkPhone has the list of guides closed at the top on a phone.
async function checkPhone(page) {
  await page.setViewportSize(phone);
  await visit(page, "/docs/guide/paging");
  await accessible(page, "body");
  const list = page.locator(".pages-list");
  check("the list of guides is closed", (await list.getAttribute("open")) === null);
  check("the contents are folded", (await page.locator(".contents-list:visible:not([open])").count()) === 1 && (await page.locator("nav.contents:visible").count()) === 0);
  await list.locator("summary").focus();
  await page.keyboard.press("Enter");
  await list.getByRole("link", { name: "Errors", exact: true }).click();
  await page.waitForURL((url) => url.pathname === "/docs/guide/errors");
  await page.setViewportSize(desk);
}

// checkWords verifies that a phone breaks names of fields and paths only after a slash, a dot or an underscore.
async function checkWords(page) {
  await page.setViewportSize(phone);
  for (const path of ["/docs/migrating/users", "/docs/guide/risk-score", "/docs/guide/delta-sync", "/docs/guide/events"]) {
    await visit(page, path);
    const broken = await page.evaluate(() => {
      const found = [];
      const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
      for (let node; (node = texts.nextNode());) {
        if (node.parentElement.closest("pre") || !node.parentElement.closest("h1, h2, h3, td, th")) continue;
        for (const { 0: word, index } of node.textContent.matchAll(/[^\s\u00ad-]+/g)) {
          const range = document.createRange();
          range.setStart(node, index);
          range.setEnd(node, index + word.length);
          if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) found.push(word);
        }
      }
      return found;
    });
    check(`${path}: a phone breaks no word`, broken.length === 0, broken);
  }
  await page.setViewportSize(desk);
}

// checkNotFound follows the guess of the page for unknown paths, which puts the focus into the search.
async function checkNotFound(page) {
  const log = [];
  const other = await browser.newPage(); // the console reports the status 404
  other.on("pageerror", (error) => log.push(String(error)));
  await visit(other, "/docs/guide/webhoks");
  await other.locator("#search-words:focus").waitFor();
  await accessible(other, "body");
  await other.locator("main a[href='/docs/guide/webhooks']").click();
  await other.waitForURL((url) => url.pathname === "/docs/guide/webhooks");
  check("the page for unknown paths has no errors", log.length === 0, log);
  await other.close();
}

// checkWithoutScript reads a page where scripts are off: tabs show all languages.
async function checkWithoutScript() {
  const alone = await browser.browser().newContext({ javaScriptEnabled: false });
  const page = await alone.newPage();
  await visit(page, "/docs/guide/webhooks");
  const panels = await page.locator(".panel").count();
  check("all languages are shown without scripts", panels > 2 && (await page.locator(".panel:visible .language:visible").count()) === panels, panels);
  check("nothing is shown that needs scripts", (await page.locator(".copy:visible, .languages:visible, .search:visible, .key:visible").count()) === 0);
  await alone.close();
}

// checkOperations goes to every operation as links do. Each resource is a new page load.
async function checkOperations(page) {
  await visit(page, "/docs/index");
  const links = await page.locator("a[href*='#tag/']").evaluateAll((links) => links.map((a) => [a.getAttribute("href"), a.textContent]));
  const references = new Set(links.map(([path]) => path.split("#")[0]));
  check("operations are listed", links.length > 20 && references.has("/docs/reference/v2"), links);
  const resources = new Map();
  for (const link of links) {
    const resource = link[0].slice(0, link[0].lastIndexOf("/"));
    resources.set(resource, [...(resources.get(resource) ?? []), link]);
  }
  for (const [resource, operations] of resources) {
    await visit(page, "about:blank");
    for (const [path, summary] of operations) {
      await visit(page, path);
      await page.locator(section(path)).getByText(summary, { exact: false }).first().waitFor();
    }
    await accessible(page, { include: [resource, ...operations.map(([path]) => path)].map(section) });
  }
  for (const reference of references) {
    await visit(page, links.find(([path]) => path.startsWith(`${reference}#`))[0]);
    await page.locator("#reference h1").waitFor();
    await accessibleInBoth(page);
    const hidden = await page.locator(".scalar-code-copy").evaluateAll((all) => all.filter((button) => getComputedStyle(button).opacity !== "1").length);
    check(`${reference}: the buttons that copy are visible`, hidden === 0, hidden);
    await page.setViewportSize(phone);
    const wide = await page.evaluate(() => [document.documentElement.scrollWidth, ...[...document.querySelectorAll(".scalar-code-block")].map((block) => Math.round(block.getBoundingClientRect().right))]);
    check(`${reference} fits a phone`, wide.every((width) => width <= phone.width), wide);
    await page.setViewportSize(desk);
  }
  return links.length;
}

// section selects what the reference has at a path.
function section(path) {
  return `section[id$="${path.slice(path.indexOf("#") + 1)}"]`;
}

// checkOldLinks follows a link of the time when each resource had a page.
async function checkOldLinks(page) {
  await visit(page, "/docs/reference/v2/clients#clients-update");
  await page.waitForURL((url) => url.pathname === "/docs/reference/v2" && url.hash === "#tag/clients/clients-update");
}

// checkAnnouncement announces the end of version 1, which puts a notice on pages: nothing is between a title and its
// text, and the notice has the font of the pages. It cancels the announcement at the end.
async function checkAnnouncement(page) {
  await visit(page, "/docs");
  if (await page.locator("a[href='/docs/migrating']").count() === 0) return;
  const sunset = new Date(Date.now() + 800 * 24 * 3600 * 1000).toISOString().slice(0, 10);
  execFileSync(program, ["v1", "announce", "--sunset", sunset, "--no-mail"]);
  for (;;) { // until the service has read the announcement
    await visit(page, "/docs/migrating");
    if (await page.locator(".notice").count() > 0) break;
  }
  for (const width of [390, 768, 1440]) {
    await page.setViewportSize({ width, height: 900 });
    for (const path of ["/", "/docs", "/docs/migrating", "/docs/migrating/users", "/docs/guide/moving-from-v1"]) {
      await visit(page, path);
      const gap = await page.evaluate(() => {
        const bottom = document.querySelector("h1").getBoundingClientRect().bottom;
        const next = [...document.querySelectorAll("main > :not(.title)")].filter((part) => part.offsetHeight > 0 && part.getBoundingClientRect().left < 500);
        return Math.min(...next.map((part) => part.getBoundingClientRect().top)) - bottom;
      });
      check(`${path}, ${width} px: the text follows the title`, gap >= 0 && gap < 60, gap);
    }
    await visit(page, "/docs/reference/v1");
    await page.locator("#reference h1").waitFor();
    const fonts = await page.evaluate(() => [".notice", ".top"].map((part) => getComputedStyle(document.querySelector(part)).fontFamily));
    check(`${width} px: the notice of the reference has the font of the header`, fonts[0] === fonts[1], fonts);
  }
  await accessible(page, ".notice");
  execFileSync(program, ["v1", "cancel"]);
  await page.setViewportSize(desk);
}

// checkKey tries a request with the key of the demonstration, which is filled in. A key that is typed is stored nowhere,
// and is gone with the page.
async function checkKey(page) {
  await visit(page, "about:blank");
  await visit(page, "/docs/reference/v2#tag/partner/partner-get");
  const field = page.locator("#reference .scalar-password-input").first();
  await field.waitFor({ state: "attached" });
  check("the key of the demonstration is filled in", (await field.inputValue()) === key, await field.inputValue());
  await field.fill("pk_typed_here");
  await visit(page, "about:blank");
  await visit(page, "/docs/reference/v2#tag/partner/partner-get");
  await page.getByRole("button", { name: "Test Request" }).first().click();
  const answer = page.waitForResponse((response) => response.url().endsWith("/v2/partner"));
  await page.getByRole("dialog").getByRole("button", { name: "Send" }).first().click();
  check("a request is tried with the key", (await answer).status() === 200, (await answer).status());

  const stored = await page.evaluate(async () => {
    const held = JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, history.state]);
    const databases = await indexedDB.databases();
    return held + JSON.stringify(databases);
  });
  check("the key is not stored", !stored.includes(key) && stored.endsWith("[]"), stored);
  await page.reload();
  await field.waitFor();
  const kept = await page.locator("#reference .scalar-password-input").first().inputValue();
  check("the key is gone with the page", kept === key, kept);
}

// checkScripts checks what scripts do on pages, and what pages do without them.
async function checkScripts(page) {
  await checkSamples(page);
  await checkNavigation(page);
  await checkPhone(page);
  await checkWords(page);
  await checkNotFound(page);
  await checkWithoutScript();
  await checkOwnKey(page);
  await checkSkip(page);
  await checkSearch(page);
  await checkSearchKeys(page);
  await checkOldLinks(page);
  await checkKey(page);
  await checkPieces();
}

let operations = 0;
try {
  // Each has a tab, and so a process, of its own.
  const pages = [await opened(), await opened(), await opened()];
  [operations] = await Promise.all([checkOperations(pages[0]), checkGuides(pages[1]), checkScripts(pages[2])]);
  await checkAnnouncement(pages[0]); // adds a notice to all pages for a while
} catch (error) {
  check("all was checked", false, String(error?.stack ?? error));
} finally {
  await stop();
}
console.log(failed ? `${failed} of the checks of pages failed` : `Chromium shows the guides and all ${operations} operations, without an error or a foreign request`);
process.exit(failed ? 1 : 0);
