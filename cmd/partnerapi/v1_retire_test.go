package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
)

// says wants a text to hold all of the words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in\n%s", word, text)
		}
	}
}

// goneV1 is the body of a 410.
type goneV1 struct {
	Status         int
	Error, Message string
}

var toClients = regexp.MustCompile(`</v2/clients[?>].*rel="successor-version"`)

// wantGone wants a request to be answered 410, with what is to be called.
func wantGone(t *testing.T, r response, words ...string) response {
	t.Helper()
	body := into[goneV1](r.want(http.StatusGone))
	if body.Status != http.StatusGone || body.Error != "gone" {
		t.Errorf("the body is %s", r.body)
	}
	says(t, body.Message, append(words, "call GET /v2/clients in its place", "see /docs/migrating/clients#get-v1clients")...)
	if links := strings.Join(r.header.Values("Link"), ","); !toClients.MatchString(links) {
		t.Errorf("the links are %s", links)
	}
	return r
}

// TestRetirementUsage: lines that make no sense are refused before a database is
// asked.
func TestRetirementUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, says string }{
		{"v1 announce", "say with --sunset DATE"},
		{"v1 postpone", "say with --sunset DATE"},
		{"v1 brownout add --for=10m", "say with --start TIME"},
		{"v1 announce --sunset=soon", `--sunset: "soon"`},
		{"v1 announce --sunset=2028-01-01 --announced=2027-02-30", `--announced: "2027-02-30"`},
		{"v1 postpone --sunset=2028-13-01", "--sunset"},
		{"v1 phase off", "give a key and a phase"},
		{"v1 phase --all pk_a off", "--all"},
		{"v1 phase --all --partner=Acme off", "--all"},
		{"v1 phase pk_a away", `"away" is no phase: use on, read_only, brownout or off`},
		{"v1 phase pk_a off --until=12:00", `--until: "12:00"`},
		{"v1 brownout add --start=now --for=10m", `--start: "now"`},
		{"v1 brownout add --start=2028-01-01", "--for"},
		{"v1 brownout cancel first", "first"},
	} {
		refused(t, 2, strings.Fields(c.line), c.says)
	}
}

// TestAnnounceCommands: the announcement is on every answer, and on those of a
// service that runs already.
func TestAnnounceCommands(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	key := newKey(t, flag, "--name=sync", "--clients=all", "--scopes=read")
	says(t, must(t, "v1", "announce", flag, "--announced=2024-01-31", "--sunset=2099-01-31"),
		"announced on 2024-01-31: version 1 ends on 2099-01-31.", "within 30 seconds", "Next: ")
	refused(t, 1, []string{"v1", "announce", flag, "--sunset=2099-01-01"}, "v1 postpone", "v1 cancel")
	says(t, must(t, "v1", "cancel", flag), "2024-01-31", "2099-01-31", "taken back", "v1 phase --all on")
	refused(t, 1, []string{"v1", "cancel", flag}, "not announced")
	refused(t, 1, []string{"v1", "postpone", flag, "--sunset=2099-01-01"}, "v1 announce")

	r := serving(t, flag, "--release=2.1")
	if h := r.get("/v1/clients", key).want(http.StatusOK).header; h.Get("Sunset") != "" || h.Get("Deprecation") != "" {
		t.Errorf("unannounced, the headers are %v", h)
	}
	tomorrow := time.Now().AddDate(1, 0, 2).UTC().Format(time.DateOnly)
	refused(t, 1, []string{"v1", "announce", flag, "--sunset=" + time.Now().AddDate(1, 0, -2).UTC().Format(time.DateOnly)},
		"twelve months")
	began := domain.DateOf(time.Now())
	announced := must(t, "v1", "announce", flag, "--sunset="+tomorrow)
	if on := "announced on "; !strings.Contains(announced, on+began.String()) &&
		!strings.Contains(announced, on+domain.DateOf(time.Now()).String()) {
		t.Errorf("on %s, it says %s", began, announced)
	}
	says(t, announced,
		"operations have no successor in release 2.1", "POST /v1/clients, ", "DELETE /v1/clients/{client_id}/collections/",
		"serve --release")
	awaitState(t, r, "announced=true sunset="+tomorrow+" ")
	says(t, string(r.get("/docs", "").want(http.StatusOK).body), `<time datetime="`+tomorrow+`">`)
	header := r.get("/v1/unknown", key).want(http.StatusNotFound).header
	if !regexp.MustCompile(`^@\d+$`).MatchString(header.Get("Deprecation")) || header.Get("Sunset") == "" {
		t.Errorf("announced, the headers are %v", header)
	}
	says(t, must(t, "v1", "postpone", flag, "--sunset=2099-02-01T12:00:00Z"), "ends on 2099-02-01T12:00:00Z, not on "+tomorrow)
	refused(t, 1, []string{"v1", "postpone", flag, "--sunset=2099-01-01"}, "only be moved to later")
	refused(t, 1, []string{"v1", "end", flag, "--force"}, "its sunset comes on 2099-02-01T12:00:00Z",
		"less than twelve months ago", "no successor of", "POST /v1/sendphishing")
}

// awaitState waits until a service says that it has followed a change to what the
// words say.
func awaitState(t *testing.T, r *running, words string) {
	t.Helper()
	if r.logs.await(regexp.MustCompile(`the retirement of v1 has changed.*`+words), r.ended) == nil {
		t.Fatalf("the change is not followed:\n%s", r.logs)
	}
}

// TestPhaseCommands: the keys that a command names, and no others, are answered as
// it says, by services that run and by those that start later.
func TestPhaseCommands(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	must(t, "partners", "create", flag, "Other")
	create := []string{flag, "--clients=all", "--scopes=read,write"}
	acme := newKey(t, append(create, "--name=sync", "--partner=Acme")...)
	other := newKey(t, append(create, "--name=other", "--partner=Other")...)
	refused(t, 1, []string{"v1", "phase", flag, "pk_unknown0", "off"}, `no key with the prefix "pk_unknown0"`, "keys list")
	short := prefix(acme)[:len(prefix(acme))-1]
	refused(t, 1, []string{"v1", "phase", flag, short, "off"}, `no key with the prefix "`+short+`"`, "whole", "keys list")
	refused(t, 1, []string{"v1", "phase", flag, "--all", "off"}, "v1 announce", "--force")
	refused(t, 2, []string{"v1", "phase", flag, "--all", "read_only", "--force"}, "--all off")
	refused(t, 1, []string{"v1", "phase", flag, "--partner=Nobody", "off"}, `no partner "Nobody"`)
	refused(t, 1, []string{"v1", "phase", flag, prefix(acme), "off", "--until=2020-01-01"}, "--until", "not after now")

	r := serving(t, flag, "--release=latest")
	r.get("/v1/clients", acme).want(http.StatusOK)
	says(t, must(t, "v1", "phase", flag, prefix(acme), "off", "--until=2098-01-01"),
		prefix(acme)+" (sync): off until 2098-01-01. Running services follow within 30 seconds.")
	awaitState(t, r, "phases=1")
	gone := wantGone(t, r.get("/v1/clients", acme), "version 1 is switched off for this key until 2098-01-01T00:00:00Z")
	if gone.header.Get("Retry-After") == "" || gone.header.Get("Sunset") != "" {
		t.Errorf("the headers are %v", gone.header)
	}
	r.get("/v1/clients", other).want(http.StatusOK)
	r.get("/v2/clients", acme).want(http.StatusOK)
	says(t, string(r.get("/metrics", "").want(http.StatusOK).body),
		`partnerapi_requests_total{operation="clients",status="410",version="v1"} 1`)
	r.finish()

	r = serving(t, flag, "--release=latest")
	wantGone(t, r.get("/v1/clients", acme))
	says(t, must(t, "v1", "phase", flag, "--partner=acme", "read_only"), "the keys of acme: read_only.")
	awaitState(t, r, "phases=1")
	r.get("/v1/clients", acme).want(http.StatusOK)
	r.do("POST", "/v1/clients", acme, fields{"company_name": "New"}).want(http.StatusGone)
	r.do("POST", "/v1/clients", other, fields{"company_name": "New"}).want(http.StatusCreated)
	says(t, must(t, "v1", "phase", flag, "--all", "off", "--force"), "all keys: off.")
	r.finish()
	late := newKey(t, append(create, "--name=late", "--partner=Other")...)
	r = serving(t, flag, "--release=latest")
	for _, key := range []string{acme, other, late} {
		if h := wantGone(t, r.get("/v1/clients", key)).header; h.Get("Retry-After") != "" {
			t.Errorf("a refusal for good says %v", h)
		}
	}
	r.get("/v1/openapi.yaml", "").want(http.StatusOK)
}

// TestBrownoutCommands: brownouts are added, listed, in force for whom they are, and
// cancelled.
func TestBrownoutCommands(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	create := []string{flag, "--clients=all", "--scopes=read"}
	in, out := newKey(t, append(create, "--name=in")...), newKey(t, append(create, "--name=out")...)
	add := func(args ...string) []string { return append([]string{"v1", "brownout", "add", flag}, args...) }
	refused(t, 1, add("--start=2020-01-01", "--for=10m"), "before now")
	refused(t, 1, add("--start=2090-01-01", "--for=10m", "--count=2"), "--every")
	refused(t, 1, add("--start=2090-01-01", "--for=10m", "--keys=pk_unknown0"), "--keys", "keys list")
	says(t, must(t, "v1", "phase", flag, prefix(in), "brownout"), "No brownout is scheduled", "v1 brownout add")
	says(t, must(t, add("--start=2080-01-01", "--for=10m", "--every=168h", "--count=4")...),
		"brownout 1: 10m0s from 2080-01-01, every 168h0m0s, 4 times, the last to 2080-01-22T00:10:00Z.")
	r := serving(t, flag)
	r.get("/v1/clients", in).want(http.StatusOK)

	start := time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)
	text := must(t, add("--start="+start, "--for=700h", "--keys="+prefix(in)+","+prefix(out))...)
	says(t, text, "brownout 2: ", prefix(out)+" is in phase on", "v1 phase "+prefix(out)+" brownout")
	if strings.Contains(text, prefix(in)+" is in") {
		t.Errorf("the key in the phase is named:\n%s", text)
	}
	awaitState(t, r, "brownouts=2")
	gone := wantGone(t, r.get("/v1/clients", in), "version 1 is away until ")
	if gone.header.Get("Retry-After") == "" {
		t.Errorf("the headers are %v", gone.header)
	}
	r.get("/v1/clients", out).want(http.StatusOK)
	list := strings.Join(strings.Fields(must(t, "v1", "brownout", "list", flag)), " ")
	says(t, list, "1 2080-01-01 10m0s 168h0m0s 4 2080-01-01 all in phase brownout", "now, to ", prefix(in)+","+prefix(out))
	says(t, must(t, "v1", "brownout", "cancel", flag, "2"), "brownout 2 is cancelled")
	refused(t, 1, []string{"v1", "brownout", "cancel", flag, "2"}, "no brownout 2", "brownout list")
	r.finish()
	serving(t, flag).get("/v1/clients", in).want(http.StatusOK)
	must(t, "v1", "phase", flag, "--all", "on")
	says(t, must(t, add("--start=2080-01-01", "--for=10m")...), "No key is in phase brownout", "v1 phase KEY brownout")
}

// TestEndCommand: who still calls keeps v1 from ending; then nobody is answered.
func TestEndCommand(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	key := newKey(t, flag, "--name=sync", "--clients=all", "--scopes=read")
	refused(t, 1, []string{"v1", "end", flag}, "v1 announce")
	must(t, "v1", "announce", flag, "--announced=2020-01-31", "--sunset=2021-01-31")

	r := serving(t, flag)
	r.client.do("GET", "/v1/clients", key, nil, "User-Agent", "psa-sync/7").want(http.StatusOK)
	r.finish() // which records the use
	refused(t, 1, []string{"v1", "end", flag, "--force"}, "no successor of", "POST /v1/clients")
	serving(t, flag, "--release=latest").finish()
	refused(t, 1, []string{"v1", "end", flag}, "1 key called it in the last 30 days", "--force", prefix(key)+" (sync): last call ",
		`GET /v1/clients, by "psa-sync/7"`)

	r = serving(t, flag, "--release=latest")
	r.get("/v1/clients", key).want(http.StatusOK)
	done := command(t, "v1", "end", flag, "--force")
	if done.code != 0 {
		t.Fatal(done.err)
	}
	says(t, done.err, "ended although it is called: "+prefix(key))
	says(t, done.out, "version 1 has ended", "v1 phase --all on")
	awaitState(t, r, "ended=true")
	wantGone(t, r.get("/v1/clients", key), "version 1 has ended", "; the sunset of version 1 is 2021-01-31;")
	wantGone(t, r.get("/v1/clients", newKey(t, flag, "--name=late", "--clients=all", "--scopes=read")))
	refused(t, 1, []string{"v1", "end", flag}, "was ended on", "v1 phase --all on")
	refused(t, 1, []string{"v1", "phase", flag, prefix(key), "on"}, "was ended on", "v1 phase --all on")
	says(t, must(t, "v1", "phase", flag, "--all", "on", "--until=2098-01-01"), "The end of version 1 is taken back. From 2098-01-01 on",
		"v1 end")
	if out := must(t, "v1", "phase", flag, "--all", "on"); strings.Contains(out, "taken back") {
		t.Errorf("a second time:\n%s", out)
	}
	awaitState(t, r, "ended=false")
	r.get("/v1/clients", key).want(http.StatusOK)
}
