package v2_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// pagedTables are the lists that page, each with the given number of rows of a few sort
// keys only.
var pagedTables = map[string]func(t *testing.T, rows int) *pagedTable{
	"clients": pagedClients, "users": pagedUsers, "users by email": pagedUsersByEmail, "admins": pagedAdmins,
	"collections": pagedCollections, "members": pagedMembers, "policies": pagedPolicies, "policy users": pagedPolicyUsers,
	"exposures": pagedExposures, "dark web users": pagedDarkWebUsers, "training": pagedTraining, "client training": pagedClientTraining, "phishing results": pagedResults,
	"emails": pagedEmails, "reported emails": pagedReported, "courses": pagedCourses, "templates": pagedTemplates,
	"sync runs": pagedSyncRuns, "frameworks": pagedFrameworks, "reports": pagedReports,
	"webhooks": pagedWebhooks, "deliveries": pagedDeliveries,
}

// pagedMany are how many rows a jump has to pass over: in some tables more than
// a page may hold.
func pagedMany(name string) int {
	switch name {
	case "clients", "users", "admins":
		return 560
	}
	return 90
}

func newPagedTable(t *testing.T, seed uint64) *pagedTable {
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	return &pagedTable{h: h, tenant: h.Tenant("Paged"), order: "created_at", dice: rand.New(rand.NewPCG(3, seed))}
}

// storeUser makes a client have a user with what the row says, whatever id.
func (p *pagedTable) storeUser(client domain.ClientID, id domain.UserID, r pagedRow) {
	first, last, _ := strings.Cut(r.name, " ")
	p.h.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'en', 'api', $9, $10, $11) ON CONFLICT (id) DO UPDATE SET
		email = excluded.email, first_name = excluded.first_name, last_name = excluded.last_name, name_key = excluded.name_key,
		status = excluded.status, role = excluded.role, score = excluded.score, created_at = excluded.created_at, updated_at = excluded.updated_at`,
		client, id, r.email, first, last, domain.SortKey(r.name), r.status, r.role, r.score, r.created, r.updated)
}

// countUsers makes the client's counters right, as those who change its users
// keep them.
func (p *pagedTable) countUsers() {
	p.h.Exec(`UPDATE clients SET users_active = count.active, users_inactive = count.inactive
		FROM (SELECT count(*) FILTER (WHERE status = 'active') AS active, count(*) FILTER (WHERE status = 'inactive') AS inactive
			FROM users WHERE client_id = $1) AS count WHERE id = $1`, p.client)
}

func pagedClients(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 1)
	p.of(api.ListClients, ids{}, "id")
	p.show = func(uuid [16]byte) string { return domain.ClientID(uuid).String() }
	p.store = func(r pagedRow) {
		p.h.Exec(`INSERT INTO clients (id, partner_id, name, name_key, external_id, average_score, summarized_at, created_at, updated_at)
			VALUES ($1, $2, $3, $4, 'X' || $9::integer, $5, $6, $7, $8) ON CONFLICT (id) DO UPDATE SET
			name = excluded.name, name_key = excluded.name_key, external_id = excluded.external_id, average_score = excluded.average_score,
			created_at = excluded.created_at, updated_at = excluded.updated_at`,
			domain.ClientID(r.uuid), p.tenant.ID, r.name, domain.SortKey(r.name), r.score, p.h.Clock.Now(), r.created, r.updated, r.kind)
		p.h.CountClients()
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", domain.ClientID(r.uuid), p.h.Clock.Now())
		p.h.CountClients()
	}
	stranger := p.h.Client(p.h.Tenant("Other"), "alpha of another partner")
	p.fill(rows)

	named := map[string]bool{}
	given := []string{stranger.ID.String(), db.NewID[domain.ClientKind]().String(), "no id"}
	var reached []domain.ClientID
	for i, r := range p.rows {
		if i%2 == 0 {
			named[r.id], given = true, append(given, r.id)
		}
		if i%3 > 0 {
			reached = append(reached, domain.ClientID(r.uuid))
		}
	}
	subset := map[domain.ClientID]bool{}
	for _, id := range reached {
		subset[id] = true
	}
	p.add("all", "", func(pagedRow) bool { return true })
	p.add("q", "q=ALPHA", func(r pagedRow) bool { return r.nameHas("alpha") })
	p.add("q is literal", "q=0%25_", func(r pagedRow) bool { return r.nameHas("0%_") })
	p.add("external_id", "external_id=X1", func(r pagedRow) bool { return r.kind == 1 })
	p.add("ids", "ids="+strings.Join(given, ","), func(r pagedRow) bool { return named[r.id] })
	p.add("updated_since", "updated_since="+pagedSince.Format(time.RFC3339), pagedRow.recent)
	p.add("q, ids and updated_since", "q=%C3%9C&ids="+strings.Join(given, ",")+"&updated_since="+pagedSince.Format(time.RFC3339),
		func(r pagedRow) bool { return r.nameHas("ü") && named[r.id] && r.recent() })
	p.add("a subset's key", "", func(r pagedRow) bool { return subset[r.uuid] })
	p.lists[len(p.lists)-1].key = p.h.NewKey(p.tenant, []domain.Scope{domain.Read}, reached)
	p.sorted(domain.ClientSort("").Values())
	return p
}

func pagedUsers(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 2)
	p.client = p.h.Client(p.tenant, "Client").ID
	other := p.h.Client(p.tenant, "Other")
	p.h.User(p.tenant, other.ID, "alpha0@example.com")
	collection := p.h.Collection(p.client, "Collection")
	p.of(api.ListUsers, ids{"client_id": p.client.String()}, "id")
	p.show = func(uuid [16]byte) string { return domain.UserID(uuid).String() }
	p.store = func(r pagedRow) {
		p.storeUser(p.client, r.uuid, r)
		p.h.Exec(`WITH gone AS (DELETE FROM collection_members WHERE client_id = $1 AND user_id = $3 AND NOT $4)
			INSERT INTO collection_members (client_id, collection_id, user_id, added_at) SELECT $1, $2, $3, $5::timestamptz WHERE $4
			ON CONFLICT DO NOTHING`, p.client, collection, domain.UserID(r.uuid), r.member, r.updated)
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM collection_members WHERE client_id = $1 AND user_id = $2", p.client, domain.UserID(r.uuid))
		p.h.Exec("DELETE FROM users WHERE client_id = $1 AND id = $2", p.client, domain.UserID(r.uuid))
	}
	p.fill(rows)
	p.countUsers()

	active := func(r pagedRow) bool { return r.status == domain.Active }
	matches := func(r pagedRow, text string) bool { return r.nameHas(text) || strings.Contains(r.email, text) }
	p.add("all", "", func(pagedRow) bool { return true })
	p.add("status active", "status=active", active)
	p.add("status inactive", "status=inactive", func(r pagedRow) bool { return !active(r) })
	p.add("q of a name", "q=%C3%BCNAL", func(r pagedRow) bool { return matches(r, "ünal") })
	p.add("q of an email", "q=7@EXAMPLE.com", func(r pagedRow) bool { return matches(r, "7@example.com") })
	p.add("role", "role=finance", func(r pagedRow) bool { return r.role == domain.RoleFinance })
	p.add("collection_id", "collection_id="+collection.String(), func(r pagedRow) bool { return r.member })
	p.add("updated_since", "updated_since="+pagedSince.Format(time.RFC3339), pagedRow.recent)
	p.add("all filters", "status=active&q=a&role=standard&collection_id="+collection.String()+"&updated_since="+pagedSince.Format(time.RFC3339),
		func(r pagedRow) bool {
			return active(r) && matches(r, "a") && r.role == domain.RoleStandard && r.member && r.recent()
		})
	p.sorted(domain.UserSort("").Values())
	return p
}

// pagedUsersByEmail: the clients of the rows have a user of the address, and one of another;
// so has another partner's client.
func pagedUsersByEmail(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 22)
	p.of(api.FindUsers, nil, "client_id")
	p.show = func(uuid [16]byte) string { return domain.ClientID(uuid).String() }
	p.store = func(r pagedRow) {
		client := domain.ClientID(r.uuid)
		p.h.Exec(`INSERT INTO clients (id, partner_id, name, name_key, summarized_at, created_at, updated_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at`,
			client, p.tenant.ID, r.name, domain.SortKey(r.name), p.h.Clock.Now(), r.created, r.updated)
		p.h.CountClients()
		other := r
		other.email = "other@example.com"
		r.email = everywhere
		p.storeUser(client, r.uuid, r)
		p.storeUser(client, pagedTwin(r.uuid, 1), other)
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", domain.ClientID(r.uuid), p.h.Clock.Now())
		p.h.CountClients()
	}
	stranger := p.h.Tenant("Other")
	p.h.User(stranger, p.h.Client(stranger, "Client").ID, everywhere)
	p.fill(rows)
	reached := map[string]bool{}
	var subset []domain.ClientID
	for i, r := range p.rows {
		if i%3 > 0 {
			reached[r.id], subset = true, append(subset, domain.ClientID(r.uuid))
		}
	}
	p.add("all", "email="+everywhere, pagedAll)
	p.add("in another case", "email=EveryWhere@Example.COM", pagedAll)
	p.add("a subset's key", "email="+everywhere, func(r pagedRow) bool { return reached[r.id] })
	p.lists[len(p.lists)-1].key = p.h.NewKey(p.tenant, []domain.Scope{domain.Read}, subset)
	return p
}

func pagedAdmins(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 3)
	p.client = p.h.Client(p.tenant, "Client").ID
	p.of(api.ListClientAdmins, ids{"client_id": p.client.String()}, "id")
	p.show = func(uuid [16]byte) string { return domain.AdminID(uuid).String() }
	p.store = func(r pagedRow) {
		p.h.Exec(`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at) VALUES ($1, $2, $3, $4, $5, 'admin', $6)
			ON CONFLICT (id) DO UPDATE SET email = excluded.email, name = excluded.name, created_at = excluded.created_at`,
			domain.AdminID(r.uuid), p.tenant.ID, p.client, r.email, r.name, r.created)
	}
	p.drop = func(r pagedRow) { p.h.Exec("DELETE FROM admins WHERE id = $1", domain.AdminID(r.uuid)) }
	p.h.Exec("INSERT INTO admins (id, partner_id, email, name, role, created_at) VALUES ($1, $2, 'p@example.com', 'Of the partner', 'owner', $3)",
		db.NewID[domain.AdminKind](), p.tenant.ID, v2test.Noon)
	p.fill(rows)
	p.add("all", "", func(pagedRow) bool { return true })
	return p
}
