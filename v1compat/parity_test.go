package v1compat

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// actor uses one tenant through one version; it remembers objects by the names
// that a case gives them.
type actor struct {
	surface
	*service
	tenant v2test.Tenant
	known  map[string]string
}

// keep remembers the object of an answer.
func (a *actor) keep(name string, got answer) answer {
	if len(got.objects) == 1 {
		a.known[name] = fmt.Sprint(got.objects[0]["id"])
	}
	return got
}

func (a *actor) collection(client, name string) int {
	id, err := domain.ParseUUID[domain.ClientKind](a.known[client])
	if err != nil {
		a.T.Fatal(err)
	}
	return a.integer(idmap.Collection, idmap.UUID(a.Collection(id, name)))
}

type fields = map[string]any

// cases run one after the other, through each version on a tenant of its own.
var cases = []struct {
	name string
	do   func(a *actor) answer
	code domain.Code
}{
	{"a client", func(a *actor) answer { return a.keep("A", a.createClient("Überwald GmbH")) }, ""},
	{"another", func(a *actor) answer { return a.keep("B", a.createClient(strings.Repeat("é", 200))) }, ""},
	{"its name again", func(a *actor) answer { return a.createClient("ÜBERWALD gmbh") }, domain.Conflict},
	{"no name", func(a *actor) answer { return a.createClient(" \t ") }, domain.InvalidRequest},
	{"too long a name", func(a *actor) answer { return a.createClient(strings.Repeat("é", 201)) }, domain.InvalidRequest},
	{"a classified user", func(a *actor) answer {
		return a.keep("cfo", a.createUser(a.known["A"], fields{"email": "CFO@Example.com", "first_name": "Ada", "last_name": "King", "job_title": "CFO", "department": "Board"}))
	}, ""},
	{"a user with a role", func(a *actor) answer {
		return a.keep("hr", a.createUser(a.known["A"], fields{"email": "hr@example.com", "job_title": "CFO", "role": "hr", "preferred_language": "fr-ca", "manager_email": "cfo@example.com"}))
	}, ""},
	{"a user by department", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "x@example.com", "department": "Accounts Payable"})
	}, ""},
	{"a user by email", func(a *actor) answer { return a.createUser(a.known["A"], fields{"email": "payroll@example.com"}) }, ""},
	{"a user of a collection", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "c@example.com", "collection_id": a.collection("A", "Own")})
	}, ""},
	{"of another client's", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "d@example.com", "collection_id": a.collection("B", "Foreign")})
	}, domain.InvalidRequest},
	{"the same email", func(a *actor) answer { return a.createUser(a.known["A"], fields{"email": "cfo@EXAMPLE.com"}) }, domain.Conflict},
	{"in another client", func(a *actor) answer { return a.createUser(a.known["B"], fields{"email": "cfo@example.com"}) }, ""},
	{"no email", func(a *actor) answer { return a.createUser(a.known["A"], fields{"first_name": "Ada"}) }, domain.InvalidRequest},
	{"a bad email", func(a *actor) answer { return a.createUser(a.known["A"], fields{"email": "nobody"}) }, domain.InvalidRequest},
	{"a bad role", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "e@example.com", "role": "boss"})
	}, domain.InvalidRequest},
	{"a bad language", func(a *actor) answer {
		return a.createUser(a.known["A"], fields{"email": "e@example.com", "preferred_language": "de"})
	}, domain.InvalidRequest},
	{"a state", func(a *actor) answer { return a.updateUser(a.known["hr"], fields{"status": "inactive"}) }, ""},
	{"the same state", func(a *actor) answer { return a.updateUser(a.known["hr"], fields{"status": "inactive"}) }, ""},
	{"a role and a language", func(a *actor) answer {
		return a.updateUser(a.known["cfo"], fields{"role": "standard", "preferred_language": "es"})
	}, ""},
	{"a bad state", func(a *actor) answer { return a.updateUser(a.known["cfo"], fields{"status": "gone"}) }, domain.InvalidRequest},
	{"nothing", func(a *actor) answer { return a.updateUser(a.known["cfo"], fields{}) }, domain.InvalidRequest},
	{"nobody", func(a *actor) answer {
		return a.updateUser("01980000-0000-7000-8000-000000000000", fields{"status": "active"})
	}, domain.NotFound},
	{"overdue courses", func(a *actor) answer { return a.users(a.known["A"], "active") }, ""},
	{"a bad filter", func(a *actor) answer { return a.users(a.known["A"], "gone") }, domain.InvalidRequest},
}

// TestParity: what one version does and says, the other does and says too.
func TestParity(t *testing.T) {
	s := start(t, setup{})
	one, two := s.Tenant("One"), s.Tenant("Two")
	s.Exec(`INSERT INTO admins (id, partner_id, email, name, role, created_at)
		SELECT gen_random_uuid(), p.id, r.role || '@example.com', 'Grace Brewster ' || r.role, r.role, $1::timestamptz + r.n * interval '1 hour'
		FROM partners AS p, unnest(ARRAY['viewer', 'owner', 'admin']) WITH ORDINALITY AS r (role, n)`, v2test.Noon)
	first := &actor{surface: v1{s, one.Key}, service: s, tenant: one, known: map[string]string{}}
	second := &actor{surface: v2surface{s, two.Key}, service: s, tenant: two, known: map[string]string{}}
	for _, c := range cases {
		s.Clock.Advance(time.Second)
		if c.name == "overdue courses" {
			s.Clock.Advance(50 * 24 * time.Hour)
		}
		got, want := first.named(c.do(first)), second.named(c.do(second))
		if got.code != string(c.code) || want.code != string(c.code) {
			t.Errorf("%s: v1 says %+v, v2 %+v, not %q", c.name, got, want, c.code)
		}
		same(t, c.name, got, want)
		if c.code == "" {
			reads(t, c.name, first, second)
		}
	}
	for _, u := range second.users(second.known["A"], "active").objects {
		if u["on track"] != false || u["behind"] != 2.0 || u["next"] == "" {
			t.Errorf("nobody is behind after 50 days: %v", u)
		}
	}
}

// reads compares what both versions show of both tenants: within a tenant id by
// id, and between the tenants by the names of the case.
func reads(t *testing.T, name string, first, second *actor) {
	t.Helper()
	shown := map[string][]answer{}
	for _, a := range []*actor{first, second} {
		byV1, byV2 := v1{a.service, a.tenant.Key}, v2surface{a.service, a.tenant.Key}
		compare := func(what string, ask func(surface) answer) {
			t.Helper()
			got, want := ask(byV1), ask(byV2)
			same(t, name+": "+what, got, want)
			shown[what] = append(shown[what], a.named(got))
		}
		compare("partner", surface.partner)
		compare("clients", surface.clients)
		for _, client := range slices.Sorted(maps.Keys(a.known)) {
			if client != "A" && client != "B" {
				continue
			}
			for _, status := range []string{"active", "inactive", "all"} {
				compare("users "+status+" of "+client, func(x surface) answer { return x.users(a.known[client], status) })
			}
		}
	}
	for what, pair := range shown {
		if what != "partner" { // the partners' names and admins are their own
			same(t, name+": both tenants' "+what, pair[0], pair[len(pair)-1])
		}
	}
}

// named puts the names of a case's objects in the place of their ids, which no
// two tenants share; other ids are left out.
func (a *actor) named(got answer) answer {
	out := got
	out.objects = nil
	for _, object := range got.objects {
		object = maps.Clone(object)
		id := object["id"]
		delete(object, "id")
		for name, known := range a.known {
			if known == id {
				object["id"] = name
			}
		}
		out.objects = append(out.objects, object)
	}
	return out
}

// same fails the test unless two answers say the same in the fields that both
// show.
func same(t *testing.T, name string, got, want answer) {
	t.Helper()
	if got.code != want.code || got.message != want.message || len(got.objects) != len(want.objects) {
		t.Errorf("%s:\n%+v\n%+v", name, got, want)
		return
	}
	for i, object := range got.objects {
		for field, value := range object {
			if other, both := want.objects[i][field]; both && !reflect.DeepEqual(value, other) {
				t.Errorf("%s: %s of %d: %v and %v", name, field, i, value, other)
			}
		}
	}
}
