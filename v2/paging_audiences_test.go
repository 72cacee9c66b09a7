package v2_test

import (
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// collect gives each home a collection.
func (p *pagedTable) collect() {
	for i := range p.homes {
		p.homes[i].collection = p.h.AddCollection(p.homes[i].client, "Collection")
	}
}

func pagedCollections(p *pagedTable) {
	p.ofClient(api.ListCollections, shownAs[domain.CollectionKind], "id")
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.put("collections", "id", columns{
			"id": of.id, "name": r.name, "name_key": domain.SortKey(r.name), "created_by": "api",
			"created_at": r.created, "updated_at": r.updated,
		})
	})
	p.add("", pagedAll)
	p.add(updatedQuery, pagedRow.recent)
}

func pagedFrameworks(p *pagedTable) {
	p.ofClient(api.ListClientFrameworks, shownAs[domain.FrameworkAssignmentKind], "id")
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.put("framework_assignments", "id", columns{
			"id": of.id, "framework_id": "soc2", "audience_type": "group", "audience_id": of.id, "created_at": r.created,
		})
	})
	p.add("", pagedAll)
}

// pagedMembers: every user is in another collection too, since the same moment.
func pagedMembers(p *pagedTable) {
	p.ofClient(api.ListMembers, shownAs[domain.UserKind], "user_id")
	p.collect()
	beside := p.h.AddCollection(p.homes[0].client, "Beside")
	p.at["collection_id"] = p.homes[0].collection.String()
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.putUser(of.id, r.email, nil, r)
		of.putMember(r.member, of.collection, r)
		if of.client == p.homes[0].client {
			of.putMember(true, beside, r)
		}
	})
	p.add("", pagedRow.isMember)
	p.add(updatedQuery, func(r pagedRow) bool { return r.member && r.recent() })
	p.lists[1].uncounted = true
}

// pagedPolicies: inactive rows are archived; of members a sign-off has lapsed an
// hour ago, which is a change without a write (decisions 3.9).
func pagedPolicies(p *pagedTable) {
	p.ofClient(api.ListPolicies, shownAs[domain.PolicyKind], "id")
	p.fill(func(of *pagedRecords, r pagedRow) {
		var archived any
		if r.status == domain.Inactive {
			archived = r.updated
		}
		signed := v2test.Noon.AddDate(0, 0, -1)
		if r.member {
			signed = v2test.Noon.AddDate(0, 0, -30).Add(-time.Hour)
		}
		of.put("policies", "id", columns{
			"id": of.id, "title": r.name, "scope_type": "tenant", "scope_id": of.client, "requires_acknowledgment": true,
			"renewal_period_days": 30, "reviewed_at": r.created, "archived_at": archived,
			"created_at": r.created, "updated_at": r.updated,
		})
		of.put("policy_signatures", signatureKey, columns{
			"policy_id": of.id, "user_id": of.user, "version": 1, "signed_at": signed,
		})
	})
	shows := func(r pagedRow) bool { return r.status == domain.Active }
	p.add("", shows)
	p.add(updatedQuery, func(r pagedRow) bool { return shows(r) && (r.recent() || r.member) })
}

const signatureKey = "policy_id, version, user_id"

// pagedAudiences are the policies of a home, one of each scope, with who is in its audience.
var pagedAudiences = []struct {
	scope domain.ScopeType
	of    func(home pagedHome) string
	holds func(pagedRow) bool
}{
	{domain.TenantScope, func(home pagedHome) string { return home.client.UUID() }, pagedAll},
	{domain.GroupScope, func(home pagedHome) string { return home.group.UUID() }, pagedRow.finance},
	{domain.CollectionScope, func(home pagedHome) string { return home.collection.UUID() }, pagedRow.isMember},
}

// policy is the id of one of the policies of a home.
func (home pagedHome) policy(n int) domain.PolicyID {
	id := domain.PolicyID(home.client)
	id[0] ^= byte(n + 1)
	return id
}

// signature is how far a user is with one of the policies: 0 never
// signed, 1 signed, 2 signed too long ago, 3 signed an earlier version only.
func (r pagedRow) signature(policy int) int { return (r.kind + policy) % 4 }

// pagedPolicyUsers lists the audiences of the policies, whose users are the same. Other
// clients have policies for theirs, which are signed.
func pagedPolicyUsers(p *pagedTable) {
	p.ofClient(api.ListPolicyUsers, shownAs[domain.UserKind], "user_id")
	p.collect()
	p.h.Exec("UPDATE users SET status = 'inactive'")
	for _, home := range p.homes {
		for n, audience := range pagedAudiences {
			p.write(home, home.policy(n), func(of *pagedRecords) {
				of.put("policies", "id", columns{
					"id": of.id, "title": "Policy", "version": 2, "scope_type": audience.scope, "scope_id": audience.of(home),
					"requires_acknowledgment": true, "renewal_period_days": 30, "reviewed_at": v2test.Noon,
					"created_at": v2test.Noon, "updated_at": v2test.Noon,
				})
			})
		}
	}
	p.stored = func() { // as all do that move an audience or its signatures
		p.h.Exec("UPDATE policies SET counted_until = '-infinity' WHERE client_id = $1", p.homes[0].client)
	}
	p.fill(func(of *pagedRecords, r pagedRow) {
		var group any
		if r.finance() {
			group = of.group
		}
		of.putUser(of.id, r.email, group, r)
		of.putMember(r.member, of.collection, r)
		for n := range pagedAudiences {
			of.putSignature(n, 1, r.signature(n) == 3, -1)
			of.putSignature(n, 2, r.signature(n) == 1 || r.signature(n) == 2, -28-r.signature(n))
		}
	})
	for n, audience := range pagedAudiences {
		p.at = ids{"client_id": p.homes[0].client.String(), "policy_id": p.homes[0].policy(n).String()}
		in := func(r pagedRow) bool { return r.status == domain.Active && audience.holds(r) }
		unsigned := func(r pagedRow) bool { return in(r) && r.signature(n) != 1 }
		p.add("", in)
		p.add("status=signed", func(r pagedRow) bool { return in(r) && !unsigned(r) })
		p.add("status=unsigned", unsigned)
		p.add("status=unsigned&"+updatedQuery, func(r pagedRow) bool {
			return unsigned(r) && (r.recent() || r.signature(n) == 2) // which has lapsed just now
		})
	}
}

// putSignature has the row's user have signed a version of a policy, days ago, or not.
func (of *pagedRecords) putSignature(policy, version int, there bool, days int) {
	of.putIf(there, "policy_signatures", signatureKey, columns{
		"policy_id": of.policy(policy), "user_id": of.id, "version": version,
		"signed_at": v2test.Noon.AddDate(0, 0, days),
	})
}

// pagedDarkWebUsers: every user has exposures, some of them outside of the
// period, which takes no user off the list.
func pagedDarkWebUsers(p *pagedTable) {
	p.ofClient(api.ListDarkWebUsers, shownAs[domain.UserKind], "user_id")
	p.h.Exec("UPDATE users SET status = 'inactive'")
	p.breaches(2)
	p.fill(func(of *pagedRecords, r pagedRow) {
		of.putUser(of.id, r.email, nil, r)
		of.putExposure(true, of.id, pagedBreach(0), r)
		of.putExposure(r.member, of.id, pagedBreach(1), r)
	})
	active := func(r pagedRow) bool { return r.status == domain.Active }
	p.add("", active)
	p.add(sinceQuery+"&"+untilQuery, active)
	p.add(updatedQuery, func(r pagedRow) bool { return active(r) && r.recent() })
	p.lists[2].uncounted = true
}
