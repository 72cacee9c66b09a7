package domain

import "time"

// Outcome is what a request was answered with.
type Outcome struct {
	Status int
	Body   []byte
}

// OutcomeLife is how long the outcome of a request is kept for its
// Idempotency-Key (decisions 3.11).
const OutcomeLife = 24 * time.Hour
