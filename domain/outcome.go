package domain

import "time"

// Outcome is what a request was answered with.
type Outcome struct {
	Status int
	Body   []byte
	// Sealed is what is recorded instead of a Body that holds a secret: the
	// body, encrypted for the UUID SealedFor. Nil where the body is recorded. A
	// recorded outcome has one of the two.
	Sealed    []byte
	SealedFor string
}

// OutcomeLife is how long the outcome of a request is kept for its
// Idempotency-Key (decisions 3.11).
const OutcomeLife = 24 * time.Hour

// ReservedFor is how long an Idempotency-Key stays taken by a request that works
// outside of a transaction and whose process died: longer than any request takes.
const ReservedFor = 30 * time.Second
