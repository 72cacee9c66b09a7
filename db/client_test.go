package db_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// caller is one that reaches all clients of the world's partner.
func (w *world) caller() context.Context {
	caller := &domain.Caller{Partner: w.Partner, AllClients: true, Scopes: []domain.Scope{domain.Read}}
	return domain.WithCaller(context.Background(), caller)
}

// total is how many clients a list of all of them says that there are.
func (w *world) total() int {
	w.T.Helper()
	slice, err := w.Clients(w.caller(), domain.ClientFilter{Sort: "name"}, domain.Window{Limit: 1, Total: true})
	w.Must(err)
	return slice.Total
}

// TestClientCount: the partner's counter follows the clients that are added to it,
// also by many at once, and is nobody else's. A change that fails moves nothing.
func TestClientCount(t *testing.T) {
	w := newWorld(t)
	add := func(ctx context.Context, name string, then error) error {
		return w.Change(ctx, func(ctx context.Context, c *db.Change) error {
			return errors.Join(c.InsertClient(ctx, domain.Client{
				ID: db.NewID[domain.ClientKind](), Partner: domain.CallerFrom(ctx).Partner, Name: name,
				Summary: domain.EmptySummary(noon), CreatedAt: noon, UpdatedAt: noon,
			}), then)
		})
	}
	w.atOnce(8, func(i int) error { return add(w.caller(), fmt.Sprint(i), nil) })
	if err := add(w.caller(), "3", nil); !domain.IsCode(err, domain.Conflict) {
		t.Errorf("a name that is taken: %v", err)
	}
	if err := add(w.caller(), "failed", errors.New("failed")); err == nil {
		t.Error("the change did not fail")
	}
	other, err := w.InsertPartner(t.Context(), "Other")
	w.Must(err)
	theirs := domain.WithCaller(t.Context(), &domain.Caller{Partner: other, AllClients: true})
	w.Must(add(theirs, "3", nil))

	w.Must(w.Change(t.Context(), func(ctx context.Context, c *db.Change) error {
		_, err := c.ArchivePartner(ctx, other)
		return err
	}))
	if err := add(theirs, "late", nil); !domain.IsCode(err, domain.Conflict) { // its key was checked before
		t.Errorf("a client of an archived partner: %v", err)
	}
	w.Must(w.Change(t.Context(), func(ctx context.Context, c *db.Change) error {
		_, err := c.RestorePartner(ctx, other)
		return err
	}))

	if got := w.total(); got != 8 {
		t.Errorf("%d clients, not 8", got)
	}
	partners, err := w.Partners(t.Context())
	if err != nil || len(partners) != 2 || partners[0].Clients != 1 || partners[1].Clients != 8 {
		t.Errorf("partners %+v, %v", partners, err)
	}
}

// TestReadInTx: a read by key sees what its transaction wrote, times are in UTC,
// and the connection goes back to the pool.
func TestReadInTx(t *testing.T) {
	w := newWorld(t, db.WithConns(1))
	id := w.AddClient()
	failed := errors.New("failed")
	err := w.Change(w.caller(), func(ctx context.Context, c *db.Change) error {
		tenant, err := c.LockTenant(ctx, id)
		w.Must(err)
		tenant.Name = "Renamed"
		w.Must(tenant.Update(ctx, c))
		seen, err := w.Tenant(ctx, id)
		w.Must(err)
		if seen.Name != "Renamed" || !seen.UpdatedAt.Equal(noon) || seen.CreatedAt.Location() != time.UTC {
			t.Errorf("the transaction reads %q of %s", seen.Name, seen.CreatedAt)
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if seen, err := w.Tenant(w.caller(), id); err != nil || seen.Name == "Renamed" {
		t.Errorf("after the transaction the client is %q, %v", seen.Name, err)
	}
	if _, err := w.Tenant(w.caller(), domain.ClientID{1}); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("a client that is not there: %v", err)
	}
}

// TestUserCounts: changes at once that move the counters of many clients, in all
// orders, lose no move and do not deadlock; each change takes one statement, and one
// before it that locks several.
func TestUserCounts(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter), db.WithStrictLocks())
	var clients []domain.ClientID
	for range 10 {
		clients = append(clients, w.AddClient())
	}
	move := func(first int) error {
		return w.Change(context.Background(), func(_ context.Context, c *db.Change) error {
			for i := range clients {
				c.CountUsers(clients[(first+i)%len(clients)], 2, 1)
			}
			c.CountUsers(clients[0], -1, 0)
			return nil
		})
	}
	if n := counter.During(func() { w.Must(move(0)) }); n > 3 { // with the stamp
		t.Errorf("%d statements", n)
	}
	w.atOnce(9, move)
	for i, client := range clients {
		tenant, err := w.Tenant(w.caller(), client)
		w.Must(err)
		want := 20
		if i == 0 {
			want = 10
		}
		if tenant.ActiveUsers != want || tenant.InactiveUsers != 10 || !tenant.UpdatedAt.Equal(noon) {
			t.Errorf("client %d has %d and %d, updated at %v", i, tenant.ActiveUsers, tenant.InactiveUsers, tenant.UpdatedAt)
		}
	}

	w.Exec("UPDATE clients SET updated_at = $1", noon.Add(-day))
	w.Must(w.Change(context.Background(), func(_ context.Context, c *db.Change) error {
		c.CountUsers(clients[0], 1, 0)
		c.CountUsers(clients[0], -1, 0)
		return nil
	}))
	if at := w.UpdatedAt("clients", clients[0]); !at.Equal(noon.Add(-day)) {
		t.Errorf("the counts are as they were, but the client was updated at %v", at)
	}
}

// TestReach: what the caller does not reach is not found, and nothing is asked
// about ids that are zero.
func TestReach(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 500)
	stranger := domain.WithCaller(t.Context(), &domain.Caller{Partner: db.NewID[domain.PartnerKind](), AllClients: true})
	listed := domain.WithCaller(t.Context(), &domain.Caller{Partner: w.Partner, Key: db.NewID[domain.KeyKind]()})
	for _, test := range []struct {
		ctx    context.Context
		client domain.ClientID
		user   domain.UserID
		noun   string
	}{
		{w.caller(), client, user, ""},
		{stranger, domain.ClientID{}, domain.UserID{}, ""},
		{stranger, client, domain.UserID{}, "client"},
		{stranger, domain.ClientID{}, user, "user"},
		{listed, client, domain.UserID{}, "client"},
		{listed, domain.ClientID{}, user, "user"},
	} {
		err := w.Reach(test.ctx, test.client, test.user)
		if (err == nil) != (test.noun == "") || err != nil && err.Error() != domain.ErrNotFound(test.noun).Error() {
			t.Errorf("%+v: %v", test, err)
		}
	}
}
