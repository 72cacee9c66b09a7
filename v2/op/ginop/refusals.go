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

// refusals sums up the requests that were answered 429, or without a valid key 401 or
// 421, so that callers who go on in spite of it do not fill the log: one line for each
// window and status, with those who were refused most. It is safe for concurrent use.
type refusals struct {
	log *slog.Logger

	mu   sync.Mutex
	sums map[refused]int
}

// refused is who is refused, and how: a key by its prefix, or an address without a valid
// one.
type refused struct {
	status       int
	key, address string
}

// summed are the statuses that are logged in sums, and what the log says of them.
var summed = map[int]string{
	http.StatusTooManyRequests:    "requests refused as too many",
	http.StatusUnauthorized:       "requests refused without a valid key",
	http.StatusMisdirectedRequest: "requests refused for keys of other cells",
}

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
		who = refused{status: who.status, address: "others"}
	}
	r.sums[who]++
}

// flush logs a window, a line for each status.
func (r *refusals) flush() {
	r.mu.Lock()
	sums := r.sums
	r.sums = map[refused]int{}
	r.mu.Unlock()
	for _, status := range slices.Sorted(maps.Keys(summed)) {
		r.logStatus(status, sums)
	}
}

// logStatus logs a window's refusals of a status, where there are some. Keys are named
// apart from addresses, as strangers may come from many of those.
func (r *refusals) logStatus(status int, sums map[refused]int) {
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
	r.log.LogAttrs(context.Background(), slog.LevelInfo, summed[status],
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
