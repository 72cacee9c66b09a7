package v2_test

import (
	"fmt"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// pagedHome is whose rows some are.
type pagedHome struct {
	client domain.ClientID
	user   domain.UserID
}

// homes are whose rows lie in one table: the listed ones' first, then another
// user's of the same client, another client's, and another partner's. Each
// table gives the others rows of the same keys and, where its constraints let
// it, the same ids.
func (p *pagedTable) homes() (list [4]pagedHome) {
	stranger := p.h.Tenant("Other")
	p.client = p.h.Client(p.tenant, "Client").ID
	clients := [4]domain.ClientID{p.client, p.client, p.h.Client(p.tenant, "Neighbour").ID, p.h.Client(stranger, "Client").ID}
	tenants := [4]v2test.Tenant{p.tenant, p.tenant, p.tenant, stranger}
	for i, client := range clients {
		list[i] = pagedHome{client, p.h.User(tenants[i], client, v2test.Email(i)).ID}
	}
	return list
}

// pagedTwin is an id beside a row's, for another home: ties of the sort are
// broken between them.
func pagedTwin(uuid [16]byte, home int) [16]byte {
	uuid[15] ^= byte(home)
	return uuid
}

// pagedTwins are the twins of a row's id for the homes of pagedTable.homes that
// homesOf names.
func pagedTwins(uuid [16]byte) (list []string) {
	for _, i := range []int{0, 2, 3} {
		list = append(list, domain.UserID(pagedTwin(uuid, i)).UUID())
	}
	return list
}

// homesOf are the clients of the row's own home and of two others.
func homesOf(homes [4]pagedHome) []string {
	return []string{homes[0].client.UUID(), homes[2].client.UUID(), homes[3].client.UUID()}
}

// pagedUntil is what until is given, and pagedFrom since; some rows are of
// these very moments.
var pagedFrom, pagedUntil = v2test.Noon.Add(-4 * time.Hour), v2test.Noon.Add(-time.Hour)

// pagedPeriod is the query of a list from one of the moments to the other.
var pagedPeriod = "since=" + pagedFrom.Format(time.RFC3339) + "&until=" + pagedUntil.Format(time.RFC3339)

func pagedWithin(at time.Time) bool { return !at.Before(pagedFrom) && at.Before(pagedUntil) }

var pagedUpdated = "updated_since=" + pagedSince.Format(time.RFC3339)

func pagedAll(pagedRow) bool { return true }

func pagedUserID(uuid [16]byte) string { return domain.UserID(uuid).String() }

// pagedCollections: other clients have collections with ids beside those.
func pagedCollections(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 11)
	homes := p.homes()
	p.of(api.ListCollections, ids{"client_id": p.client.String()}, "id")
	p.show = func(uuid [16]byte) string { return domain.CollectionID(uuid).String() }
	p.store = func(r pagedRow) {
		p.h.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
			SELECT client, id, $3, $4, 'api', $5, $6 FROM unnest($1::text[]::uuid[], $2::text[]::uuid[]) AS other (client, id)
			ON CONFLICT (client_id, id) DO UPDATE SET name = excluded.name, name_key = excluded.name_key,
			created_at = excluded.created_at, updated_at = excluded.updated_at`,
			homesOf(homes), pagedTwins(r.uuid), r.name, domain.SortKey(r.name), r.created, r.updated)
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM collections WHERE client_id = $1 AND id = $2", p.client, domain.CollectionID(r.uuid))
	}
	p.fill(rows)
	p.add("all", "", pagedAll)
	p.add("updated_since", pagedUpdated, pagedRow.recent)
	return p
}

// pagedFrameworks: other clients have framework assignments with ids beside those.
func pagedFrameworks(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 24)
	homes := p.homes()
	p.of(api.ListClientFrameworks, ids{"client_id": p.client.String()}, "id")
	p.show = func(uuid [16]byte) string { return domain.FrameworkAssignmentID(uuid).String() }
	p.store = func(r pagedRow) {
		p.h.Exec(`INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, audience_id, created_at)
			SELECT client, id, 'soc2', 'group', id, $3 FROM unnest($1::text[]::uuid[], $2::text[]::uuid[]) AS other (client, id)
			ON CONFLICT (client_id, id) DO UPDATE SET created_at = excluded.created_at`,
			homesOf(homes), pagedTwins(r.uuid), r.created)
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM framework_assignments WHERE client_id = $1 AND id = $2", p.client, domain.FrameworkAssignmentID(r.uuid))
	}
	p.fill(rows)
	p.add("all", "", pagedAll)
	return p
}

// collectionOf adds a collection of the id to a client.
func (p *pagedTable) collectionOf(client domain.ClientID, id domain.CollectionID) {
	p.h.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		VALUES ($1, $2, $3, $3, 'api', $4, $4)`, client, id, id.UUID(), v2test.Noon)
}

// pagedMembers: every user is in another collection too, since the same moment,
// and other clients have a collection of an id beside.
func pagedMembers(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 12)
	homes := p.homes()
	listed, beside := db.NewID[domain.CollectionKind](), db.NewID[domain.CollectionKind]()
	p.collectionOf(p.client, beside)
	for _, i := range []int{0, 2, 3} {
		p.collectionOf(homes[i].client, pagedTwin(listed, i))
	}
	p.of(api.ListMembers, ids{"client_id": p.client.String(), "collection_id": listed.String()}, "user_id")
	p.show = pagedUserID
	put := func(client domain.ClientID, collection domain.CollectionID, user domain.UserID, r pagedRow) {
		p.h.Exec(`INSERT INTO collection_members (client_id, collection_id, user_id, added_at) VALUES ($1, $2, $3, $4)
			ON CONFLICT (client_id, collection_id, user_id) DO UPDATE SET added_at = excluded.added_at`, client, collection, user, r.created)
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM collection_members WHERE client_id = $1 AND collection_id = $2 AND user_id = $3", p.client, listed, domain.UserID(r.uuid))
	}
	p.store = func(r pagedRow) {
		for _, i := range []int{0, 2, 3} {
			user := pagedTwin(r.uuid, i)
			p.storeUser(homes[i].client, user, r)
			put(homes[i].client, pagedTwin(listed, i), user, r)
		}
		put(p.client, beside, r.uuid, r)
		if !r.member {
			p.drop(r)
		}
	}
	p.fill(rows)
	p.h.Exec(`UPDATE collections AS k SET member_count =
		(SELECT count(*) FROM collection_members AS m WHERE m.client_id = k.client_id AND m.collection_id = k.id)`)
	p.add("all", "", func(r pagedRow) bool { return r.member })
	p.add("updated_since", pagedUpdated, func(r pagedRow) bool { return r.member && r.recent() })
	p.lists[1].uncounted = true
	return p
}

// pagedPolicies: inactive rows are archived; of members a sign-off has lapsed an
// hour ago, which is a change without a write (decisions 3.9).
func pagedPolicies(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 13)
	homes := p.homes()
	p.of(api.ListPolicies, ids{"client_id": p.client.String()}, "id")
	p.show = func(uuid [16]byte) string { return domain.PolicyID(uuid).String() }
	p.store = func(r pagedRow) {
		var archived *time.Time
		if r.status == domain.Inactive {
			archived = &r.updated
		}
		signed := v2test.Noon.AddDate(0, 0, -1)
		if r.member {
			signed = v2test.Noon.AddDate(0, 0, -30).Add(-time.Hour)
		}
		for _, i := range []int{0, 2, 3} {
			home, id := homes[i], domain.PolicyID(pagedTwin(r.uuid, i))
			p.h.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, renewal_period_days, reviewed_at, archived_at, created_at, updated_at)
				VALUES ($1, $2, $3, 'tenant', $1, true, 30, $5, $4, $5, $6) ON CONFLICT (client_id, id) DO UPDATE SET
				title = excluded.title, archived_at = excluded.archived_at, created_at = excluded.created_at, updated_at = excluded.updated_at`,
				home.client, id, r.name, archived, r.created, r.updated)
			p.h.Exec(`INSERT INTO policy_signatures (client_id, policy_id, user_id, version, signed_at) VALUES ($1, $2, $3, 1, $4)
				ON CONFLICT (client_id, policy_id, version, user_id) DO UPDATE SET signed_at = excluded.signed_at`, home.client, id, home.user, signed)
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM policy_signatures WHERE client_id = $1 AND policy_id = $2", p.client, domain.PolicyID(r.uuid))
		p.h.Exec("DELETE FROM policies WHERE client_id = $1 AND id = $2", p.client, domain.PolicyID(r.uuid))
	}
	p.fill(rows)
	shows := func(r pagedRow) bool { return r.status == domain.Active }
	p.add("all", "", shows)
	p.add("updated_since", pagedUpdated, func(r pagedRow) bool { return shows(r) && (r.recent() || r.member) })
	return p
}

// pagedScopes are the kinds of audience of a policy, each with who is in it.
var pagedScopes = []struct {
	scope domain.ScopeType
	holds func(pagedRow) bool
}{
	{domain.TenantScope, pagedAll},
	{domain.GroupScope, func(r pagedRow) bool { return r.role == domain.RoleFinance }},
	{domain.CollectionScope, func(r pagedRow) bool { return r.member }},
}

// signature is how far a user is with one of the three policies: 0 never
// signed, 1 signed, 2 signed too long ago, 3 signed an earlier version only.
func (r pagedRow) signature(policy int) int { return (r.kind + policy) % 4 }

// pagedPolicyUsers lists the audiences of three policies, one of each scope,
// whose users are the same. Other clients have a group and a collection of ids
// beside, and policies for them that are signed.
func pagedPolicyUsers(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 14)
	homes := p.homes()
	p.h.Exec("UPDATE users SET status = 'inactive'")
	group, collection := db.NewID[domain.GroupKind](), db.NewID[domain.CollectionKind]()
	policies := map[domain.ClientID][]string{}
	for _, i := range []int{0, 2, 3} {
		client, group, collection := homes[i].client, domain.GroupID(pagedTwin(group, i)), domain.CollectionID(pagedTwin(collection, i))
		p.collectionOf(client, collection)
		p.h.Exec("INSERT INTO groups (client_id, id, name, manual, created_at) VALUES ($1, $2, 'Group', false, $3)", client, group, v2test.Noon)
		for n, scope := range []string{client.UUID(), group.UUID(), collection.UUID()} {
			id := db.NewID[domain.PolicyKind]()
			policies[client] = append(policies[client], id.UUID())
			p.h.Exec(`INSERT INTO policies (client_id, id, title, version, scope_type, scope_id, requires_acknowledgment, renewal_period_days, reviewed_at, created_at, updated_at)
				VALUES ($1, $2, 'Policy', 2, $3, $4::text::uuid, true, 30, $5, $5, $5)`, client, id, pagedScopes[n].scope, scope, v2test.Noon)
		}
	}
	p.of(api.ListPolicyUsers, nil, "user_id")
	p.show = pagedUserID
	p.store = func(r pagedRow) {
		for _, i := range []int{0, 2, 3} {
			client, user := homes[i].client, domain.UserID(pagedTwin(r.uuid, i))
			p.storeUser(client, user, r)
			p.storeAudience(client, user, r, domain.GroupID(pagedTwin(group, i)), domain.CollectionID(pagedTwin(collection, i)))
			p.sign(client, user, r, policies[client])
		}
		p.recount()
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM policy_signatures WHERE client_id = $1 AND user_id = $2", p.client, domain.UserID(r.uuid))
		p.h.Exec("DELETE FROM collection_members WHERE client_id = $1 AND user_id = $2", p.client, domain.UserID(r.uuid))
		p.h.Exec("DELETE FROM users WHERE client_id = $1 AND id = $2", p.client, domain.UserID(r.uuid))
		p.recount()
	}
	p.fill(rows)
	for n := range pagedScopes {
		p.addAudience(n, policies[p.client][n])
	}
	return p
}

// addAudience adds the lists of one of the policies.
func (p *pagedTable) addAudience(n int, policy string) {
	id, err := domain.ParseUUID[domain.PolicyKind](policy)
	if err != nil {
		p.h.T.Fatal(err)
	}
	first, scope := len(p.lists), pagedScopes[n]
	in := func(r pagedRow) bool { return r.status == domain.Active && scope.holds(r) }
	p.add("all", "", in)
	p.add("signed", "status=signed", func(r pagedRow) bool { return in(r) && r.signature(n) == 1 })
	p.add("unsigned", "status=unsigned", func(r pagedRow) bool { return in(r) && r.signature(n) != 1 })
	p.add("unsigned and updated_since", "status=unsigned&"+pagedUpdated, func(r pagedRow) bool {
		return in(r) && r.signature(n) != 1 && (r.recent() || r.signature(n) == 2) // which has lapsed just now
	})
	for i := first; i < len(p.lists); i++ {
		p.lists[i].name = fmt.Sprint(scope.scope, " ", p.lists[i].name)
		p.lists[i].at = ids{"client_id": p.client.String(), "policy_id": id.String()}
	}
}

// recount says that an audience or its sign-off has moved, as all do that move
// them: the counts are to be made again.
func (p *pagedTable) recount() {
	p.h.Exec("UPDATE policies SET counted_until = '-infinity' WHERE client_id = $1", p.client)
}

// storeAudience puts a user into the group and the collection, or takes it out.
func (p *pagedTable) storeAudience(client domain.ClientID, user domain.UserID, r pagedRow, group domain.GroupID, collection domain.CollectionID) {
	p.h.Exec("UPDATE users SET group_id = CASE WHEN $3 THEN $4::uuid END WHERE client_id = $1 AND id = $2",
		client, user, r.role == domain.RoleFinance, group)
	p.h.Exec(`WITH gone AS (DELETE FROM collection_members WHERE client_id = $1 AND user_id = $3 AND NOT $4)
		INSERT INTO collection_members (client_id, collection_id, user_id, added_at) SELECT $1, $2, $3, $5::timestamptz WHERE $4
		ON CONFLICT DO NOTHING`, client, collection, user, r.member, r.updated)
}

// sign gives a user the signatures that its row says.
func (p *pagedTable) sign(client domain.ClientID, user domain.UserID, r pagedRow, policies []string) {
	how := make([]int64, len(policies))
	for n := range policies {
		how[n] = int64(r.signature(n))
	}
	p.h.Exec("DELETE FROM policy_signatures WHERE client_id = $1 AND user_id = $2", client, user)
	p.h.Exec(`INSERT INTO policy_signatures (client_id, policy_id, user_id, version, signed_at)
		SELECT $1, policy, $2, CASE how WHEN 3 THEN 1 ELSE 2 END, $5::timestamptz - CASE how WHEN 2 THEN 30 ELSE 29 END * interval '1 day'
		FROM unnest($3::text[]::uuid[], $4::bigint[]) AS s (policy, how) WHERE how > 0`,
		client, user, policies, how, v2test.Noon)
}

// pagedDarkWebUsers: every user has exposures, some of them outside of the
// period, which takes no user off the list.
func pagedDarkWebUsers(t *testing.T, rows int) *pagedTable {
	p := newPagedTable(t, 15)
	homes := p.homes()
	p.h.Exec("UPDATE users SET status = 'inactive'")
	p.breaches(2)
	p.of(api.ListDarkWebUsers, ids{"client_id": p.client.String()}, "user_id")
	p.show = pagedUserID
	p.store = func(r pagedRow) {
		for _, i := range []int{0, 2, 3} {
			user := pagedTwin(r.uuid, i)
			p.storeUser(homes[i].client, user, r)
			p.expose(pagedHome{homes[i].client, user}, pagedBreach(0), r)
			if r.member {
				p.expose(pagedHome{homes[i].client, user}, pagedBreach(1), r)
			}
		}
	}
	p.drop = func(r pagedRow) {
		p.h.Exec("DELETE FROM exposures WHERE client_id = $1 AND user_id = $2", p.client, domain.UserID(r.uuid))
		p.h.Exec("DELETE FROM users WHERE client_id = $1 AND id = $2", p.client, domain.UserID(r.uuid))
	}
	p.fill(rows)
	p.countUsers()
	active := func(r pagedRow) bool { return r.status == domain.Active }
	p.add("all", "", active)
	p.add("since and until", pagedPeriod, active)
	p.add("updated_since", pagedUpdated, func(r pagedRow) bool { return active(r) && r.recent() })
	p.lists[2].uncounted = true
	return p
}
