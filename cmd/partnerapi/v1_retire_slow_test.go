//go:build slow

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRetirementIsFollowed: a service that runs, and one that starts later, does what the
// commands say, for the keys that they name, until version 1 has ended.
func TestRetirementIsFollowed(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	must(t, "partners", "create", flag, "Other")
	create := func(name, partner string) string {
		return newKey(t, flag, "--name="+name, "--partner="+partner, "--clients=all", "--scopes=read,write")
	}
	key, other := create("sync", "Acme"), create("other", "Other")
	s := retiredService{serving(t, flag, "--release=latest"), flag}
	s.noticed("")
	header := s.client.do("GET", "/v1/clients", key, nil, "User-Agent", "psa-sync/7").want(http.StatusOK).header
	if header.Get("Sunset") != "" || header.Get("Deprecation") != "" {
		t.Errorf("unannounced, the headers are %v", header)
	}
	s.after("announce --announced=2020-01-31 --sunset=2021-01-31", "announced=true sunset=2021-01-31 ")
	header = s.get("/v1/unknown", key).want(http.StatusNotFound).header
	if header.Get("Deprecation") != "@1580428800" || header.Get("Sunset") == "" {
		t.Errorf("announced, the headers are %v", header)
	}
	s.noticed(`ends on <time datetime="2021-01-31">31 January 2021</time>`)

	s.after("phase "+prefix(key)+" off --until=2098-01-01", "phases=1")
	if s.gone(key, "version 1 is switched off for this key until 2098-01-01T00:00:00Z").Get("Retry-After") == "" {
		t.Error("a refusal for a time does not say how long")
	}
	s.get("/v1/clients", other).want(http.StatusOK)
	s.get("/v2/clients", key).want(http.StatusOK)
	says(t, string(s.get("/metrics", "").want(http.StatusOK).body), `partnerapi_requests_total{operation="clients",status="410",version="v1"} 1`)
	must(t, "v1", "phase", flag, "--partner=acme", "brownout")
	s.after("brownout add --for=700h --start="+time.Now().UTC().Add(-time.Hour).Format(time.RFC3339), "brownouts=1")
	s.gone(key, "version 1 is unavailable until ")
	s.get("/v1/clients", other).want(http.StatusOK)
	s.finish() // which records the use

	refused(t, 1, []string{"v1", "end", flag}, "2 keys called version 1 in the last 30 days", "--force", prefix(key)+" (sync) of Acme: last call ", `by "psa-sync/7`)
	s.running = serving(t, flag, "--release=latest")
	s.gone(key)
	var status struct {
		Timeline []struct {
			What    string
			Refused *int
		}
	}
	if err := json.Unmarshal([]byte(must(t, "v1", "status", flag, "--json")), &status); err != nil {
		t.Fatal(err)
	}
	if n := len(status.Timeline); n != 2 || status.Timeline[1].What != "brownout 1" || *status.Timeline[1].Refused != 1 {
		t.Errorf("got %+v, want a phase, and a brownout that refused one request", status.Timeline)
	}
	tried := command(t, "v1", "end", flag, "--dry-run")
	if tried.code != 1 {
		t.Fatal(tried)
	}
	says(t, tried.out, "ok    the sunset was on 2021-01-31\n", "fail  2 keys called version 1 in the last 30 days; --force ends version 1 anyway\n",
		"      → partnerapi v1 remind --partner 'Acme'\n", "warn  2 partners were never notified of the end\n",
		"→ partnerapi admins add EMAIL --name NAME --partner 'Acme'\n")
	says(t, must(t, "v1", "end", flag, "--force", "--dry-run"), "warn  2 keys called version 1", "Version 1 can end. Run partnerapi v1 end --force\n")
	s.get("/v2/clients", key).want(http.StatusOK)
	if done := command(t, "v1", "end", flag, "--force"); done.code != 0 || !strings.Contains(done.err, "still called: "+prefix(key)) {
		t.Fatal(done)
	}
	s.follows("ended=true")
	s.noticed(`Version 1 of the API ended on <time datetime="`)
	for _, key := range []string{key, other, create("late", "Other")} {
		if got := s.gone(key, "version 1 has ended", "; the sunset of version 1 is 2021-01-31;").Get("Retry-After"); got != "" {
			t.Errorf("a refusal for good says Retry-After %s", got)
		}
	}
	s.get("/v1/openapi.yaml", "").want(http.StatusOK)
	refused(t, 1, []string{"v1", "end", flag}, "version 1 ended on", "v1 phase --all on")
	refused(t, 1, []string{"v1", "phase", flag, prefix(key), "on"}, "version 1 ended on", "v1 phase --all on")
	says(t, must(t, "v1", "phase", flag, "--all", "on", "--until=2098-01-01"), "The end of version 1 has been undone. From 2098-01-01 on", "v1 end")
	if out := s.after("phase --all on", "ended=false"); strings.Contains(out, "been undone") {
		t.Errorf("a second time:\n%s", out)
	}
	s.get("/v1/clients", key).want(http.StatusOK)
}
