package main

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

var wholeKey = regexp.MustCompile(`^papi_[A-Za-z0-9]{40}\n$`)

// newKey creates a key by the command, and wants it to print that only.
func newKey(t *testing.T, args ...string) string {
	t.Helper()
	r := command(t, append([]string{"keys", "create"}, args...)...)
	if r.code != 0 || r.err != "" || !wholeKey.MatchString(r.out) {
		t.Fatalf("keys create %v: exit %d, printed %q and %q", args, r.code, r.out, r.err)
	}
	return strings.TrimSpace(r.out)
}

// prefix is what a key is listed by.
func prefix(key string) string { return key[:13] }

func TestKeyLife(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	key := newKey(t, flag, "--name=sync", "--clients=all", "--scopes=read,write", "--expires=2199-01-31", "--from=127.1.2.3/8, ::1")

	first := serving(t, flag, "--release=latest")
	first.do("POST", "/v2/clients", key, fields{"name": "Client"}).want(http.StatusCreated)
	first.finish() // which records the use
	list := must(t, "keys", "list", flag)
	for _, words := range []string{prefix(key), "sync", "Acme", "all", "read,write", "127.0.0.0/8,::1/128", "2199-01-31 00:00Z"} {
		if !strings.Contains(list, words) {
			t.Errorf("the list has no %q:\n%s", words, list)
		}
	}
	if strings.Contains(list, key[:14]) {
		t.Errorf("the list shows more than the prefix:\n%s", list)
	}
	days := regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`)
	if used := days.FindAllString(strings.Split(list, "\n")[1], -1); len(used) != 2 { // created and used
		t.Errorf("the last use is not listed:\n%s", list)
	}

	must(t, "keys", "revoke", flag, prefix(key))
	serving(t, flag).get("/v2/clients", key).want(http.StatusUnauthorized)
	refused(t, 1, []string{"keys", "revoke", flag, prefix(key)}, prefix(key), "keys list")
	refused(t, 1, []string{"keys", "revoke", flag, "pk_unknown0"}, "pk_unknown0", "keys list")
}

// TestMadeInJSON: what partners create, keys create and version print can be read by programs.
func TestMadeInJSON(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	var partner struct{ ID, Name string }
	var key struct {
		Key, Prefix, Name string
		PartnerID         string `json:"partner_id"`
		Scopes            []string
		ExpiresAt         *string `json:"expires_at"`
	}
	var program struct {
		Version, Commit string
		BuiltWith       string `json:"built_with"`
		Serves          []string
	}
	for value, args := range map[any][]string{
		&partner: {"partners", "create", flag, "Acme", "--json"},
		&program: {"version", "--json"},
	} {
		if err := json.Unmarshal([]byte(must(t, args...)), value); err != nil {
			t.Fatal(err)
		}
	}
	text := must(t, "keys", "create", flag, "--name=sync", "--clients=all", "--scopes=read,write", "--expires=2199-01-31", "--json")
	if err := json.Unmarshal([]byte(text), &key); err != nil {
		t.Fatal(err)
	}
	if partner.Name != "Acme" || !strings.Contains(must(t, "partners", "list", flag), partner.ID) || partner.ID != key.PartnerID {
		t.Errorf("the partner is %+v", partner)
	}
	if !wholeKey.MatchString(key.Key+"\n") || key.Prefix != prefix(key.Key) || key.Name != "sync" || len(key.Scopes) != 2 ||
		*key.ExpiresAt != "2199-01-31T00:00:00.000000Z" {
		t.Errorf("the key is %+v", key)
	}
	if program.Version != version || program.Commit == "" || program.BuiltWith == "" || len(program.Serves) == 0 {
		t.Errorf("the version is %+v", program)
	}
}

func TestKeyScopesAndExpiry(t *testing.T) {
	t.Parallel()
	flag := databaseFlag(t)
	must(t, "partners", "create", flag, "Acme")
	reader := newKey(t, flag, "--name=reader", "--clients=all", "--scopes=read")
	writer := newKey(t, flag, "--name=writer", "--clients=all", "--scopes=write")
	refused(t, 2, []string{"keys", "create", flag, "--name=old", "--clients=all", "--scopes=read", "--expires=2020-01-01"}, "not after today")
	refused(t, 2, []string{"keys", "create", flag, "--name=none", "--clients=all", "--scopes="}, "--scopes")
	refused(t, 2, []string{"keys", "create", flag, "--name=a\tb", "--clients=all", "--scopes=read"}, "control character")
	r := serving(t, flag, "--release=latest")
	r.get("/v2/clients", reader).want(http.StatusOK)
	r.get("/v2/clients", writer).want(http.StatusForbidden)
	r.do("POST", "/v2/clients", reader, fields{"name": "Client"}).want(http.StatusForbidden)
	r.do("POST", "/v2/clients", writer, fields{"name": "Client"}).want(http.StatusCreated)
}

func TestKeyOfListedClients(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	r := serving(t, flag, "--demo")
	page := into[struct{ Data []identified }](r.get("/v2/clients?limit=3", "pk_demo_all").want(http.StatusOK)).Data
	const northlight = "--partner=northlight demo msp" // names are compared by their keys
	key := newKey(t, flag, northlight, "--name=two", "--clients="+page[0].ID+", "+page[2].ID, "--scopes=read")
	got := into[struct{ Data []identified }](r.get("/v2/clients", key).want(http.StatusOK)).Data
	if len(got) != 2 || got[0] != page[0] || got[1] != page[2] {
		t.Errorf("the key for %v reaches %v", page, got)
	}
	r.get("/v2/clients/"+page[1].ID, key).want(http.StatusNotFound)

	create := []string{"keys", "create", flag, "--name=x", "--scopes=read"}
	refused(t, 1, append(create, "--clients=all"), "2 partners", "--partner")
	refused(t, 1, append(create, "--clients=all", "--partner=Nobody"), `"Nobody"`, "partners list")
	refused(t, 1, append(create, "--partner=Tidewater Demo MSP", "--clients="+page[0].ID), "the partner's clients")
	refused(t, 1, append(create, northlight, "--clients="+page[0].ID+","+page[0].ID), "given once")
}

// TestKeyOfNobody has no partner to give a key to.
func TestKeyOfNobody(t *testing.T) {
	t.Parallel()
	refused(t, 1, []string{"keys", "create", databaseFlag(t), "--name=x", "--clients=all", "--scopes=read"}, "0 partners", "partners create")
}

func TestKeyFlags(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ clients, scopes, expires, says string }{
		{"all", "admin", "", `"admin"`},
		{"all", "read,Write", "", `"Write"`},
		{"", "read", "", "--clients"},
		{"all", "read", "31.1.2027", `"31.1.2027"`},
		{"all", "read", "2027-02-30", `"2027-02-30"`},
	} {
		// No database is needed to see that these make no sense.
		refused(t, 2, []string{"keys", "create", "--name=x", "--clients=" + tt.clients, "--scopes=" + tt.scopes, "--expires=" + tt.expires}, tt.says)
	}
	refused(t, 2, []string{"keys", "create", "--name=x", "--clients=all"}, "--scopes")
	for _, from := range []string{"office", "10.0.0.0/33", "fe80::1%eth0", "::ffff:10.0.0.0/104", "10.0.0.1,,"} {
		refused(t, 2, []string{"keys", "create", "--name=x", "--clients=all", "--scopes=read", "--from=" + from}, "--from")
	}
	refused(t, 2, []string{"keys", "create", "--name= ", "--clients=all", "--scopes=read"}, "--name")
	refused(t, 2, []string{"keys", "revoke"}, "prefix")
}
