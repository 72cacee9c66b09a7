package v1compat

import (
	"strings"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

var accountSteps = []step{
	{"admins", each(func(a *actor) {
		a.Exec(`INSERT INTO admins (id, partner_id, email, name, role, created_at)
			SELECT gen_random_uuid(), $1, r.role || '@example.com', 'Grace Brewster ' || r.role, r.role, $2::timestamptz + r.n * interval '1 hour'
			FROM unnest(ARRAY['viewer', 'owner', 'admin']) WITH ORDINALITY AS r (role, n)`, a.tenant.ID, v2test.Noon)
	}), done},
	{"a client", func(a *actor) answer { return a.keep("A", a.createClient("Überwald GmbH")) }, done},
	{"another", func(a *actor) answer { return a.keep("B", a.createClient(strings.Repeat("é", 200))) }, done},
	{"its name again", func(a *actor) answer { return a.createClient("ÜBERWALD gmbh") }, refuses(domain.Conflict)},
	{"no name", func(a *actor) answer { return a.createClient(" \t ") }, refuses(domain.InvalidRequest)},
	{"too long a name", func(a *actor) answer { return a.createClient(strings.Repeat("é", 201)) }, refuses(domain.InvalidRequest)},
	{"a classified user", func(a *actor) answer {
		return a.keep("cfo", a.createUser(a.known["A"], fields{"email": "CFO@Example.com", "first_name": "Ada", "last_name": "King", "job_title": "CFO", "department": "Board"}))
	}, shows(fields{"id": "cfo", "email": "cfo@example.com", "role": "executive"})},
	{"a user with a role", func(a *actor) answer {
		return a.keep("hr", a.createUser(a.known["A"], fields{"email": "hr@example.com", "job_title": "CFO", "role": "hr", "preferred_language": "fr-ca", "manager_email": "cfo@example.com"}))
	}, shows(fields{"role": "hr"})},
	{"a user by department", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "x@example.com", "department": "Accounts Payable"})
	}, shows(fields{"role": "finance"})},
	{"a user by email", func(a *actor) answer { return a.createUser(a.known["A"], fields{"email": "payroll@example.com"}) }, shows(fields{"role": "finance"})},
	{"a collection", func(a *actor) answer {
		return a.keep("Own", a.createCollection(a.known["A"], fields{"name": "Own"}))
	}, done},
	{"another client's", func(a *actor) answer {
		return a.keep("Foreign", a.createCollection(a.known["B"], fields{"name": "Foreign"}))
	}, done},
	{"a user of a collection", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "c@example.com", "collection": a.known["Own"]})
	}, done},
	{"of another client's", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "d@example.com", "collection": a.known["Foreign"]})
	}, refuses(domain.InvalidRequest)},
	{"the same email", func(a *actor) answer { return a.createUser(a.known["A"], fields{"email": "cfo@EXAMPLE.com"}) }, refuses(domain.Conflict)},
	{"in another client", func(a *actor) answer { return a.createUser(a.known["B"], fields{"email": "cfo@example.com"}) }, done},
	{"in a stranger's", func(a *actor) answer { return a.createUser(a.known["theirs"], fields{"email": "cfo@example.com"}) }, refuses(domain.NotFound)},
	{"no email", func(a *actor) answer { return a.createUser(a.known["A"], fields{"first_name": "Ada"}) }, refuses(domain.InvalidRequest)},
	{"a bad email", func(a *actor) answer { return a.createUser(a.known["A"], fields{"email": "nobody"}) }, refuses(domain.InvalidRequest)},
	{"a bad role", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "e@example.com", "role": "boss"})
	}, refuses(domain.InvalidRequest)},
	{"a bad language", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "e@example.com", "preferred_language": "de"})
	}, refuses(domain.InvalidRequest)},
	{"a state", func(a *actor) answer { return a.updateUser(a.known["hr"], fields{"status": "inactive"}) }, done},
	{"the same state", func(a *actor) answer { return a.updateUser(a.known["hr"], fields{"status": "inactive"}) }, done},
	{"a role and a language", func(a *actor) answer {
		return a.updateUser(a.known["cfo"], fields{"role": "standard", "preferred_language": "es"})
	}, done},
	{"a bad state", func(a *actor) answer { return a.updateUser(a.known["cfo"], fields{"status": "gone"}) }, refuses(domain.InvalidRequest)},
	{"nothing", func(a *actor) answer { return a.updateUser(a.known["cfo"], fields{}) }, refuses(domain.InvalidRequest)},
	{"nobody", func(a *actor) answer { return a.updateUser(unusedID, fields{"status": "active"}) }, refuses(domain.NotFound)},
	{"a stranger's user", func(a *actor) answer { return a.updateUser(a.known["their user"], fields{"status": "inactive"}) }, refuses(domain.NotFound)},
	{"50 days later", passes(50 * day), done},
	{"overdue courses", func(a *actor) answer { return a.users(a.known["A"], "active") }, shows(
		behind("cfo@example.com"), behind("x@example.com"), behind("payroll@example.com"), behind("c@example.com"))},
	{"a bad filter", func(a *actor) answer { return a.users(a.known["A"], "gone") }, refuses(domain.InvalidRequest)},
}

// behind is a user who did none of the two courses that are due.
func behind(email string) fields {
	return fields{"email": email, "on track": false, "behind": 2, "next": "Security awareness foundations"}
}

func accountViews(a *actor, x surface) map[string]answer {
	// The partners have names of their own.
	partner := x.partner()
	partner.objects = partner.objects[1:]
	shown := map[string]answer{"admins": partner, "clients": x.clients()}
	for _, client := range []string{"A", "B"} {
		if id, ok := a.known[client]; ok {
			for _, status := range []string{"active", "inactive", "all"} {
				shown["users "+status+" of "+client] = x.users(id, status)
			}
		}
	}
	return shown
}
