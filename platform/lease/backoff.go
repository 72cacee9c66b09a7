package lease

import (
	"math/rand/v2"
	"time"
)

// Backoff is the pauses after failed tries of a row; the last one repeats.
type Backoff []time.Duration

// After is the pause after the given number of failed tries, a tenth more or less, so that rows
// that failed together are not all tried together.
func (p Backoff) After(tries int) time.Duration {
	pause := p[min(max(tries, 1), len(p))-1]
	return pause - pause/10 + rand.N(pause/5)
}
