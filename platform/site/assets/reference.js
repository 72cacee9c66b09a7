// Scalar's page of an OpenAPI document of this service. Nothing is asked of another host. The
// key is the one that the reader gave to all pages, else that of a demonstration, else what is typed here, which is not
// stored.
"use strict";

// anchorOf makes the end of an operation's hash of its id, as the links of guides have it.
const anchorOf = (id) => id.replaceAll(/[._]/g, "-");

// current is the hash that a hash of earlier pages, the operation alone, has become.
async function current(hash, index) {
  if (!/^#[a-z0-9-]+$/.test(hash)) return hash;
  const entries = await (await fetch(index)).json();
  const begin = location.pathname + "#tag/";
  const entry = entries.find(({ path }) => path.startsWith(begin) && path.endsWith("/" + hash.slice(1)));
  return entry ? new URL(entry.path, location.href).hash : hash;
}

// label names the parts of Scalar that have an icon or no label of their own.
function label() {
  for (const button of document.querySelectorAll("button:is(.scalar-code-copy, [class*=copy-button]):not([aria-label])")) {
    button.setAttribute("aria-label", "Copy");
  }
  for (const field of document.querySelectorAll("[role=combobox].code-input-lite__editor")) {
    if (!field.hasAttribute("aria-label")) {
      const name = field.closest("td")?.querySelector("label")?.textContent.trim();
      field.setAttribute("aria-label", name || field.dataset.placeholder || "Value");
    }
    if (!field.hasAttribute("aria-expanded")) field.setAttribute("aria-expanded", "false");
  }
}

// keepLabeled calls label after changes of the page, before anything else can see them.
function keepLabeled() {
  new MutationObserver(label)
    .observe(document.body, { childList: true, subtree: true, attributeFilter: ["aria-expanded", "aria-label", "role"] });
}

async function start() {
  const place = document.getElementById("reference");
  const hash = await current(location.hash, place.dataset.index).catch(() => location.hash);
  if (hash !== location.hash) history.replaceState(null, "", hash);

  const input = document.getElementById("your-key");
  const sample = place.dataset.key.startsWith("pk_") ? place.dataset.key : ""; // else it stands for a key
  const keyOf = () => (input.checkValidity() && input.value) || sample;
  const configuration = () => ({
    authentication: { preferredSecurityScheme: "ApiKey", securitySchemes: { ApiKey: { value: keyOf() } } },
    url: place.dataset.document,
    generateTagSlug: (tag) => tag.name,
    generateOperationSlug: ({ operationId }) => anchorOf(operationId),
    withDefaultFonts: false, telemetry: false, persistAuth: false,
    agent: { disabled: true }, mcp: { disabled: true }, hideClientButton: true, showDeveloperTools: "never",
    documentDownloadType: "direct", hideDarkModeToggle: true, hideModels: true, hideSearch: true,
    orderSchemaPropertiesBy: "preserve", orderRequiredPropertiesFirst: false,
    showOperationId: true, setPageTitle: ({ title }) => `${title} · Partner API`,
    localization: { translations: { navigation: { showAllEndpoints: "Show More: {name}" } } },
    defaultHttpClient: { targetKey: "shell", clientKey: "curl" },
  });
  keepLabeled();
  const reference = Scalar.createApiReference(place, configuration());
  input.addEventListener("change", () => reference.updateConfiguration(configuration()));

  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the hash is Scalar's
    const content = place.querySelector("main") ?? place;
    content.tabIndex = -1;
    content.focus();
  });
}

document.addEventListener("DOMContentLoaded", start); // after site.js has the key
