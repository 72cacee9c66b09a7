package db_test

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// trail reads the audit trail.
func (w *world) trail(f domain.AuditFilter) (all []domain.AuditEntry) {
	w.T.Helper()
	w.Must(w.EachAuditEntry(w.T.Context(), f, func(e domain.AuditEntry) error {
		if e.At = e.At.UTC(); e.ID.IsZero() {
			w.T.Errorf("%+v has no ID", e)
		}
		e.ID = domain.AuditID{}
		all = append(all, e)
		return nil
	}))
	return all
}

func TestAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, other := w.AddClient(), w.AddClient()
	entry := domain.AuditEntry{
		At: noon, Partner: w.Partner, Key: db.NewID[domain.KeyKind](), Prefix: "pk_aaaaaaaa", Address: netip.MustParseAddr("2001:db8::1"),
		Operation: "users.update", Method: "PATCH", Path: "/v2/users/x", Client: client, User: db.NewID[domain.UserKind](), RequestID: "req_1",
		Object: domain.AuditObject{Kind: "user", ID: "usr_1"}, Fields: []string{"email", "role"},
	}
	plain := domain.AuditEntry{At: noon.Add(time.Minute), Partner: w.Partner, Key: entry.Key, Prefix: "pk_bbbbbbbb", Operation: "clients.create", Method: "POST", Path: "/v2/clients"}
	foreign := plain
	foreign.At, foreign.Client = noon.Add(time.Hour), other
	done := domain.AuditEntry{At: noon.Add(2 * time.Hour), Prefix: domain.CommandActor, SystemUser: "root", SudoUser: "ada", Operation: "keys create"}
	for _, e := range []domain.AuditEntry{done, foreign, entry, plain} {
		w.Must(w.Audit(t.Context(), e))
	}

	for _, tt := range []struct {
		filter domain.AuditFilter
		want   []domain.AuditEntry
	}{
		{domain.AuditFilter{}, []domain.AuditEntry{entry, plain, foreign, done}},
		{domain.AuditFilter{Prefix: domain.CommandActor}, []domain.AuditEntry{done}},
		{domain.AuditFilter{Client: client}, []domain.AuditEntry{entry}},
		{domain.AuditFilter{Prefix: "pk_bbbbbbbb"}, []domain.AuditEntry{plain, foreign}},
		{domain.AuditFilter{Prefix: "pk_bbbbbbbb", Since: noon.Add(2 * time.Minute)}, []domain.AuditEntry{foreign}},
		{domain.AuditFilter{Client: client, Prefix: "pk_bbbbbbbb"}, nil},
	} {
		if got := w.trail(tt.filter); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%+v chooses\n%+v, want\n%+v", tt.filter, got, tt.want)
		}
	}

	// An entry is of the transaction of its write.
	undone := errors.New("undone")
	err := w.Tx(t.Context(), func(ctx context.Context) error {
		return errors.Join(w.Audit(ctx, plain), undone)
	})
	if !errors.Is(err, undone) || len(w.trail(domain.AuditFilter{})) != 4 {
		t.Errorf("the entry of a write that was undone is kept: %v", err)
	}
}

func TestAuditIsKept400Days(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// More than are read, and than are deleted, at a time.
	w.Exec(`INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id)
		SELECT $1::timestamptz - interval '400 days' - interval '1 second' * n, $2, $2, '', '', '', '', '' FROM generate_series(1, 10500) AS n`, noon, w.Partner)
	w.Must(w.Audit(t.Context(), domain.AuditEntry{At: noon.Add(-domain.AuditLife), Partner: w.Partner}))
	w.Must(w.Audit(t.Context(), domain.AuditEntry{Partner: w.Partner}))
	if n := len(w.trail(domain.AuditFilter{})); n != 10502 {
		t.Fatalf("%d entries", n)
	}

	w.refresh(true)
	if left := w.trail(domain.AuditFilter{}); len(left) != 2 || !left[1].At.Equal(noon) {
		t.Errorf("%d entries are left: %+v", len(left), left)
	}
}

// TestAuditOfClients verifies that an entry that names a client and no partner has the client's partner, also one that
// release 1.0 writes.
func TestAuditOfClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := domain.AuditEntry{Prefix: domain.CommandActor, Operation: "mail disable", Client: w.AddClient()}
	w.Must(w.AuditAll(t.Context(), []domain.AuditEntry{e, {Prefix: domain.CommandActor, Operation: "seed"}}))
	w.Exec(entryOf10, noon, domain.PartnerID{}, e.Client, "mail enable")
	for _, got := range w.trail(domain.AuditFilter{}) {
		if got.Partner.IsZero() == (got.Operation != "seed") {
			t.Errorf("%s is of the partner %s", got.Operation, got.Partner)
		}
	}
}

// entryOf10 inserts an entry as release 1.0 does.
const entryOf10 = `INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id, client_id)
	VALUES ($1, $2, '00000000-0000-0000-0000-000000000000', 'command', $4, '', '', '', $3)`

// TestSettleAudit verifies that the entries of release 1.0 get an ID, the partner of their client and the operation that
// the service names, and that nothing else changes, however often it runs.
func TestSettleAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client, want := w.AddClient(), []string{"many " + domain.PartnerID{}.UUID()}
	for before, after := range map[string]string{
		"mail enable": "mail enable", "users.update": "users.update",
		"v1.send": "phishing.send",           // v1-line
		"v1.move": "collections.members.add", // v1-line
	} {
		w.Exec(entryOf10, noon, domain.PartnerID{}, client, before)
		want = append(want, after+" "+w.Partner.UUID())
	}
	slices.Sort(want)
	w.Exec(`INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id)
		SELECT $1, $2, $2, '', 'many', '', '', '' FROM generate_series(1, 5000)`, noon, domain.PartnerID{})
	// A migration adds the column without the default and the trigger, but 1.0 goes on inserting entries with both.
	w.Exec("UPDATE audit_entries SET partner_id = $1, entry_id = NULL WHERE NOT starts_with(operation, 'v1.m')", domain.PartnerID{})
	settled := func(column string) []string {
		t.Helper()
		lines, err := pg.All[string](t.Context(), w.DB, "read entries", pg.SQL(
			"SELECT DISTINCT concat_ws(' ', operation, "+column+") AS line FROM audit_entries ORDER BY 1"))
		w.Must(err)
		return lines
	}
	w.Must(w.SettleAudit(t.Context()))
	if got := settled("partner_id"); !slices.Equal(got, want) {
		t.Errorf("the entries are %q, want %q", got, want)
	}
	ids := settled("entry_id")
	w.Must(w.SettleAudit(t.Context()))
	if again := settled("entry_id"); len(ids) != 5000+len(want)-1 || !slices.Equal(again, ids) {
		t.Errorf("%d entries have IDs of their own, and other IDs afterward: %t", len(ids), !slices.Equal(again, ids))
	}
	if n := w.Number("SELECT count(*) FROM audit_entries WHERE entry_id IS NULL"); n != 0 {
		t.Errorf("%d entries have no ID", n)
	}
}

func TestKeyNetworks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	networks := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::1/128")}
	for _, want := range [][]netip.Prefix{networks, nil} {
		key, err := w.CreateKey(t.Context(), db.NewKey{Partner: w.Partner, Name: "x", Scopes: []domain.Scope{domain.Read}, Networks: want})
		w.Must(err)
		caller, err := w.CallerByDigest(t.Context(), db.KeyDigest(key))
		w.Must(err)
		if !slices.Equal(caller.Networks, want) {
			t.Errorf("the key is of %v, want %v", caller.Networks, want)
		}
	}
	keys, err := w.Keys(t.Context())
	w.Must(err)
	if len(keys) != 2 || !slices.Equal(keys[0].Networks, []string{"10.0.0.0/8", "2001:db8::1/128"}) || len(keys[1].Networks) != 0 {
		t.Errorf("%+v", keys)
	}
}
