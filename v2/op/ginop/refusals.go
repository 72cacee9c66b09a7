package ginop

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// refusals sums up the requests answered 429, or without a valid key 401 or 421, so that persistent callers do not
// fill the log: one line per window and status, with the most refused callers. It is safe for concurrent use.
type refusals struct {
	log *slog.Logger

	mu   sync.Mutex
	sums map[refusalKey]int
}

// refusalKey is a status with the caller: the prefix of a valid key or, without one, the address.
type refusalKey struct {
	status       int
	key, address string
}

// summedStatuses maps the statuses that are logged in sums to their log messages.
var summedStatuses = map[int]string{
	http.StatusTooManyRequests:    "requests rejected by a rate limit",
	http.StatusUnauthorized:       "requests rejected without a valid key",
	http.StatusMisdirectedRequest: "requests rejected for keys of other cells",
}

const (
	// refusedAtOnce bounds the entries of a window: further addresses are counted together. Keys are not bounded, as
	// callers cannot invent them.
	refusedAtOnce = 10_000
	// refusedNamed is how many keys and how many addresses a line names at most.
	refusedNamed = 10
)

// newRefusals returns empty sums.
func newRefusals(log *slog.Logger) *refusals {
	return &refusals{log: log, sums: map[refusalKey]int{}}
}

// add counts a refusal by its key or, without one, by its address. The first one starts a window, at whose end flush
// runs. A window with refusedAtOnce entries gets no more addresses: it counts further ones together, as others.
func (r *refusals) add(who refusalKey) {
	if who.key != "" {
		who.address = ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sums) == 0 {
		time.AfterFunc(window, r.flush)
	}
	if who.key == "" && r.sums[who] == 0 && len(r.sums) >= refusedAtOnce {
		who = refusalKey{status: who.status, address: "others"}
	}
	r.sums[who]++
}

// flush logs a window, a line per status, and empties it: the next refusal starts another.
func (r *refusals) flush() {
	r.mu.Lock()
	sums := r.sums
	r.sums = map[refusalKey]int{}
	r.mu.Unlock()
	for _, status := range slices.Sorted(maps.Keys(summedStatuses)) {
		r.logStatus(status, sums)
	}
}

// logStatus logs a window's refusals of a status, if any. Keys and addresses are listed separately, as unauthenticated
// callers may use many addresses.
func (r *refusals) logStatus(status int, sums map[refusalKey]int) {
	requests, keys, addresses := 0, map[string]int{}, map[string]int{}
	for who, n := range sums {
		if who.status != status {
			continue
		}
		requests += n
		if who.key != "" {
			keys[who.key] = n
		} else {
			addresses[who.address] = n
		}
	}
	if requests == 0 {
		return
	}
	r.log.LogAttrs(context.Background(), slog.LevelInfo, summedStatuses[status],
		slog.Int("requests", requests), slog.Int("keys", len(keys)), slog.String("top_keys", topCounts(keys)),
		slog.Int("addresses", len(addresses)), slog.String("top_addresses", topCounts(addresses)), slog.Duration("within", window))
}

// topCounts formats the highest counts, at most refusedNamed, in descending order.
func topCounts(counts map[string]int) string {
	most := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var words []string
	for _, who := range most[:min(len(most), refusedNamed)] {
		words = append(words, fmt.Sprintf("%s %d", who, counts[who]))
	}
	return strings.Join(words, ", ")
}
