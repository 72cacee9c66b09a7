package openapi

import "partnerapi/v2/op"

// followBy says from where a caller continues to follow a list: from the horizon, where the release shows it.
func followBy(release op.Release) string {
	if release >= op.V2_5 {
		return "the `page.as_of` of any page, or from the greatest `updated_at` that you have seen"
	}
	return "the greatest `updated_at` that you have seen or, if the items have none, from one minute before the first page's `Date` header"
}

// about returns the description of v2's document of a release, in Markdown.
func about(release op.Release) string {
	return aboutStart + followBy(release) + aboutEnd
}

const aboutStart = `The partner API of a security awareness training service. It gives a partner access to its clients.

**API keys.** Send your API key in the ` + "`X-API-Key`" + ` header of every request. A request for an object that the key has no ` +
	`access to returns 404, as if the object did not exist.

**IDs** are opaque strings. Store them; do not parse or build them.

**Lists** are paginated. Pass ` + "`page.next_cursor`" + ` as ` + "`cursor`" + `, with the same filters, until ` +
	"`next_cursor`" + ` is null. With the ` + "`updated_since`" + ` parameter, a list returns only items that changed at or after ` +
	`that time. Continue from `

const aboutEnd = `.

**Times** are RFC 3339 in UTC, dates are UTC days, and percentages go from 0 to 100 with one decimal.

**Errors** share one format with a stable ` + "`code`" + `; ` + "`fields`" + ` names every invalid part of the request. ` +
	`Later releases may add fields, enum values and event types to responses; ignore any that you do not know.

**Rate limits.** Each API key allows 600 requests a minute and 16 concurrent requests. If an operation has a lower limit per ` +
	`client, its description says so; the ` + "`X-RateLimit`" + ` headers report the limit that applies.`

// aboutUpdatedSince returns what a document adds to the description of updated_since in every list.
func aboutUpdatedSince(release op.Release) string {
	return " To follow the list, begin with 1970-01-01T00:00:00Z and continue from " + followBy(release) + "."
}

// aboutAdditions explains additions, in a document that has some.
const aboutAdditions = "\n\n**Additions.** Operations with the Addition badge are not part of the API that its owner published. " +
	"They are served and supported like all other operations, but other services that implement the API may not have them."

// aboutRetries follows about in a document with operations that accept an Idempotency-Key.
const aboutRetries = "\n\n**Retries.** Send an `Idempotency-Key` with a POST so that you can safely repeat the request for 24 hours."
