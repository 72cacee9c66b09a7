package db_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/domain"
)

// TestReached: a key reaches the objects of its clients, and none of another partner's. The
// partner's admins are within the reach of all of its keys, as each may read them
// (decisions 11.3).
func TestReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := db.NewID[domain.PartnerKind]()
	w.Add("partners", row{"id": other, "name": "Other", "name_key": "other"})
	ids := map[string][]db.UUID{} // of the partner's client and of the other's; then of the partners
	add := func(noun, table string, r row) {
		id := uuid.New()
		r["id"] = id
		w.Add(table, r)
		ids[noun] = append(ids[noun], db.UUID(id))
	}
	admin := func(partner domain.PartnerID, client any) {
		add("admin", "admins", row{
			"partner_id": partner, "client_id": client, "email": uuid.NewString() + "@example.com", "name": "An Admin", "role": "owner", "created_at": noon,
		})
	}
	for _, partner := range []domain.PartnerID{w.Partner, other} {
		add("client", "clients", row{"partner_id": partner, "name": "c", "name_key": "c"})
		client := uuid.UUID(ids["client"][len(ids["client"])-1])
		add("user", "users", row{"client_id": client, "email": "a@example.com"})
		add("collection", "collections", row{"client_id": client, "name": "c", "name_key": "c"})
		add("group", "groups", row{"client_id": client, "name": "g", "manual": true, "created_at": noon})
		add("policy", "policies", row{"client_id": client, "scope_id": client})
		add("report", "reports", row{
			"client_id": client, "type": "policy", "format": "pdf", "status": "ready", "created_at": noon, "updated_at": noon,
		})
		admin(partner, client)
	}
	admin(w.Partner, nil)
	admin(other, nil)

	for noun, of := range ids {
		all, none := []db.UUID{of[0]}, []db.UUID{}
		if noun == "admin" {
			all, none = append(all, of[2]), append(none, of[2])
		}
		for _, key := range []struct {
			caller domain.Caller
			want   []db.UUID
		}{
			{domain.Caller{Partner: w.Partner, AllClients: true}, all},
			{domain.Caller{Partner: w.Partner, Key: db.NewID[domain.KeyKind]()}, none},
		} {
			found, err := w.Reached(domain.WithCaller(t.Context(), &key.caller), noun, append(of, db.UUID{}))
			if err != nil || len(found) != len(key.want) || slices.ContainsFunc(found, func(id db.UUID) bool { return !slices.Contains(key.want, id) }) {
				t.Errorf("%s, all clients %v: %v are reached of %v, %v", noun, key.caller.AllClients, found, of, err)
			}
		}
	}
}
