// Verifies the service's event signatures with two public libraries: Stripe's for
// X-Service-Signature, and that of Standard Webhooks for the three webhook headers.
//
//   node verify.mjs VECTORS
//
// VECTORS is a JSON file: [{"name", "id", "time", "secrets", "body", "headers"}]. The
// secrets are written as the API shows them, newest first. Each secret must verify both
// signatures. Another secret, another body or a later time must not.
import { readFileSync } from "node:fs";
import Stripe from "stripe";
import { Webhook } from "standardwebhooks";

const stripe = new Stripe("none", { telemetry: false });
const stranger = "whsec_" + Buffer.alloc(33, 7).toString("base64");

const byStripe = (v, secret, body = v.body, at = v.time) =>
  stripe.webhooks.constructEvent(body, v.headers["x-service-signature"], secret, 300, undefined, at * 1000);

// The library compares with the clock, which the vectors' times are far from.
const byStandard = (v, secret, body = v.body, at = v.time) => {
  const now = Date.now;
  Date.now = () => at * 1000;
  try {
    return new Webhook(secret).verify(body, v.headers);
  } finally {
    Date.now = now;
  }
};

const accepts = (verify, ...args) => {
  try {
    verify(...args);
    return true;
  } catch {
    return false;
  }
};

const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"));
let failures = 0;
const want = (ok, text) => {
  if (!ok) {
    failures++;
    console.error(text);
  }
};
if (!vectors.length) want(false, "there are no vectors");
vectors.forEach((v) => {
  for (const [name, verify] of [["stripe", byStripe], ["standardwebhooks", byStandard]]) {
    if (verify === byStripe && !v.body) continue; // which refuses whatever has no body
    for (const secret of v.secrets) {
      want(accepts(verify, v, secret), `${v.name}: ${name} refuses the signature`);
      want(!accepts(verify, v, secret, v.body + " "), `${v.name}: ${name} accepts another body`);
      want(!accepts(verify, v, secret, v.body, v.time + 3600), `${v.name}: ${name} accepts an old signature`);
    }
    want(!accepts(verify, v, stranger), `${v.name}: ${name} accepts another secret`);
  }
});
if (failures) process.exit(1);
console.log(`${vectors.length} signatures verify with stripe and standardwebhooks`);
