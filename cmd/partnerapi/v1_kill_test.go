//go:build slow

package main

import (
	"net/http"
	"testing"

	"partnerapi/db/seed"
)

// TestV1SurvivesKill kills a service, its database server with it. All calls are there that
// were counted before a flush that was seen, and none is there twice. What a command has said
// is done holds from the first request on.
func TestV1SurvivesKill(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	flag := "--data-dir=" + dir
	first := process(t, dir, "--demo")
	answered := 0
	call := func(r *running, n, status int) (last response) {
		for range n {
			last = r.get("/v1/clients?limit=1", "pk_demo_all").want(status)
			answered++
		}
		return last
	}
	call(first, 20, http.StatusOK)
	written := 0
	await(t, "a flush", func() bool { written = recordedUse(t, dir); return written > 0 })
	if written > answered {
		t.Errorf("%d calls are written of %d", written, answered)
	}
	call(first, 20, http.StatusOK)
	must(t, "v1", "announce", flag, "--announced=2024-01-31", "--sunset=2099-01-31")
	must(t, "v1", "phase", flag, "--partner="+seed.DemoPartner, "off", "--until=2099-01-01")
	first.kill()

	second := process(t, dir, "--demo")
	left := recordedUse(t, dir)
	if left < written || left > answered {
		t.Errorf("%d calls are left; %d were written, and %d made", left, written, answered)
	}
	if header := call(second, 2, http.StatusGone).header; header.Get("Sunset") == "" || header.Get("Retry-After") == "" {
		t.Errorf("the headers are %v", header)
	}
	second.get("/v1/clients", "pk_demo_other").want(http.StatusOK)
	second.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
	second.finish()
	must(t, "v1", "phase", flag, "--all", "on")
	third := process(t, dir, "--demo")
	if n := recordedUse(t, dir); n != left+4 { // the call of version 2 too, as it follows one of version 1
		t.Errorf("%d calls after 4 more than %d", n, left)
	}
	call(third, 1, http.StatusOK)
	third.finish()
}

// recordedUse is how many calls of v1, and of what follows them in v2, the database of a data directory has.
func recordedUse(t *testing.T, dir string) int {
	t.Helper()
	d, leave := lookInto(t, dir)
	defer leave()
	return d.number("SELECT coalesce(sum(calls), 0)::bigint FROM v1_usage WHERE day >= current_date - 1")
}
