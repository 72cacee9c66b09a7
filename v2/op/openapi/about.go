package openapi

import "partnerapi/v2/op"

// followBy says from where a caller continues to follow a list: from the horizon, where the release shows it.
func followBy(release op.Release) string {
	if release >= op.V2_5 {
		return "the `page.as_of` of any page, or from the greatest `updated_at` that you have seen"
	}
	return "the greatest `updated_at` that you have seen or, if the items show none, from the `Date` of the first page less one minute"
}

// about returns the description of v2's document of a release, in Markdown.
func about(release op.Release) string {
	return aboutStart + followBy(release) + aboutEnd
}

const aboutStart = `A partner's access to its clients on a security awareness training service.

**Keys.** Every request carries an API key in the header ` + "`X-API-Key`" + `. What the key does not reach is answered ` +
	`as if it did not exist: 404.

**Ids** are opaque texts. Store them; do not parse or build them.

**Lists** are read page by page. Pass ` + "`page.next_cursor`" + ` as ` + "`cursor`" + `, with the same filters, until it ` +
	`is null. A list that takes ` + "`updated_since`" + ` returns only what changed: continue from `

const aboutEnd = `.

**Times** are RFC 3339 in UTC, days are UTC days, percentages go from 0 to 100 with one decimal.

**Errors** have one envelope with a stable ` + "`code`" + `; ` + "`fields`" + ` names every wrong part of the request. ` +
	`Later versions may add members, values and types of events to responses: ignore those that you do not know.

**Rate limits.** A key may make 600 requests a minute, and 16 at a time. An operation with a tighter limit for each ` +
	`client says so; the ` + "`X-RateLimit`" + ` headers report the one that applies.`

// aboutUpdatedSince returns what a document adds to the description of updated_since in every list.
func aboutUpdatedSince(release op.Release) string {
	return " To follow the list, begin with 1970-01-01T00:00:00Z and continue from " + followBy(release) + "."
}

// aboutAdditions explains additions, in a document that has some.
const aboutAdditions = "\n\n**Additions.** An operation with the badge Addition is not in the interface as its owner published it. " +
	"It is served and supported like all others; another service with that interface may lack it."

// aboutRetries follows about in a document with operations that accept an Idempotency-Key.
const aboutRetries = "\n\n**Retries.** Send an `Idempotency-Key` with a POST, and repeat the request safely for 24 hours."
