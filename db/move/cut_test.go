//go:build slow

package move

import (
	"context"
	"strings"
	"testing"
)

// TestMoveCutShort: a move that ends at any point goes on, or is taken back where the new
// cell does not serve the partner yet.
func TestMoveCutShort(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"copied users", "copied", "frozen", "differences copied", "checked", "frozen without end", "detached"} {
		for _, cancel := range []bool{false, true} {
			if cancel && point == "detached" {
				continue
			}
			t.Run(strings.ReplaceAll(point, " ", "_")+map[bool]string{true: "/cancel"}[cancel], func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				ctx, end := context.WithCancel(t.Context())
				w.points[point] = end
				if err := w.Run(ctx); err == nil && point != "detached" {
					t.Fatal("the move did not end")
				}
				w.points = nil
				if !cancel {
					w.must(w.Run(t.Context()))
					w.moved()
					return
				}
				w.must(w.Cancel(t.Context()))
				w.unmoved()
			})
		}
	}
}
