package v1compat

import (
	"database/sql"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// table is steps that are taken one after the other, through each version on a
// tenant of its own, and what both versions show of both tenants after each.
type table struct {
	name  string
	steps []step
	views func(a *actor, x surface) map[string]answer
}

// step is one thing that a partner does, or that happens to one.
type step struct {
	name string
	do   func(a *actor) answer
	says outcome
}

// outcome is what both versions are to say to a step.
type outcome struct {
	code domain.Code
	// objects, if not nil, is some of the fields of each object.
	objects []fields
	// own says that each version has words of its own for an error.
	own bool
}

var done = outcome{}

func refuses(code domain.Code) outcome { return outcome{code: code} }

// refusesIn is refuses where the words differ, for the versions take different
// things.
func refusesIn(code domain.Code) outcome { return outcome{code: code, own: true} }

func shows(objects ...fields) outcome { return outcome{objects: append([]fields{}, objects...)} }

var tables = []table{
	{"accounts", accountSteps, accountViews},
	{"collections", slices.Concat(office, collectionSteps), collectionViews},
	{"policies", slices.Concat(office, policySteps), policyViews},
	{"dark web", slices.Concat(office, darkWebSteps), darkWebViews},
	{"training", slices.Concat(office, trainingSteps), trainingViews},
	{"phishing", slices.Concat(office, phishingSteps), phishingViews},
	{"reports", slices.Concat(office, reportSteps), reportViews},
	{"mail", slices.Concat(office, mailSteps), mailViews},
}

// office is clients A, whose users are Ada and Bob, and B, whose user is Eve.
var office = []step{
	{"client A", func(a *actor) answer { return a.keep("A", a.createClient("Überwald GmbH")) }, done},
	{"client B", func(a *actor) answer { return a.keep("B", a.createClient("Borogravia")) }, done},
	{"Ada", func(a *actor) answer { return a.employ("A", "Ada", "King") }, done},
	{"Bob", func(a *actor) answer { return a.employ("A", "Bob", "Example") }, done},
	{"Eve", func(a *actor) answer { return a.employ("B", "Eve", "Example") }, done},
}

// unusedID is the UUID of no object.
const unusedID = "01980000-0000-7000-8000-000000000000"

// actor uses one tenant through one version; it knows the UUIDs of objects by
// the names that the steps give them.
type actor struct {
	surface
	*service
	tenant v2test.Tenant
	known  map[string]string
	// leads says that the actor takes each step first: what concerns both
	// tenants is done once.
	leads bool
	heard int // how many signals were sent
}

// keep remembers the object of an answer.
func (a *actor) keep(name string, got answer) answer {
	if len(got.objects) == 1 {
		a.known[name] = fmt.Sprint(got.objects[0]["id"])
	}
	return got
}

// scan reads the id of an object that is known.
func (a *actor) scan(into sql.Scanner, name string) {
	a.T.Helper()
	if err := into.Scan(a.known[name]); err != nil {
		a.T.Fatal(err)
	}
}

// someone is the object of a name, or unusedID.
func (a *actor) someone(name string) string {
	if id, ok := a.known[name]; ok {
		return id
	}
	return unusedID
}

// employ creates a user, who is known by the first name.
func (a *actor) employ(client, first, last string) answer {
	body := fields{"email": first + "@example.com", "first_name": first, "last_name": last}
	return a.keep(first, a.createUser(a.known[client], body))
}

// passes lets time go by.
func passes(d time.Duration) func(*actor) answer {
	return once(func(a *actor) { a.Clock.Advance(d) })
}

const day = 24 * time.Hour

// once does what concerns both tenants.
func once(do func(a *actor)) func(*actor) answer {
	return func(a *actor) answer {
		if a.leads {
			do(a)
		}
		return answer{}
	}
}

// each does what no version has a request for to both tenants.
func each(do func(a *actor)) func(*actor) answer {
	return func(a *actor) answer {
		do(a)
		return answer{}
	}
}

// actor is one with a new tenant, beside whom there is a stranger.
func (s *service) actor(name string, leads bool) *actor {
	a := &actor{service: s, tenant: s.Tenant(name), known: map[string]string{}, leads: leads}
	stranger := s.Tenant(name + "'s stranger")
	theirs := s.Client(stranger, "Theirs")
	a.known["theirs"] = theirs.ID.UUID()
	a.known["their user"] = s.User(stranger, theirs.ID, "mallory@example.com").ID.UUID()
	if a.surface = surface(v2surface{s, a.tenant.Key}); leads {
		a.surface = v1{s, a.tenant.Key}
	}
	return a
}

// TestParity: what one version does and says, the other does and says too.
func TestParity(t *testing.T) {
	t.Parallel()
	for _, table := range tables {
		t.Run(table.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{})
			first, second := s.actor("One", true), s.actor("Two", false)
			for _, step := range table.steps {
				s.Clock.Advance(time.Second)
				got, want := first.named(step.do(first)), second.named(step.do(second))
				step.says.check(t, step.name, got, want)
				if step.says.code == "" {
					table.compare(t, step.name, first, second)
				}
			}
		})
	}
}

// check fails the test unless both versions say what they are to.
func (o outcome) check(t *testing.T, name string, got, want answer) {
	t.Helper()
	if got.code != string(o.code) || want.code != string(o.code) {
		t.Errorf("%s: v1 says %+v, v2 %+v, not %q", name, got, want, o.code)
	}
	if o.own {
		got.message, want.message = "", ""
	}
	same(t, name, got, want)
	if o.objects == nil {
		return
	}
	if len(got.objects) != len(o.objects) {
		t.Errorf("%s: %v, not %v", name, got.objects, o.objects)
		return
	}
	for i, object := range o.objects {
		for field, value := range object {
			if shown := got.objects[i][field]; fmt.Sprint(shown) != fmt.Sprint(value) {
				t.Errorf("%s: %s of %d is %v, not %v", name, field, i, shown, value)
			}
		}
	}
}

// compare compares what both versions show of both tenants: within a tenant id
// by id, and between the tenants by the names of the table.
func (of table) compare(t *testing.T, name string, first, second *actor) {
	t.Helper()
	var byBoth []map[string]answer
	for _, a := range []*actor{first, second} {
		byV1, byV2 := of.views(a, v1{a.service, a.tenant.Key}), of.views(a, v2surface{a.service, a.tenant.Key})
		for what, got := range byV1 {
			same(t, name+": "+what, got, byV2[what])
		}
		byBoth = append(byBoth, byV1)
	}
	for what, got := range byBoth[0] {
		same(t, name+": both tenants' "+what, first.named(got), second.named(byBoth[1][what]))
	}
}

// named puts the names of a table's objects instead of their ids, which no
// two tenants share; other ids are left out.
func (a *actor) named(got answer) answer {
	out := got
	out.objects = nil
	for _, object := range got.objects {
		object = maps.Clone(object)
		for _, field := range []string{"id", "scope"} {
			value := object[field]
			delete(object, field)
			for name, known := range a.known {
				if known == value {
					object[field] = name
				}
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
