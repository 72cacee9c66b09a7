package parity

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/v1compat"
)

// cleanupTimeout bounds the time for removing the created objects.
const cleanupTimeout = time.Minute

// Writes makes a collection, a user and a membership in a client, changes and removes them, once through each version,
// and compares what both versions show after each write. The client is a number of v1 or an id of v2; the key needs the
// scope write. Collections are deleted at the end; users cannot be, and become inactive. made describes the objects.
func Writes(ctx context.Context, c Config, client string) (report *Report, made []string, err error) {
	c.Sample, c.OldURL = 0, "" // compare whole lists, of v1 and v2
	report, err = withRun(ctx, c, func(r *run) error {
		found, err := r.exchange(ctx, "client", client)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("the key has access to no client %s; specify the client's numeric ID in v1 or its ID in v2", client)
		}
		for _, version := range []string{"v1", "v2"} {
			t := &trial{
				run: r, version: version, name: "parity-" + strings.ToLower(rand.Text()[:12]),
				v1: parents{"client": found[0].V1}, v2: parents{"client": found[0].V2},
			}
			err := t.writeAll(ctx)
			made = append(made, t.clean(ctx)...)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return report, made, err
}

// trial is the writes through one version. v1 and v2 are the ids of the client and of the created objects, by kind.
type trial struct {
	*run
	version, name string
	v1, v2        parents
}

// write is a write of v1; v2's is its successor. Bodies name objects by parameters, as paths do.
type write struct {
	method, path string
	body, bodyV2 string // bodyV2 is empty if v2 has the same
	makes        string // the kind of the object made; empty for none
	effects      []expectation
}

// expectation is an object that a list must have, with the members in want (JSON), or must not have if want is empty.
type expectation struct{ list, kind, want string }

// writeAll makes the writes, and compares after each. A write names objects that earlier ones made.
func (t *trial) writeAll(ctx context.Context) error {
	const collections = "/clients/:client_id/collections"
	const members = collections + "/:collection_id/members"
	collection := `{"name":"` + t.name + `","description":"made by partnerapi parity"}`
	email := `{"email":"` + t.name + `@example.com"`
	user := email + `,"first_name":"Parity","last_name":"Trial","role":"hr"`
	change := `{"preferred_language":"fr-ca","role":"finance","status":"inactive"}`

	empty := expectation{"collections", "collection", `{"member_count":0}`}
	// The fields of a write: method, path, bodies of v1 and of v2 if it differs, created objects, effects.
	add := write{"POST", members, `{"user_infima_id":":user_id"}`, `{"user_ids":[":user_id"]}`, "", []expectation{
		{"collection-members", "user", email + "}"}, {"collections", "collection", `{"member_count":1}`},
	}}
	for _, w := range []write{
		{"POST", collections, collection, "", "collection", []expectation{{"collections", "collection", collection}, empty}},
		{"POST", "/clients/:client_id/users", user + "}", "", "user", []expectation{{"users", "user", user + `,"status":"active"}`}}},
		add,
		{"POST", "/users/:user_id", change, "", "", []expectation{{"users?status=inactive", "user", change}}},
		{"DELETE", members + "/:user_id", "", "", "", []expectation{{"collection-members", "user", ""}, empty}},
		add, // again, after the removal, and of a user who is inactive now
	} {
		if err := t.write(ctx, w); err != nil {
			return err
		}
		for _, e := range w.effects {
			if err := t.expect(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// write makes w in v1, or in v2 at the path of its translation, and records the ids of the created object. A wrong
// status is a difference, and an error. v1 refuses none of the writes: the translation has no Refusal.
func (t *trial) write(ctx context.Context, w write) error {
	r := request{method: w.method, path: "/v1" + t.v1.fill(w.path), body: t.v1.fill(w.body)}
	translated, err := t.Facade.Translate(r.method, r.path, r.body, v1compat.Lookups{IDs: t.ids(ctx)})
	if err != nil {
		return err
	}
	status := translated.Status
	if t.version == "v2" {
		successor := translated.Successor.Meta()
		r = request{method: successor.Method, path: translated.Next, body: t.v2.fill(cmp.Or(w.bodyV2, w.body))}
		status = successor.Status
	}
	a, err := t.service.do(ctx, r)
	if err != nil {
		return err
	}
	f := checkHeaders(a)
	f.checkAnswer(a, "status", valueOf(a.status), valueOf(status), a.status == status)
	t.report.add(operationOf(translated.Translator), f)
	if a.status != status {
		return fmt.Errorf("%s %s returned %d: %s", a.method, a.path, a.status, message(a))
	}
	if w.makes == "" {
		return nil
	}
	found, err := t.exchange(ctx, w.makes, memberOf(a.body, "id"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("the new %s %s has no numeric ID", w.makes, memberOf(a.body, "id"))
	}
	if err == nil {
		t.v1[w.makes], t.v2[w.makes] = found[0].V1, found[0].V2
	}
	return err
}

// expect compares a whole list, and checks that it has the created object, with the members of e.want on both sides, or
// that it does not have it if e.want is empty. It reports the results of the comparison and of the check.
func (t *trial) expect(ctx context.Context, e expectation) error {
	q, err := t.listOf(ctx, e.list, t.v1)
	if err != nil {
		return err
	}
	pairs, err := q.compare(ctx)
	if err != nil {
		return err
	}
	f := finding{answers: []answer{{request: q.request, from: t.service}, {request: get(q.Next), from: t.service}}}
	shown := false
	for _, pair := range pairs {
		if pair[0].subject.id != t.v1[e.kind] {
			continue
		}
		shown = true
		for name, want := range members(jsontext.Value(e.want)) {
			for _, side := range pair {
				got := members(side.value)[name]
				f.check(name, got, want, string(got) == string(want))
			}
		}
	}
	f.check("item", valueOf(shown), valueOf(e.want != ""), shown == (e.want != ""))
	t.report.add(q.operation(), f)
	return nil
}

// clean deletes the collection and makes the user inactive, even if ctx has ended. It describes each of the two that
// was created, and whether that failed.
func (t *trial) clean(ctx context.Context) (made []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	undo := func(kind, name, outcome string, r request, status int) {
		if a, err := t.service.do(ctx, r); err != nil || a.status != status {
			outcome = "cleanup failed: not " + outcome
		}
		made = append(made, fmt.Sprintf("through %s: %s %s (%s), %s", t.version, kind, name, t.v2[kind], outcome))
	}
	if id := t.v2["collection"]; id != "" {
		undo("collection", t.name, "deleted", request{
			method: http.MethodDelete, path: "/v2/clients/" + t.v2["client"] + "/collections/" + id,
		}, http.StatusNoContent)
	}
	if id := t.v2["user"]; id != "" {
		undo("user", t.name+"@example.com", "inactive", request{
			method: http.MethodPatch, path: "/v2/users/" + id, body: `{"status":"inactive"}`,
		}, http.StatusOK)
	}
	return made
}
