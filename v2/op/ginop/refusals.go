package ginop

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// refusals sums up the requests that were answered 429, so that a caller who
// goes on in spite of it does not fill the log: one line for each key, or
// address without a valid one, and window. It is safe for concurrent use.
type refusals struct {
	log *slog.Logger

	mu   sync.Mutex
	sums map[refused]int
}

// refused is who is refused.
type refused struct{ key, address string }

// refusedAtOnce bounds how many are summed up at a time; further ones are
// summed up together.
const refusedAtOnce = 10_000

func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, sums: map[refused]int{}}
}

// add counts a refusal. The first of a window has all of it logged at its end.
func (r *refusals) add(who refused) {
	if who.key != "" {
		who.address = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sums[who] == 0 && len(r.sums) >= refusedAtOnce {
		who = refused{address: "others"}
	}
	if r.sums[who]++; r.sums[who] == 1 {
		time.AfterFunc(window, func() { r.flush(who) })
	}
}

func (r *refusals) flush(who refused) {
	r.mu.Lock()
	n := r.sums[who]
	delete(r.sums, who)
	r.mu.Unlock()
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "requests refused as too many",
		slog.String("key", who.key), slog.String("address", who.address),
		slog.Int("requests", n), slog.Duration("within", window))
}
