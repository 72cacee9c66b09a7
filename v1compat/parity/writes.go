package parity

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
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
		t := &trial{run: run, client: o, version: version, name: "parity-" + strings.ToLower(rand.Text()[:12])}
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
	asked := text(id)
	if _, err := strconv.ParseUint(id, 10, 31); err == nil {
		asked = jsontext.Value(id)
	}
	pairs, err := r.exchange(ctx, "client", []jsontext.Value{asked})
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
	client           object
	version, name    string
	collection, user object
}

// all makes the writes, and compares after each.
func (t *trial) all(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		t.makeCollection, t.makeUser, t.member(true), t.change, t.member(false), t.member(true),
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// write is a write in the words of both versions.
type write struct {
	v1, v2    request
	status    [2]int
	operation string // of v1
}

// send makes the write through the trial's version. That it fails is a difference.
func (t *trial) send(ctx context.Context, w write) (answer, error) {
	r, status := w.v1, w.status[0]
	if t.version == "v2" {
		r, status = w.v2, w.status[1]
	}
	a, err := t.service.do(ctx, r)
	if err != nil {
		return a, err
	}
	t.checkHeaders(w.operation, a)
	v := verdict{equal: 1}
	if a.status != status {
		v = verdict{faults: []fault{{"status", number(a.status), number(status)}}}
		if t.version == "v2" {
			v.faults[0].v1, v.faults[0].v2 = v.faults[0].v2, v.faults[0].v1
		}
	}
	t.report.count(w.operation, v, a)
	if a.status != status {
		return a, Unable{fmt.Errorf("%s %s was answered %d: %s", a.method, a.path, a.status, message(a.body))}
	}
	return a, nil
}

// operation is the name of v1's operation.
func (t *trial) operation(method, path string) string { return method + " /v1" + path }

// both is the object that a write made, in both versions.
func (t *trial) both(ctx context.Context, kind string, a answer) (object, error) {
	id := memberOf(a.body, "id")
	if kind == "collection" && t.version == "v1" {
		return t.pair(ctx, kind, jsontext.Value(id))
	}
	return t.pair(ctx, kind, text(id))
}

func (t *trial) pair(ctx context.Context, kind string, id jsontext.Value) (object, error) {
	pairs, err := t.exchange(ctx, kind, []jsontext.Value{id})
	if err != nil || len(pairs) != 1 {
		return object{}, fmt.Errorf("exchange the id of the new %s %s: %w", kind, id, orNone(err))
	}
	return object{pairs[0].one(), pairs[0].V2}, nil
}

func orNone(err error) error {
	if err == nil {
		return fmt.Errorf("there is none")
	}
	return err
}

func (t *trial) makeCollection(ctx context.Context) error {
	body := jsonOf(map[string]any{"name": t.name, "description": "made by partnerapi parity"})
	a, err := t.send(ctx, write{
		v1:        post("/v1/clients/"+t.client.v1+"/collections", body),
		v2:        post("/v2/clients/"+t.client.v2+"/collections", body),
		status:    [2]int{http.StatusCreated, http.StatusCreated},
		operation: t.operation("POST", "/clients/{client_id}/collections"),
	})
	if err != nil {
		return err
	}
	if t.collection, err = t.both(ctx, "collection", a); err != nil {
		return err
	}
	return t.shows(ctx, t.list("collections", object{}, t.client), t.collection.v1, map[string]any{
		"name": t.name, "description": "made by partnerapi parity", "member_count": 0,
	})
}

func (t *trial) makeUser(ctx context.Context) error {
	user := map[string]any{"email": t.name + "@example.com", "first_name": "Parity", "last_name": "Trial", "role": "hr"}
	a, err := t.send(ctx, write{
		v1:        post("/v1/clients/"+t.client.v1+"/users", jsonOf(user)),
		v2:        post("/v2/clients/"+t.client.v2+"/users", jsonOf(user)),
		status:    [2]int{http.StatusCreated, http.StatusCreated},
		operation: t.operation("POST", "/clients/{client_id}/users"),
	})
	if err != nil {
		return err
	}
	if t.user, err = t.both(ctx, "user", a); err != nil {
		return err
	}
	user["status"] = "active"
	return t.shows(ctx, t.list("users", object{"", "status=active"}, t.client), t.user.v1, user)
}

// change changes the user.
func (t *trial) change(ctx context.Context) error {
	change := map[string]any{"preferred_language": "fr-ca", "role": "finance", "status": "inactive"}
	_, err := t.send(ctx, write{
		v1:        post("/v1/users/"+t.user.v1, jsonOf(change)),
		v2:        request{method: http.MethodPatch, path: "/v2/users/" + t.user.v2, body: jsonOf(change)},
		status:    [2]int{http.StatusOK, http.StatusOK},
		operation: t.operation("POST", "/users/{user_id}"),
	})
	if err != nil {
		return err
	}
	return t.shows(ctx, t.list("users", object{"status=inactive", "status=inactive"}, t.client), t.user.v1, change)
}

// member makes the user a member of the collection, or removes it.
func (t *trial) member(add bool) func(context.Context) error {
	return func(ctx context.Context) error {
		v1 := "/v1/clients/" + t.client.v1 + "/collections/" + t.collection.v1 + "/members"
		v2 := "/v2/clients/" + t.client.v2 + "/collections/" + t.collection.v2 + "/members"
		path := "/clients/{client_id}/collections/{collection_id}/members"
		w := write{
			v1: post(v1, jsonOf(map[string]any{"user_infima_id": t.user.v1})), v2: post(v2, jsonOf(map[string]any{"user_ids": []string{t.user.v2}})),
			status: [2]int{http.StatusOK, http.StatusOK}, operation: t.operation("POST", path),
		}
		if !add {
			w = write{
				v1:     request{method: http.MethodDelete, path: v1 + "/" + t.user.v1},
				v2:     request{method: http.MethodDelete, path: v2 + "/" + t.user.v2},
				status: [2]int{http.StatusOK, http.StatusNoContent}, operation: t.operation("DELETE", path+"/{user_id}"),
			}
		}
		if _, err := t.send(ctx, w); err != nil {
			return err
		}
		want := map[string]any{"email": t.name + "@example.com"}
		count := 1
		if !add {
			want, count = nil, 0
		}
		if err := t.shows(ctx, t.list("collection-members", object{}, t.client, t.collection), t.user.v1, want); err != nil {
			return err
		}
		return t.shows(ctx, t.list("collections", object{}, t.client), t.collection.v1, map[string]any{"member_count": count})
	}
}

// shows compares all of a list, and whether both sides show the object with what was
// written; or, where want is nil, do not show it.
func (t *trial) shows(ctx context.Context, l *list, key string, want map[string]any) error {
	seen := false
	err := t.compareList(ctx, l, func(_ context.Context, v1, other row) error {
		if v1.key != key {
			return nil
		}
		seen = true
		var v verdict
		for name, value := range want {
			expected := jsontext.Value(jsonOf(value))
			for _, side := range []row{v1, other} {
				all, err := members(side.value)
				if err != nil {
					return err
				}
				if string(all[name]) == string(expected) {
					v.equal++
				} else {
					v.faults = append(v.faults, fault{name, all[name], expected})
				}
			}
		}
		t.report.count(l.operation(), v, v1.of, other.of)
		return nil
	})
	if err == nil && seen != (want != nil) {
		t.report.count(l.operation(), verdict{faults: []fault{{"item", fmtBool(seen), fmtBool(want != nil)}}},
			answer{request: get(l.v1), from: t.service}, answer{request: get(l.v2), from: t.service})
	}
	return err
}

// clean deletes the collection and makes the user inactive, also where the work was
// stopped, and says what was made.
func (t *trial) clean(ctx context.Context) (made []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
	defer cancel()
	if t.collection.v2 != "" {
		a, err := t.service.do(ctx, request{
			method: http.MethodDelete, path: "/v2/clients/" + t.client.v2 + "/collections/" + t.collection.v2,
		})
		made = append(made, fmt.Sprintf("through %s: collection %s (%s), %s", t.version, t.name, t.collection.v2,
			outcome(err == nil && a.status == http.StatusNoContent, "deleted")))
	}
	if t.user.v2 != "" {
		a, err := t.service.do(ctx, request{
			method: http.MethodPatch, path: "/v2/users/" + t.user.v2, body: `{"status":"inactive"}`,
		})
		made = append(made, fmt.Sprintf("through %s: user %s@example.com (%s), %s", t.version, t.name, t.user.v2,
			outcome(err == nil && a.status == http.StatusOK, "inactive")))
	}
	return made
}

func outcome(done bool, how string) string {
	if done {
		return how
	}
	return "which could not be made " + how
}

// jsonOf is a value as JSON.
func jsonOf(value any) string {
	text, err := json.Marshal(value, json.Deterministic(true))
	if err != nil {
		panic(err) // a value of this package
	}
	return string(text)
}
