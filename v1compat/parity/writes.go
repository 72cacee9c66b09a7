package parity

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/v2/op"
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
	o, err := run.clientNamed(ctx, in)
	if err != nil {
		return run.report, nil, err
	}
	for _, version := range []string{"v1", "v2"} {
		t := &trial{run: run, of: parents{"client": o}, version: version, name: "parity-" + strings.ToLower(rand.Text()[:12])}
		err = t.all(ctx)
		made = append(made, t.clean(ctx)...)
		if err != nil {
			break
		}
	}
	return run.report, made, err
}

// clientNamed finds a client by its id in either version.
func (r *run) clientNamed(ctx context.Context, id string) (object, error) {
	pairs, err := r.exchange(ctx, "client", []jsontext.Value{idValue(id)})
	if err != nil {
		return object{}, err
	}
	if len(pairs) == 0 {
		return object{}, Unable{fmt.Errorf("the key reaches no client %s: name one by its number in v1, or its id in v2", id)}
	}
	return object{pairs[0].one(), pairs[0].V2}, nil
}

// trial is the writes through one version.
type trial struct {
	*run
	of            parents // the client, and what was made
	version, name string
}

// write is a write in the words of both versions.
type write struct {
	// method and path are v1's. v2 has the same, but for methodV2 where it is set.
	method, methodV2, path string
	v1, v2                 map[string]any // the bodies
	status                 [2]int
	// makes is the kind of the object that it makes; empty for none.
	makes string
	// after are what both versions show then.
	after []showing
}

// showing is an object of a list with some of its members; nil where it is not shown.
type showing struct {
	route, kind string
	filters     object
	want        map[string]any
}

// all makes the writes, and compares after each.
func (t *trial) all(ctx context.Context) error {
	for _, step := range t.steps() {
		w := step()
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

// steps are the writes. Each is made when its turn has come, as it names what the ones
// before it made.
func (t *trial) steps() []func() write {
	const collections = "/clients/:client_id/collections"
	const members = collections + "/:collection_id/members"
	collection := map[string]any{"name": t.name, "description": "made by partnerapi parity"}
	made := map[string]any{"email": t.name + "@example.com", "first_name": "Parity", "last_name": "Trial", "role": "hr"}
	change := map[string]any{"preferred_language": "fr-ca", "role": "finance", "status": "inactive"}
	created, ok := [2]int{http.StatusCreated, http.StatusCreated}, [2]int{http.StatusOK, http.StatusOK}

	add := func() write {
		return write{
			method: "POST", path: members, status: ok,
			v1: map[string]any{"user_infima_id": t.of["user"].v1}, v2: map[string]any{"user_ids": []string{t.of["user"].v2}},
			after: []showing{
				{"collection-members", "user", object{}, map[string]any{"email": made["email"]}},
				{"collections", "collection", object{}, map[string]any{"member_count": 1}},
			},
		}
	}
	return []func() write{
		func() write {
			return write{
				method: "POST", path: collections, v1: collection, v2: collection, status: created, makes: "collection",
				after: []showing{{"collections", "collection", object{}, with(collection, "member_count", 0)}},
			}
		},
		func() write {
			return write{
				method: "POST", path: "/clients/:client_id/users", v1: made, v2: made, status: created, makes: "user",
				after: []showing{{"users", "user", object{"", "status=active"}, with(made, "status", "active")}},
			}
		},
		add,
		func() write {
			return write{
				method: "POST", methodV2: "PATCH", path: "/users/:user_id", v1: change, v2: change, status: ok,
				after: []showing{{"users", "user", object{"status=inactive", "status=inactive"}, change}},
			}
		},
		func() write {
			return write{
				method: "DELETE", path: members + "/:user_id", status: [2]int{http.StatusOK, http.StatusNoContent},
				after: []showing{
					{"collection-members", "user", object{}, nil},
					{"collections", "collection", object{}, map[string]any{"member_count": 0}},
				},
			}
		},
		add,
	}
}

// with is a copy of an object with another member.
func with(object map[string]any, name string, value any) map[string]any {
	object = maps.Clone(object)
	object[name] = value
	return object
}

// send makes the write through the trial's version, and remembers what it made. That it
// fails is a difference.
func (t *trial) send(ctx context.Context, w write) error {
	r := request{method: w.method, path: "/v1" + filled(w.path, func(kind string) string { return t.of[kind].v1 })}
	body, status := w.v1, w.status[0]
	if t.version == "v2" {
		r.method = cmp.Or(w.methodV2, w.method)
		r.path = "/v2" + filled(w.path, func(kind string) string { return t.of[kind].v2 })
		body, status = w.v2, w.status[1]
	}
	if body != nil {
		r.body = jsonOf(body)
	}
	a, err := t.service.do(ctx, r)
	if err != nil {
		return err
	}
	operation := w.method + " /v1" + op.Braced(w.path)
	t.checkHeaders(operation, a)
	if a.status != status {
		f := fault{"status", number(a.status), number(status)}
		if t.version == "v2" {
			f.v1, f.v2 = f.v2, f.v1
		}
		t.report.count(operation, verdict{faults: []fault{f}}, a)
		return Unable{fmt.Errorf("%s %s was answered %d: %s", a.method, a.path, a.status, message(a))}
	}
	t.report.count(operation, verdict{equal: 1}, a)
	if w.makes == "" {
		return nil
	}

	id := memberOf(a.body, "id")
	pairs, err := t.exchange(ctx, w.makes, []jsontext.Value{idValue(id)})
	if err != nil {
		return err
	}
	if len(pairs) != 1 {
		return fmt.Errorf("exchange the id of the new %s %s: there is none", w.makes, id)
	}
	t.of[w.makes] = object{pairs[0].one(), pairs[0].V2}
	return nil
}

// idValue is an id of either version as JSON: v1's numbers are numbers.
func idValue(id string) jsontext.Value {
	if _, err := strconv.ParseUint(id, 10, 31); err == nil {
		return jsontext.Value(id)
	}
	return text(id)
}

// shows compares all of a list, and whether both sides show the object with what was
// written.
func (t *trial) shows(ctx context.Context, s showing) error {
	l := t.list(s.route, s.filters, t.of)
	pairs, err := t.compareList(ctx, l)
	if err != nil {
		return err
	}
	seen := false
	for _, pair := range pairs {
		if pair[0].key.id != t.of[s.kind].v1 {
			continue
		}
		seen = true
		var v verdict
		for name, value := range s.want {
			expected := jsonOf(value)
			for _, side := range pair {
				all, err := members(side.value)
				if err != nil {
					return err
				}
				if string(all[name]) == expected {
					v.equal++
				} else {
					v.faults = append(v.faults, fault{name, all[name], jsontext.Value(expected)})
				}
			}
		}
		t.report.count(l.operation(), v, pair[0].of, pair[1].of)
	}
	if seen != (s.want != nil) {
		t.report.count(l.operation(), verdict{faults: []fault{{"item", boolean(seen), boolean(s.want != nil)}}},
			answer{request: get(l.v1), from: t.service}, answer{request: get(l.v2), from: t.service})
	}
	return nil
}

// clean deletes the collection and makes the user inactive, also where the work was
// stopped, and says what was made.
func (t *trial) clean(ctx context.Context) (made []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	undo := func(kind, name, done string, r request, status int) {
		id := t.of[kind].v2
		if id == "" {
			return
		}
		outcome := done
		r.path += id
		if a, err := t.service.do(ctx, r); err != nil || a.status != status {
			outcome = "which could not be made " + done
		}
		made = append(made, fmt.Sprintf("through %s: %s %s (%s), %s", t.version, kind, name, id, outcome))
	}
	undo("collection", t.name, "deleted", request{
		method: http.MethodDelete, path: "/v2/clients/" + t.of["client"].v2 + "/collections/",
	}, http.StatusNoContent)
	undo("user", t.name+"@example.com", "inactive", request{
		method: http.MethodPatch, path: "/v2/users/", body: `{"status":"inactive"}`,
	}, http.StatusOK)
	return made
}

// jsonOf is a value as JSON.
func jsonOf(value any) string {
	text, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(err) // a value of this package
	}
	return string(text)
}
