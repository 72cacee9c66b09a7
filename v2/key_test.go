package v2_test

import (
	"net/http"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// TestKey: a key of either scope sees what it is, and no client that it does not reach.
func TestKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	created := w.Clock.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	end := w.Clock.Now().AddDate(1, 0, 0)
	archived := w.AddClient(w.tenant, "Archived").ID
	network := netip.MustParsePrefix("192.0.2.0/24")
	create := func(in db.NewKey) string {
		in.Partner, in.Name = w.tenant.ID, "sync"
		key, err := w.DB.CreateKey(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	cases := map[string]struct {
		key  string
		want map[string]any
	}{
		"write alone, all clients, for a year": {
			create(db.NewKey{Scopes: []domain.Scope{domain.Write}, ExpiresAt: &end}),
			map[string]any{
				"scopes": []any{"write"}, "all_clients": true, "client_ids": []any{}, "networks": []any{},
				"expires_at": end.UTC().Format("2006-01-02T15:04:05.000000Z"),
			},
		},
		"some clients, from a network": {
			create(db.NewKey{
				Scopes: bothScopes, Clients: []domain.ClientID{w.client.ID, archived}, Networks: []netip.Prefix{network, netip.MustParsePrefix("0.0.0.0/0")},
			}),
			map[string]any{
				"scopes": []any{"read", "write"}, "all_clients": false, "client_ids": []any{w.client.ID.String()},
				"networks": []any{"192.0.2.0/24", "0.0.0.0/0"}, "expires_at": nil,
			},
		},
		"no client": {
			create(db.NewKey{Scopes: []domain.Scope{domain.Read}, Clients: []domain.ClientID{}}),
			map[string]any{
				"scopes": []any{"read"}, "all_clients": false, "client_ids": []any{}, "networks": []any{}, "expires_at": nil,
			},
		},
	}
	w.Exec("UPDATE clients SET archived_at = now() WHERE name = 'Archived'")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for field, value := range map[string]any{
				"prefix": domain.APIKeyPrefix(c.key), "name": "sync", "partner": "Partner", "created_at": created,
				"release": op.Latest.String(),
			} {
				c.want[field] = value
			}
			if got := w.Get("/v2/key", c.key).Want(http.StatusOK).JSON(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v\nnot %v", got, c.want)
			}
		})
	}
}

// TestKeyExpires: in its last 30 days a key is told its end by every answer, refusals too.
func TestKeyExpires(t *testing.T) {
	t.Parallel()
	limits := v2test.Unlimited
	limits.PerKey = 3
	w := newWorld(t, v2test.Options{Limits: limits})
	end := w.Clock.Now().Add(domain.KeyEndsSoon + time.Second)
	key, err := w.DB.CreateKey(t.Context(), db.NewKey{
		Partner: w.tenant.ID, Name: "ends", Scopes: []domain.Scope{domain.Read}, ExpiresAt: &end,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r := w.Get("/v2/key", key).Want(http.StatusOK); r.Header.Get("X-API-Key-Expires") != "" {
		t.Errorf("a day too early: %v", r.Header)
	}
	w.Clock.Advance(time.Second)
	want := end.UTC().Format("2006-01-02T15:04:05.000000Z")
	for _, answer := range []struct {
		path   string
		status int
	}{{"/v2/key", http.StatusOK}, {"/v2/users/nobody", http.StatusNotFound}, {"/v2/clients", http.StatusTooManyRequests}} {
		if r := w.Get(answer.path, key).Want(answer.status); r.Header.Get("X-API-Key-Expires") != want {
			t.Errorf("%s: %v", answer.path, r.Header)
		}
	}
	if r := w.Get("/v2/key", w.tenant.Key).Want(http.StatusOK); r.Header.Get("X-API-Key-Expires") != "" {
		t.Errorf("of a key without an end: %v", r.Header)
	}
}
