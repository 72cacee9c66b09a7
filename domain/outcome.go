package domain

import "time"

// Outcome is the response to a request.
type Outcome struct {
	Status int
	Body   []byte
	// Sealed is recorded instead of Body if that contains a secret. It is the body, encrypted for the UUID SealedFor.
	// Nil means that Body is recorded. An outcome that was read from its record has only one of the two.
	Sealed    []byte
	SealedFor string
}

// OutcomeLife is how long the outcome of a request with an Idempotency-Key is kept (decisions 3.11).
const OutcomeLife = 24 * time.Hour

// ReservedFor is how long an Idempotency-Key stays reserved if the process of the request died. It is longer than any
// request takes.
const ReservedFor = 30 * time.Second

// RequestDigest identifies a request with an Idempotency-Key.
type RequestDigest struct {
	// Exact is the digest of the request as it was sent. Release 1.0 records and compares nothing else.
	Exact []byte
	// Canonical is the digest of the request with its body in canonical form (RFC 8785).
	Canonical []byte
}
