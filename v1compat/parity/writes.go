package parity

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/v1compat"
)

// cleanWithin bounds the time for removing what was made.
const cleanWithin = time.Minute

// Writes makes a collection, a user and a membership in a client, changes and removes
// them, once through each version, and compares what both versions show after each
// write. The client is a number of v1 or an id of v2; the key needs the scope write.
// The collections are deleted at the end; the users cannot be, and are left inactive.
// made says what was made.
func Writes(ctx context.Context, c Config, in string) (r *Report, made []string, err error) {
	run, err := newRun(c)
	if err != nil {
		return &Report{}, nil, err
	}
	defer run.close()
	run.Sample, run.old = 0, nil
	if err := run.begin(ctx); err != nil {
		return run.report, nil, err
	}
	found, err := run.exchange(ctx, "client", []jsontext.Value{idValue(in)})
	if err != nil {
		return run.report, nil, err
	}
	if len(found) == 0 {
		return run.report, nil, Unable{fmt.Errorf(
			"the key reaches no client %s: name one by its number in v1, or its id in v2", in)}
	}
	for _, version := range []string{"v1", "v2"} {
		t := &trial{
			run: run, version: version, of: parents{"client": found[0].old()}, made: map[string]string{"client": found[0].V2},
			name: "parity-" + strings.ToLower(rand.Text()[:12]),
		}
		err = t.all(ctx)
		made = append(made, t.clean(ctx)...)
		if err != nil {
			break
		}
	}
	return run.report, made, err
}

// trial is the writes through one version.
type trial struct {
	*run
	version, name string
	of            parents           // the client, and what was made
	made          map[string]string // v2's ids of them, by kind
}

// write is a write of v1. v2's is the one that follows it.
type write struct {
	method, path string
	// body is the body in both versions.
	body map[string]any
	// adds says that the body names the user, as each version does.
	adds bool
	// makes is the kind of the object that it makes; empty for none.
	makes string
	// after are what both versions show then.
	after []showing
}

// showing is the object of a kind that was made, in a list, with some of its members; nil
// where the list does not have it.
type showing struct {
	route, query, kind string
	want               map[string]any
}

// all makes the writes, and compares after each. A write names what the ones before it
// made.
func (t *trial) all(ctx context.Context) error {
	const collections = "/clients/:client_id/collections"
	const members = collections + "/:collection_id/members"
	collection := map[string]any{"name": t.name, "description": "made by partnerapi parity"}
	user := map[string]any{"email": t.name + "@example.com", "first_name": "Parity", "last_name": "Trial", "role": "hr"}
	change := map[string]any{"preferred_language": "fr-ca", "role": "finance", "status": "inactive"}
	counted := func(n int) showing {
		return showing{"collections", "", "collection", map[string]any{"member_count": n}}
	}
	add := write{
		method: "POST", path: members, adds: true,
		after: []showing{{"collection-members", "", "user", map[string]any{"email": user["email"]}}, counted(1)},
	}
	active := maps.Clone(user)
	active["status"] = "active"
	for _, w := range []write{
		{
			method: "POST", path: collections, body: collection, makes: "collection",
			after: []showing{{"collections", "", "collection", collection}, counted(0)},
		},
		{
			method: "POST", path: "/clients/:client_id/users", body: user, makes: "user",
			after: []showing{{"users", "", "user", active}},
		},
		add,
		{
			method: "POST", path: "/users/:user_id", body: change,
			after: []showing{{"users", "status=inactive", "user", change}},
		},
		{
			method: "DELETE", path: members + "/:user_id",
			after: []showing{{"collection-members", "", "user", nil}, counted(0)},
		},
		add,
	} {
		if err := t.send(ctx, w); err != nil {
			return err
		}
		for _, s := range w.after {
			if err := t.shows(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// send makes the write through the trial's version, and remembers what it made. That it
// fails is a difference.
func (t *trial) send(ctx context.Context, w write) error {
	out, body, bodyV2 := request{method: w.method, path: "/v1" + t.of.fill(w.path)}, w.body, w.body
	if w.adds {
		body = map[string]any{"user_infima_id": t.of["user"]}
		bodyV2 = map[string]any{"user_ids": []string{t.made["user"]}}
	}
	if body != nil {
		out.body = string(valueOf(body))
	}
	asked, err := t.Facade.Ask(out.method, out.path, out.body, v1compat.Outside{IDs: t.ids(ctx)})
	if err != nil {
		return err
	}
	status := asked.Status
	if t.version == "v2" {
		next := asked.Successor.Meta()
		out.method, out.path, status = next.Method, asked.Next, next.Status
		if bodyV2 != nil {
			out.body = string(valueOf(bodyV2))
		}
	}
	a, err := t.service.do(ctx, out)
	if err != nil {
		return err
	}
	operation := operationOf(asked.Reading)
	t.checkHeaders(operation, a)
	if a.status != status {
		t.report.count(operation, verdict{faults: []fault{a.fault("status", valueOf(a.status), valueOf(status))}}, a)
		return Unable{fmt.Errorf("%s %s was answered %d: %s", a.method, a.path, a.status, message(a))}
	}
	t.report.count(operation, verdict{equal: 1}, a)
	if w.makes == "" {
		return nil
	}

	id := memberOf(a.body, "id")
	found, err := t.exchange(ctx, w.makes, []jsontext.Value{idValue(id)})
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("exchange the id of the new %s %s: there is none", w.makes, id)
	}
	if err == nil {
		t.of[w.makes], t.made[w.makes] = found[0].old(), found[0].V2
	}
	return err
}

// shows compares all of a list, and whether both sides show the object with what was
// written.
func (t *trial) shows(ctx context.Context, s showing) error {
	l, err := t.listAt(ctx, s.route, s.query, t.of)
	if err != nil {
		return err
	}
	pairs, err := l.compare(ctx)
	if err != nil {
		return err
	}
	seen := fault{"item", valueOf(false), valueOf(s.want != nil)}
	for _, pair := range pairs {
		if pair[0].key.id != t.of[s.kind] {
			continue
		}
		seen.v1 = valueOf(true)
		var v verdict
		for name, value := range s.want {
			for _, side := range pair {
				all, err := members(side.value)
				if err != nil {
					return err
				}
				v.check(fault{name, all[name], valueOf(value)})
			}
		}
		t.report.count(l.operation(), v, pair[0].of, pair[1].of)
	}
	var v verdict
	v.check(seen)
	t.report.count(l.operation(), v, answer{request: l.v1, from: t.service}, answer{request: get(l.Next), from: t.service})
	return nil
}

// clean deletes the collection and makes the user inactive, also where the work was
// stopped, and says what was made.
func (t *trial) clean(ctx context.Context) (made []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	undo := func(kind, name, done string, r request, status int) {
		if a, err := t.service.do(ctx, r); err != nil || a.status != status {
			done = "which could not be made " + done
		}
		made = append(made, fmt.Sprintf("through %s: %s %s (%s), %s", t.version, kind, name, t.made[kind], done))
	}
	if id := t.made["collection"]; id != "" {
		undo("collection", t.name, "deleted", request{
			method: http.MethodDelete, path: "/v2/clients/" + t.made["client"] + "/collections/" + id,
		}, http.StatusNoContent)
	}
	if id := t.made["user"]; id != "" {
		undo("user", t.name+"@example.com", "inactive", request{
			method: http.MethodPatch, path: "/v2/users/" + id, body: `{"status":"inactive"}`,
		}, http.StatusOK)
	}
	return made
}
