//go:build slow

package main

import (
	"net/http"
	"testing"

	"partnerapi/db/seed"
)

// TestPhasesSurviveKill: what a command has said is done holds after the service,
// its database server with it, was killed, from the first request on.
func TestPhasesSurviveKill(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	flag := "--data-dir=" + dir
	first := process(t, dir, "--demo")
	first.get("/v1/clients", "pk_demo_all").want(http.StatusOK)
	must(t, "v1", "announce", flag, "--announced=2024-01-31", "--sunset=2099-01-31")
	must(t, "v1", "phase", flag, "--partner="+seed.DemoPartner, "off", "--until=2099-01-01")
	first.kill()

	second := process(t, dir, "--demo")
	header := second.get("/v1/clients", "pk_demo_all").want(http.StatusGone).header
	if header.Get("Sunset") == "" || header.Get("Retry-After") == "" {
		t.Errorf("the headers are %v", header)
	}
	second.get("/v1/clients", "pk_demo_other").want(http.StatusOK)
	second.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
	second.kill()
	must(t, "v1", "phase", flag, "--all", "on")
	third := process(t, dir, "--demo")
	third.get("/v1/clients", "pk_demo_all").want(http.StatusOK)
	third.finish()
}
