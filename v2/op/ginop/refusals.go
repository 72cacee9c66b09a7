package ginop

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// refusals sums up the requests that were answered 429, so that callers who go on in
// spite of it do not fill the log: one line for each window, with those who were
// refused most. It is safe for concurrent use.
type refusals struct {
	log *slog.Logger

	mu   sync.Mutex
	sums map[refused]int
}

// refused is who is refused: a key by its prefix, or an address without a valid one.
type refused struct{ key, address string }

const (
	// refusedAtOnce bounds how many are summed up at a time; further addresses are
	// summed up together. Keys are as many as were made.
	refusedAtOnce = 10_000
	// refusedNamed is how many keys a line names, and how many addresses.
	refusedNamed = 10
)

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
	if len(r.sums) == 0 {
		time.AfterFunc(window, r.flush)
	}
	if who.key == "" && r.sums[who] == 0 && len(r.sums) >= refusedAtOnce {
		who = refused{address: "others"}
	}
	r.sums[who]++
}

// flush logs a window. Keys are named apart from addresses, as strangers may come from
// many of those.
func (r *refusals) flush() {
	r.mu.Lock()
	sums := r.sums
	r.sums = map[refused]int{}
	r.mu.Unlock()

	requests, keys, addresses := 0, map[string]int{}, map[string]int{}
	for who, n := range sums {
		requests += n
		if who.key != "" {
			keys[who.key] = n
		} else {
			addresses[who.address] = n
		}
	}
	r.log.LogAttrs(context.Background(), slog.LevelInfo, "requests refused as too many",
		slog.Int("requests", requests), slog.Int("keys", len(keys)), slog.String("top_keys", top(keys)),
		slog.Int("addresses", len(addresses)), slog.String("top_addresses", top(addresses)), slog.Duration("within", window))
}

// top names those with the highest counts, the highest first.
func top(counts map[string]int) string {
	most := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var words []string
	for _, who := range most[:min(len(most), refusedNamed)] {
		words = append(words, fmt.Sprintf("%s %d", who, counts[who]))
	}
	return strings.Join(words, ", ")
}
