//go:build slow

package main

import (
	"context"
	"io"
	"net/http"
	"testing"
	"time"

	"partnerapi/cmd/internal/database"
	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// TestUsageSurvivesKill kills a service that counts: all calls are there that were
// made before a flush that was seen, and none is there twice.
func TestUsageSurvivesKill(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := process(t, dir, "--demo")
	answered := int64(0)
	call := func(r *running, n int) {
		for range n {
			r.get("/v1/clients?limit=1", "pk_demo_all").want(http.StatusOK)
			answered++
		}
	}
	call(first, 20)
	written := awaitUse(t, dir)
	if written > answered {
		t.Errorf("%d calls are written of %d", written, answered)
	}
	call(first, 20)
	first.kill()

	second := process(t, dir, "--demo")
	left := recordedUse(t, dir)
	if left < written || left > answered {
		t.Errorf("%d calls are left; %d were written, and %d made", left, written, answered)
	}
	call(second, 3)
	second.finish()
	third := process(t, dir, "--demo")
	if n := recordedUse(t, dir); n != left+3 {
		t.Errorf("%d calls after 3 more than %d", n, left)
	}
	third.finish()
}

// awaitUse waits for a flush, and returns how many calls it wrote.
func awaitUse(t *testing.T, dir string) int64 {
	t.Helper()
	late := time.After(patience)
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for {
		if n := recordedUse(t, dir); n > 0 {
			return n
		}
		select {
		case <-look.C:
		case <-late:
			t.Fatal("no flush was seen")
		}
	}
}

// recordedUse is how many calls of v1 the database of a data directory has.
func recordedUse(t *testing.T, dir string) (calls int64) {
	t.Helper()
	d, shut, err := database.Flags{DataDir: dir}.Connect(context.Background(), io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shut(); err != nil {
			t.Error(err)
		}
	}()
	rows, err := usage.From(t.Context(), d, domain.DateOf(time.Now()).AddDays(-1))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		calls += r.Calls
	}
	return calls
}
