package main

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/operator"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
)

// TestRetirementUsage: lines that make no sense are refused before a database is
// asked.
func TestRetirementUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, says string }{
		{"v1 announce", "set --sunset DATE"},
		{"v1 postpone", "set --sunset DATE"},
		{"v1 brownout add --for=10m", "set --start TIME"},
		{"v1 announce --sunset=soon", `--sunset: "soon"`},
		{"v1 announce --sunset=2028-01-01 --announced=2027-02-30", `--announced: "2027-02-30"`},
		{"v1 postpone --sunset=2028-13-01", "--sunset"},
		{"v1 phase off", "specify a key and a phase"},
		{"v1 phase --all pk_a off", "--all"},
		{"v1 phase --all --partner=Acme off", "--all"},
		{"v1 phase pk_a away", `"away" is not a phase; use on, read_only, brownout or off`},
		{"v1 phase pk_a off --until=12:00", `--until: "12:00"`},
		{"v1 brownout add --start=now --for=10m", `--start: "now"`},
		{"v1 brownout add --start=2028-01-01", "--for"},
		{"v1 brownout cancel first", "first"},
		{"v1 phase --all read_only --force", "--all off"},
		{"v1 phase --new read_only", "--new accepts only on or off"},
		{"v1 phase --new off --until=2099-01-01", "--new accepts only on or off, without --until"},
		{"v1 phase --new --all off", "--new"},
		{"v1 phase --new pk_a off", "specify a key and a phase"},
	} {
		refused(t, 2, strings.Fields(c.line), c.says)
	}
}

// TestRetirementCommands: what each command says, and the entry that it leaves in the audit
// trail. What is refused leaves none.
func TestRetirementCommands(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	d := opened(t, flag)
	client := insertClients(t, d, "Acme", "Hill")[0]
	first := prefix(newKey(t, flag, "--name=sync", "--partner=Acme", "--clients=all", "--scopes=read"))
	other := prefix(newKey(t, flag, "--name=other", "--partner=Acme", "--clients=all", "--scopes=read"))
	if err := retire.NewStore(d.DB, d).RecordRelease(t.Context(), "2.1"); err != nil {
		t.Fatal(err)
	}
	numbers := filepath.Join(t.TempDir(), "numbers")
	writeFile(t, numbers, "client,77,"+client.String()+"\n")
	in := func(days int) string { return d.Now().AddDate(1, 0, days).UTC().Format(time.DateOnly) }

	var done, kinds, given []string // of the commands that are not refused
	for _, c := range []struct {
		line  string
		says  []string
		audit *domain.AuditObject // nil for a command that is refused
		field string              // those of the entry, in the order of their names
	}{
		{"v1 cancel", []string{"not announced"}, nil, ""},
		{"v1 postpone --sunset=2099-01-01", []string{"v1 announce"}, nil, ""},
		{"v1 remind", []string{"v1 announce"}, nil, ""},
		{"v1 end", []string{"v1 announce"}, nil, ""},
		{"v1 announce --sunset=" + in(-2), []string{"twelve months"}, nil, ""},
		{"v1 phase pk_unknown0 off", []string{`no key with the prefix "pk_unknown0"`, "keys list"}, nil, ""},
		{"v1 phase " + first[:len(first)-1] + " off", []string{`no key with the prefix "` + first[:len(first)-1] + `"`, "whole", "keys list"}, nil, ""},
		{"v1 phase --all off", []string{"v1 announce", "--force"}, nil, ""},
		{"v1 phase --partner=Nobody off", []string{`no partner "Nobody"`}, nil, ""},
		{"v1 phase " + first + " off --until=2020-01-01", []string{"--until", "not after the current time"}, nil, ""},

		{"v1 announce --announced=2024-01-31 --sunset=2099-01-31",
			[]string{"announced on 2024-01-31: version 1 ends on 2099-01-31.", "within 30 seconds", "Next: "}, &domain.AuditObject{}, "sunset"},
		{"v1 announce --sunset=2099-01-01", []string{"v1 postpone", "v1 cancel"}, nil, ""},
		{"v1 cancel", []string{"2024-01-31", "2099-01-31", "withdrew the announcement", "v1 phase --all on"}, &domain.AuditObject{}, "sunset"},
		{"v1 announce --sunset=" + in(2), []string{"announced on 20", "operations have no successor in release 2.1", "POST /v1/clients, ",
			"DELETE /v1/clients/{client_id}/collections/", "serve --release",
			"Fields missing from release 2.1 of version 2, which the service serves: ",
			"GET /v1/clients: phishing_click_rate_last_year, phishing_click_rate_total; "}, &domain.AuditObject{}, "sunset"},
		{"v1 remind --partner=acme", []string{"0 emails to owners and admins", "no owner or admin and receive no email: Acme."}, &domain.AuditObject{Kind: "partner"}, ""},
		{"v1 postpone --sunset=2099-02-01T12:00:00Z", []string{"ends on 2099-02-01T12:00:00Z instead of " + in(2)}, &domain.AuditObject{}, "sunset"},
		{"v1 postpone --sunset=2099-01-01", []string{"only be moved to a later date"}, nil, ""},
		{"v1 end --force", []string{"the sunset is on 2099-02-01T12:00:00Z", "less than twelve months ago", "no successor for",
			"POST /v1/sendphishing", "→ partnerapi serve --release 2."}, nil, ""},
		{"v1 end --dry-run", []string{"version 1 cannot end; see the conditions marked fail"}, nil, ""},

		{"v1 phase " + first + " off --until=2098-01-01",
			[]string{first + " (sync): off until 2098-01-01. Running services apply the change within 30 seconds."}, &domain.AuditObject{Kind: "key"}, "phase until"},
		{"v1 phase --partner=acme read_only", []string{"the keys of acme: read_only."}, &domain.AuditObject{Kind: "partner"}, "phase"},
		{"v1 phase --all off --force", []string{"all keys: off.", "Keys created from now on can still use v1. To change that, run partnerapi v1 phase --new off"}, &domain.AuditObject{}, "phase"},
		{"v1 phase --new off", []string{"keys created from now on cannot use v1, unless you create them with keys create --v1. Running services apply"},
			&domain.AuditObject{}, "new_keys"},
		{"v1 phase --new on", []string{"keys created from now on can use v1."}, &domain.AuditObject{}, "new_keys"},
		{"v1 phase --all on", []string{"all keys: on."}, &domain.AuditObject{}, "phase"},

		{"v1 brownout add --start=2020-01-01 --for=10m", []string{"in the past"}, nil, ""},
		{"v1 brownout add --start=2090-01-01 --for=10m --count=2", []string{"--every"}, nil, ""},
		{"v1 brownout add --start=2090-01-01 --for=10m --keys=pk_unknown0", []string{"--keys", "keys list"}, nil, ""},
		{"v1 brownout add --start=2080-01-01 --for=10m --every=168h --count=4",
			[]string{"brownout 1: 10m0s from 2080-01-01, every 168h0m0s, 4 times, the last until 2080-01-22T00:10:00Z.",
				"No key is in phase brownout", "v1 phase KEY brownout"}, &domain.AuditObject{Kind: "brownout"}, "count every for keys start"},
		{"v1 brownout cancel 1", []string{"brownout 1 is canceled"}, &domain.AuditObject{Kind: "brownout"}, ""},
		{"v1 brownout cancel 1", []string{"no brownout 1", "brownout list"}, nil, ""},
		{"v1 phase " + first + " brownout", []string{"No brownout is scheduled", "v1 brownout add"}, &domain.AuditObject{Kind: "key"}, "phase"},
		{"v1 brownout add --start=" + d.Now().UTC().Add(-time.Hour).Format(time.RFC3339) + " --for=700h --keys=" + first + "," + other,
			[]string{"brownout 2: ", ".\n" + other + " is in phase on", "v1 phase " + other + " brownout"}, &domain.AuditObject{Kind: "brownout"}, "count every for keys start"},
		{"idmap import " + numbers, nil, &domain.AuditObject{}, ""},
	} {
		args := append(strings.Fields(c.line), flag)
		if c.audit == nil {
			refused(t, 1, args, c.says...)
			continue
		}
		says(t, must(t, args...), c.says...)
		done, kinds, given = append(done, c.line), append(kinds, c.audit.Kind), append(given, c.field)
	}
	var entries []operator.AuditLine
	if err := json.Unmarshal([]byte(must(t, "audit", "--json", "--key=command", flag)), &entries); err != nil {
		t.Fatal(err)
	}
	if entries = entries[2:]; len(entries) != len(done) { // those of the keys
		t.Fatalf("%d entries of %d commands", len(entries), len(done))
	}
	for i, e := range entries {
		if !strings.HasPrefix(done[i], e.Operation) || strings.Join(e.Fields, " ") != given[i] || (e.Object == nil) != (kinds[i] == "") ||
			e.Object != nil && (e.Object.Kind != kinds[i] || e.Object.ID == "") || *e.SystemUser != database.SystemUser() {
			t.Errorf("%q leaves %+v of %+v", done[i], e, e.Object)
		}
	}
	list := strings.Join(strings.Fields(must(t, "v1", "brownout", "list", flag)), " ")
	says(t, list, "now, until ", first+","+other)
	says(t, must(t, "idmap", "lookup", "client", "77", flag), client.String()) // after the import
}

// retiredService is a service that runs while commands retire version 1.
type retiredService struct {
	*running
	flag string
}

// after runs a command of v1, and waits until the service has followed it to what the words
// say. It returns what the command says.
func (s retiredService) after(line, words string) string {
	s.t.Helper()
	said := must(s.t, append(strings.Fields("v1 "+line), s.flag)...)
	s.follows(words)
	return said
}

func (s retiredService) follows(words string) {
	s.t.Helper()
	if s.logs.await(regexp.MustCompile(`the retirement of v1 has changed.*`+words), s.ended) == nil {
		s.t.Fatalf("the change is not followed:\n%s", s.logs)
	}
}

// gone wants a key to be answered 410, with what is to be called, and returns the headers.
func (s retiredService) gone(key string, words ...string) http.Header {
	s.t.Helper()
	r := s.get("/v1/clients", key)
	body := into[struct {
		Status         int
		Error, Message string
	}](r.want(http.StatusGone))
	if body.Status != http.StatusGone || body.Error != "gone" {
		s.t.Errorf("the body is %s", r.body)
	}
	says(s.t, body.Message, append(words, "call GET /v2/clients instead", "see /docs/migrating/clients#get-v1clients")...)
	return r.header
}

// noticed wants the pages that people come to, and no others, to say when v1 ends and how to
// move; "" is before it is announced.
func (s retiredService) noticed(want string) {
	s.t.Helper()
	for path, noticed := range map[string]bool{
		"/": true, "/docs": true, "/docs/reference/v1": true, "/docs/guide/moving-from-v1": true, "/docs/migrating": true,
		"/docs/reference/v2": false, "/docs/guide/start": false, "/docs/operate": false,
	} {
		page := string(s.get(path, "").want(http.StatusOK).body)
		if got := strings.Contains(page, `class="notice"`); got != (noticed && want != "") || got && !strings.Contains(page, want) {
			s.t.Errorf("%s, where %q is to be seen: %t\n%s", path, want, noticed, page)
		}
	}
}

// TestKeysWithoutV1: after v1 phase --new off a key that is made has no v1, unless it is made
// with --v1, and the keys of before have it still. The status says so.
func TestKeysWithoutV1(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	wantPhase := func(phase, name string, more ...string) {
		t.Helper()
		key := newKey(t, append([]string{flag, "--name=" + name, "--partner=Acme", "--clients=all", "--scopes=read"}, more...)...)
		says(t, must(t, "v1", "status", flag, "--key="+prefix(key)), "It is in phase "+phase+".")
	}
	wantPhase("on", "before")
	must(t, "v1", "phase", flag, "--new", "off")
	wantPhase("off", "after")
	wantPhase("on", "allowed", "--v1")
	says(t, must(t, "v1", "status", flag), "New keys cannot use v1, unless you create them with --v1")
	must(t, "v1", "phase", flag, "--new", "on")
	wantPhase("on", "late")
	refused(t, 2, []string{"keys", "create", flag, "--v1=maybe", "--name=x", "--partner=Acme", "--clients=all", "--scopes=read"}, "--v1")
}

// TestUseIsRecorded: what was counted since the last flush is written when the service
// stops, the last request included. The command shows a key's items as the key reads them.
func TestUseIsRecorded(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	first := serving(t, flag, "--demo")
	first.client.do("GET", "/v1/clients", "pk_demo_all", nil, "User-Agent", "acme/1").want(http.StatusOK)
	first.get("/v1/clients?limit=x", "pk_demo_all").want(http.StatusBadRequest)
	first.get("/v2/clients", "pk_demo_all").want(http.StatusOK)
	first.get("/v1/partner", "pk_demo_all").want(http.StatusOK)
	first.finish()

	second := serving(t, flag, "--demo")
	type use struct{ Items []any }
	own := into[use](second.get("/v1/usage", "pk_demo_all").want(http.StatusOK)).Items
	if other := into[use](second.get("/v1/usage", "pk_demo_other").want(http.StatusOK)).Items; len(own) != 2 || len(other) != 0 {
		t.Errorf("used %v, and by another key %v", own, other)
	}
	clients, _ := own[slices.IndexFunc(own, func(item any) bool { return item.(fields)["operation"] == "GET /v1/clients" })].(fields)
	if clients["calls"] != 2. || clients["failures"] != 1. {
		t.Errorf("used %v", clients)
	}
	var shown struct{ Keys []use }
	text := must(t, "v1", "status", flag, "--json", "--key=pk_demo_all", "--days=400")
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	if len(shown.Keys) != 1 || remarshal(t, shown.Keys[0].Items) != remarshal(t, own) {
		t.Errorf("the key reads %v, the command shows %v", own, shown)
	}
}
