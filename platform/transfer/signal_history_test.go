//go:build slow

package transfer_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSignalsInAnyOrder: a history that arrives in any order, with repetitions and in
// any number of runs, ends where the same history does in its order. Scores and
// counters are what they would be if they were made anew.
func TestSignalsInAnyOrder(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	for seed := range uint64(25) {
		r := rand.New(rand.NewPCG(seed, 7))
		users := 1 + r.IntN(4)
		inOrder, shuffled := p.office(users), p.office(users)
		history := make([]happening, 1+r.IntN(120))
		for i := range history {
			history[i] = random(r, users)
		}
		slices.SortStableFunc(history, func(a, b happening) int { return a.at.Compare(b.at) })
		var first, second []string
		for i, h := range history {
			first = append(first, h.line(fmt.Sprintf("%d a %d", seed, i), inOrder))
			for range 1 + r.IntN(2) {
				second = append(second, h.line(fmt.Sprintf("%d b %d", seed, i), shuffled))
			}
		}
		p.ingest(first...)
		r.Shuffle(len(second), func(i, j int) { second[i], second[j] = second[j], second[i] })
		for rest := second; len(rest) > 0; {
			n := min(1+r.IntN(20), len(rest))
			p.ingest(rest[:n]...)
			rest = rest[n:]
		}
		if a, b := p.text(shownOfOffice, inOrder.client), p.text(shownOfOffice, shuffled.client); a != b {
			t.Fatalf("seed %d: in order and shuffled\n%s", seed, differing(a, b))
		}
		for _, o := range []*office{inOrder, shuffled} {
			before := p.text(everything, o.client)
			if a, b := p.text(counted, o.client), p.text(recounted, o.client); a != b {
				t.Errorf("seed %d: counted %s, recounted %s", seed, a, b)
			}
			p.rescore(o)
			if after := p.text(everything, o.client); after != before {
				t.Fatalf("seed %d: stored and scored anew\n%s", seed, differing(before, after))
			}
		}
		before := p.text(everything, shuffled.client)
		p.ingest(second...)
		if after := p.text(everything, shuffled.client); after != before {
			t.Fatalf("seed %d: a repetition changed\n%s", seed, differing(before, after))
		}
	}
}
