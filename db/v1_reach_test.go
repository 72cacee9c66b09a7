package db_test

import (
	"maps"
	"slices"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// belongings are a client and one of each kind of its objects, by their nouns.
type belongings map[string]db.UUID

func (w *world) belongings(partner domain.PartnerID) belongings {
	w.T.Helper()
	client, user, admin := db.NewID[domain.ClientKind](), db.NewID[domain.UserKind](), db.NewID[domain.AdminKind]()
	collection, group := db.NewID[domain.CollectionKind](), db.NewID[domain.GroupKind]()
	policy, report := db.NewID[domain.PolicyKind](), db.NewID[domain.ReportKind]()
	w.Add("clients", row{"id": client, "partner_id": partner, "name": client.String(), "name_key": client.String()})
	w.Add("users", row{"client_id": client, "id": user, "email": user.String() + "@example.com"})
	w.admin(row{"id": admin, "partner_id": partner, "client_id": client, "email": admin.String() + "@example.com"})
	w.Add("collections", row{"client_id": client, "id": collection, "name": "c", "name_key": "c"})
	w.Add("groups", row{"client_id": client, "id": group, "name": "g", "manual": true, "created_at": noon})
	w.Add("policies", row{"client_id": client, "id": policy, "scope_id": client})
	w.Add("reports", row{
		"client_id": client, "id": report, "type": "policy", "format": "pdf", "status": "ready", "created_at": noon, "updated_at": noon,
	})
	return belongings{
		"client": db.UUID(client), "user": db.UUID(user), "admin": db.UUID(admin), "collection": db.UUID(collection),
		"group": db.UUID(group), "policy": db.UUID(policy), "report": db.UUID(report),
	}
}

func (w *world) admin(r row) {
	w.T.Helper()
	r["name"], r["role"], r["created_at"] = "An Admin", "owner", noon
	w.Add("admins", r)
}

// TestReached: of each kind what the caller's clients have, for a key of all
// clients and for one with listed clients; nothing that is archived, and nothing of
// another kind (decisions 11.4).
func TestReached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, key := db.NewID[domain.PartnerKind](), db.NewID[domain.KeyKind]()
	w.Add("partners", row{"id": other, "name": "Other", "name_key": "other"})
	all := map[string]belongings{
		"listed": w.belongings(w.Partner), "unlisted": w.belongings(w.Partner), "archived": w.belongings(w.Partner),
		"foreign": w.belongings(other),
	}
	listed, archived := domain.ClientID(all["listed"]["client"]), domain.ClientID(all["archived"]["client"])
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", archived)
	w.Exec(`INSERT INTO api_keys (id, partner_id, name, prefix, digest, all_clients, scopes, created_at)
		VALUES ($1, $2, 'k', 'k', '\x00', false, '{read}', now())`, key, w.Partner)
	w.Exec("INSERT INTO api_key_clients (key_id, client_id) VALUES ($1, $2), ($1, $3)", key, listed, archived)
	template := domain.TemplateID{15: 1}
	w.Add("phishing_templates", row{"id": template})
	partners := map[string]domain.AdminID{"own": db.NewID[domain.AdminKind](), "foreign": db.NewID[domain.AdminKind]()}
	w.admin(row{"id": partners["own"], "partner_id": w.Partner, "email": "own@example.com"})
	w.admin(row{"id": partners["foreign"], "partner_id": other, "email": "foreign@example.com"})
	w.Exec(`UPDATE policies SET archived_at = now() WHERE id = $1`, domain.PolicyID(all["unlisted"]["policy"]))

	names := map[db.UUID]string{db.UUID(template): "template", db.UUID(partners["own"]): "the partner's admin", db.UUID(partners["foreign"]): "the other's admin"}
	for whose, objects := range all {
		for noun, id := range objects {
			names[id] = whose + " " + noun
		}
	}
	everything := append(slices.Collect(maps.Keys(names)), db.UUID{}, db.UUID(db.NewID[domain.UserKind]()))
	for whose, c := range map[string]*domain.Caller{
		"all":  {Partner: w.Partner, AllClients: true},
		"some": {Partner: w.Partner, Key: key},
		"none": {Partner: w.Partner, Key: db.NewID[domain.KeyKind]()},
	} {
		for noun := range maps.Keys(all["listed"]) {
			var want []string
			if whose != "none" {
				want = append(want, "listed "+noun)
			}
			if whose == "all" && noun != "policy" {
				want = append(want, "unlisted "+noun)
			}
			if noun == "admin" {
				want = append(want, "the partner's admin")
			}
			w.reaches(c, whose, noun, everything, names, want)
		}
		w.reaches(c, whose, "template", everything, names, []string{"template"})
	}
	if _, err := w.Reached(t.Context(), "webhook", everything); err == nil {
		t.Error("webhooks are a kind")
	}
}

func (w *world) reaches(c *domain.Caller, whose, noun string, ids []db.UUID, names map[db.UUID]string, want []string) {
	w.T.Helper()
	found, err := w.Reached(domain.WithCaller(w.T.Context(), c), noun, ids)
	w.Must(err)
	got := make([]string, len(found))
	for i, id := range found {
		got[i] = names[id]
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.T.Errorf("%s of the key that reaches %s clients: %q, not %q", noun, whose, got, want)
	}
}
