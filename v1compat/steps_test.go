package v1compat

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// step is one thing that a partner does, or that happens to one, and what v1 answers.
type step struct {
	name string
	do   func(c *caller) answer
	says outcome
}

// outcome is what an answer must be.
type outcome struct {
	code domain.Code // of a refusal
	// objects, if not nil, has some of the fields of each object. An id is given by the
	// name of its object.
	objects []fields
}

var done = outcome{}

func refuses(code domain.Code) outcome { return outcome{code: code} }

func shows(objects ...fields) outcome { return outcome{objects: append([]fields{}, objects...)} }

// each is an outcome whose objects are told apart by one field.
func each[V any](field string, values ...V) outcome {
	out := outcome{objects: []fields{}}
	for _, value := range values {
		out.objects = append(out.objects, fields{field: value})
	}
	return out
}

// office is clients A, whose users are Ada and Bob, and B, whose user is Eve.
var office = []step{
	{"client A", func(c *caller) answer { return c.keep("A", c.createClient("Überwald GmbH")) }, done},
	{"client B", func(c *caller) answer { return c.keep("B", c.createClient("Borogravia")) }, done},
	{"Ada", employ("A", "Ada", "King"), done},
	{"Bob", employ("A", "Bob", "Example"), done},
	{"Eve", employ("B", "Eve", "Example"), done},
}

// employ creates a user, who is known by the first name.
func employ(client, first, last string) func(*caller) answer {
	return func(c *caller) answer {
		return c.keep(first, c.createUser(client, fields{"email": first + "@example.com", "first_name": first, "last_name": last}))
	}
}

// changes changes a user.
func changes(user string, body fields) func(*caller) answer {
	return func(c *caller) answer { return c.updateUser(user, body) }
}

// happens is what v1 has no request for.
func happens(do func(c *caller)) func(*caller) answer {
	return func(c *caller) answer {
		do(c)
		return answer{}
	}
}

// passes lets time go by.
func passes(d time.Duration) func(*caller) answer {
	return happens(func(c *caller) { c.Clock.Advance(d) })
}

const day = 24 * time.Hour

// TestSteps: what v1 documents of each resource, by example: each step builds on those
// before it. What v1 lists, v2 lists too, by the link of the answer.
func TestSteps(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]step{
		"accounts": accountSteps, "collections": collectionSteps, "policies": policySteps, "dark web": darkWebSteps,
		"training": trainingSteps, "phishing": phishingSteps, "reports": reportSteps, "mail": mailSteps,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, setup{}).caller("Partner")
			for _, step := range slices.Concat(office, steps) {
				c.Clock.Advance(time.Second)
				c.check(t, step.name, step.do(c), step.says)
			}
		})
	}
}

// check fails the test unless an answer is what it must be.
func (c *caller) check(t *testing.T, name string, got answer, want outcome) {
	t.Helper()
	if got.code != want.code || want.objects != nil && len(got.objects) != len(want.objects) {
		t.Errorf("%s: v1 says %+v, not %+v", name, got, want)
		return
	}
	for i, object := range want.objects {
		for field, value := range object {
			if slices.Contains(idFields, field) {
				value = c.known[fmt.Sprint(value)]
			}
			if shown := got.objects[i][field]; fmt.Sprint(shown) != fmt.Sprint(value) {
				t.Errorf("%s: %s of %d is %v, not %v", name, field, i, shown, value)
			}
		}
	}
}

// stamp is a time as v1 writes it.
func stamp(t time.Time) string { return t.Format(time.RFC3339) }

// caller uses v1 with a key of a tenant. Its methods take the names of objects; known has
// v1's ids by these names, which the steps give them.
type caller struct {
	*service
	tenant v2test.Tenant
	known  map[string]string
	heard  int // signals that were sent
}

// caller is one with a new tenant, beside whom there is a stranger.
func (s *service) caller(name string) *caller {
	c := &caller{service: s, tenant: s.Tenant(name), known: map[string]string{}}
	stranger := s.Tenant(name + "'s stranger")
	theirs := s.Client(stranger, "Theirs").ID
	c.known["theirs"] = s.number(theirs)
	c.known["their user"] = s.User(stranger, theirs, "mallory@example.com").ID.UUID()
	return c
}

// keep names the object of an answer.
func (c *caller) keep(name string, got answer) answer {
	if len(got.objects) == 1 {
		c.known[name] = fmt.Sprint(got.objects[0]["id"])
	}
	return got
}
