package lease

import (
	"math/rand/v2"
	"time"
)

// Pauses are those after failed tries of a row (backoff); the last one repeats.
type Pauses []time.Duration

// After is the pause after the given number of failed tries, a tenth more or less, so that rows
// that failed together are not all tried together.
func (p Pauses) After(tries int) time.Duration {
	pause := p[min(max(tries, 1), len(p))-1]
	return pause - pause/10 + rand.N(pause/5)
}
