package usage

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

var partner = domain.PartnerID{0: 2, 15: 1}

// person adds a key of the partner, whose prefix is of its number.
func person(t *testing.T, d *pg.DB, n byte) {
	t.Helper()
	exec(t, d, `INSERT INTO partners (id, name, name_key, created_at) VALUES ($1::text::uuid, 'Acme', 'acme', $2) ON CONFLICT DO NOTHING`, partner.UUID(), noon)
	exec(t, d, `INSERT INTO api_keys (id, partner_id, name, prefix, digest, all_clients, scopes, networks, demo, created_at)
		VALUES ($1::text::uuid, $2::text::uuid, $3::text, $4::text, $5::bytea, true, '{read}', '{}', false, $6::timestamptz)`,
		key(n).UUID(), partner.UUID(), fmt.Sprint("key ", n), fmt.Sprint("pk_", n), []byte{n}, noon)
}

// called records calls at noon, some days ago.
func called(t *testing.T, d *pg.DB, n byte, operation string, ago, calls, failures int, agents ...string) {
	t.Helper()
	surface := V1
	if strings.Contains(operation, "/v2/") {
		surface = V2
	}
	at := noon.AddDate(0, 0, -ago)
	exec(t, d, `INSERT INTO v1_usage VALUES ($1::text::uuid, $2::text::date, $3::text, $4::text, $5::int, $6::int, $7::timestamptz, $7::timestamptz,
		string_to_array($8::text, '|'))`, key(n).UUID(), domain.DateOf(at).String(), string(surface), operation, calls, failures, at, strings.Join(agents, "|"))
}

const oldClients, newClients, oldUsers, newUsers = "GET /v1/clients", "GET /v2/clients", "GET /v1/users", "GET /v2/users"

var successors = map[string]string{oldClients: newClients, oldUsers: newUsers}

func report(t *testing.T, d *pg.DB, days int, keys ...domain.KeyID) *Report {
	t.Helper()
	r, err := Read(t.Context(), d, ReportQuery{Successors: successors, Now: noon.Add(time.Hour), Days: days, Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReport(t *testing.T) {
	t.Parallel()
	d := open(t)
	if got := report(t, d, 3); len(got.Keys) != 0 || len(got.Days) != 3 {
		t.Errorf("at first %+v", got)
	}
	person(t, d, 1)
	person(t, d, 2)
	called(t, d, 1, oldClients, 90, 100, 0, "old/1")
	called(t, d, 1, oldClients, 2, 5, 1, "b/1", "a/1")
	called(t, d, 1, oldClients, 0, 7, 2, "c/1", "a/1")
	called(t, d, 1, newClients, 1, 4, 4) // all failed
	called(t, d, 1, newClients, 5, 9, 8)
	called(t, d, 1, oldUsers, 50, 3, 0, "night/1")
	called(t, d, 1, newUsers, 40, 1, 0)
	called(t, d, 2, newClients, 1, 11, 0) // never called v1
	called(t, d, 3, oldUsers, 1, 1, 0)    // is no longer there
	called(t, d, 3, "GET /v1/gone", 1, 1, 0)
	called(t, d, 3, newClients, 1, 2, 0) // follows nothing that it called

	got := report(t, d, 3)
	if len(got.Keys) != 2 || got.Keys[0].ID != key(1) || got.Keys[1].ID != key(3) {
		t.Fatalf("keys %+v", got.Keys)
	}
	one := got.Keys[0]
	if one.Prefix != "pk_1" || one.Name != "key 1" || one.Partner != partner || one.PartnerName != "Acme" || !one.Live ||
		one.Calls != 12 || one.Failures != 3 || !one.LastAt.Time.Equal(noon) || one.Verdict != HalfWay || len(one.Rows) != 2 {
		t.Errorf("the first is %+v", one)
	}
	clients, users := one.Operations[0], one.Operations[1]
	if clients.Operation != oldClients || clients.Successor != newClients || clients.Calls != 12 || clients.SuccessorCalls != 4 ||
		!clients.FirstAt.Time.Equal(noon.AddDate(0, 0, -90)) || !clients.SuccessorAt.Time.Equal(noon.AddDate(0, 0, -5)) ||
		clients.Verdict != HalfWay || !slices.Equal(clients.UserAgents, []string{"c/1", "a/1", "b/1"}) {
		t.Errorf("clients %+v", clients)
	}
	if users.Calls != 0 || users.Verdict != Moved || !slices.Equal(users.UserAgents, []string{"night/1"}) {
		t.Errorf("users %+v", users)
	}
	if gone := got.Keys[1]; gone.Prefix != "" || gone.Live || gone.Verdict != NotBegun || gone.Operations[0].Successor != "" {
		t.Errorf("the one that is gone is %+v", gone)
	}

	for what, got := range map[string][2]string{
		"all": {daysOf(got.Days), "13 5/0 14 2/17 15 7/0 "}, "one": {daysOf(one.Days), "13 5/0 14 0/4 15 7/0 "},
		"gone": {daysOf(got.Keys[1].Days), "13 0/0 14 2/0 15 0/0 "},
	} {
		if got[0] != got[1] {
			t.Errorf("the days of %s are %s, not %s", what, got[0], got[1])
		}
	}
	if of := report(t, d, 400, key(1)); len(of.Keys) != 1 || of.Keys[0].Calls != 115 || len(of.Days) != 400 || of.Days[398].Successors != 4 {
		t.Errorf("of one key %+v", of.Keys)
	}
}

// daysOf is days as text: calls of v1, and of successors.
func daysOf(list []Day) (text string) {
	for _, d := range list {
		text += fmt.Sprint(d.Day.String()[8:], " ", d.Calls, "/", d.Successors, " ")
	}
	return text
}

// TestLastCalls: one per key, the latest first.
func TestLastCalls(t *testing.T) {
	t.Parallel()
	d := open(t)
	person(t, d, 1)
	called(t, d, 1, oldClients, 3, 1, 1, "a/1")
	called(t, d, 1, oldUsers, 2, 1, 1, "b/1", "c/1")
	called(t, d, 1, newUsers, 1, 1, 0, "d/1")
	called(t, d, 2, oldClients, 1, 1, 0)
	called(t, d, 3, oldClients, 30, 1, 0)
	list, err := LastCalls(t.Context(), d, noon.AddDate(0, 0, -30).Add(time.Second))
	if err != nil || len(list) != 2 || list[0].Key != key(2) {
		t.Fatalf("%+v (%v)", list, err)
	}
	if l := list[1]; l.Prefix != "pk_1" || l.Name != "key 1" || l.Partner != "Acme" || l.Operation != oldUsers ||
		!l.At.Equal(noon.AddDate(0, 0, -2)) || !slices.Equal(l.UserAgents, []string{"b/1", "c/1"}) {
		t.Errorf("%+v", l)
	}
	if list, err = LastCalls(t.Context(), d, noon.AddDate(0, 0, -30)); err != nil || len(list) != 3 {
		t.Errorf("with that moment %+v (%v)", list, err)
	}
}
