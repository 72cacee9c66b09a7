package lastout_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"partnerapi/db/internal/lastout"
)

func TestOpensOnceAndLastOneShuts(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	var shuts int
	shut := func() error { shuts++; return nil }
	first, err := lastout.Enter(ctx, dir, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	second, err := lastout.Enter(ctx, dir, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for i, leave := range []struct {
		lease *lastout.Lease
		want  int
	}{{first, 0}, {first, 0}, {second, 1}, {second, 1}} {
		if err := leave.lease.Leave(shut); err != nil {
			t.Fatal(err)
		}
		if shuts != leave.want {
			t.Fatalf("after leaving %d: shut %d times, want %d", i, shuts, leave.want)
		}
	}
}

// Many come and go at once: whoever is in finds the thing open.
func TestNoGapBetweenLastOutAndFirstIn(t *testing.T) {
	dir := t.TempDir()
	var isOpen atomic.Bool
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 20 {
				lease, err := lastout.Enter(context.Background(), dir, func() error { isOpen.Store(true); return nil })
				if err != nil {
					t.Error(err)
					return
				}
				if !isOpen.Load() {
					t.Error("in, but it is shut")
				}
				if err := lease.Leave(func() error { isOpen.Store(false); return nil }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if isOpen.Load() {
		t.Error("all left, and it is still open")
	}
}

func TestEnterFails(t *testing.T) {
	dir := t.TempDir()
	broken := errors.New("broken")
	if _, err := lastout.Enter(t.Context(), dir, func() error { return broken }); !errors.Is(err, broken) {
		t.Fatalf("got %v, want %v", err, broken)
	}
	// The failed one left no trace: the next is alone.
	lease, err := lastout.Enter(t.Context(), dir, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	alone := false
	if err := lease.Leave(func() error { alone = true; return nil }); err != nil || !alone {
		t.Fatalf("alone %v, error %v", alone, err)
	}
}

func TestEnterEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := lastout.Enter(t.Context(), dir, func() error {
		cancel()
		_, err := lastout.Enter(ctx, dir, func() error { return nil })
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
}
