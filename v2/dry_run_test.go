package v2_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// dryRuns runs a subtest for every operation that has dry runs.
func (w *world) dryRuns(t *testing.T, fn func(t *testing.T, w *world, o op.Operation)) {
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if o.Input().HasDryRun() {
			fn(t, w, o)
		}
	})
}

// dry is a sample body for the operation that asks for a dry run.
func (w *world) dry(o op.Operation) map[string]any {
	body := w.body(o)
	body["dry_run"] = true
	return body
}

// unborn removes from an answer what a dry run cannot have: the ids of what it would create, and that it is one.
func unborn(answer map[string]any) map[string]any {
	delete(answer, "dry_run")
	if made, ok := answer["assignment"].(map[string]any); ok {
		delete(made, "id")
	}
	sends, _ := answer["sends"].([]any)
	for _, s := range sends {
		delete(s.(map[string]any), "result_id")
	}
	return answer
}

// TestDryRuns: a dry run answers as the call itself, writes no row of any table, and neither uses up nor finds an
// Idempotency-Key.
func TestDryRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited, Audit: true})
	reader := w.AddKey(w.tenant, []domain.Scope{domain.Read}, nil)
	var found []string
	w.dryRuns(t, func(t *testing.T, w *world, o op.Operation) {
		found = append(found, o.Meta().ID)
		path, body := pathOf(t, o, w.ids()), w.dry(o)
		post := func(body any) v2test.Response {
			return w.Do("POST", path, w.tenant.Key, body, "Idempotency-Key", o.Meta().ID)
		}

		before := w.contents()
		checkError(t, w.Do("POST", path, reader, body), domain.Forbidden)
		for range 2 {
			dry := post(body).Want(o.Meta().Status)
			if dry.Header.Get("Idempotent-Replayed") != "" || dry.Header.Get("Location") != "" {
				t.Errorf("a dry run has the headers %v", dry.Header)
			}
		}
		if after := w.contents(); after != before {
			t.Errorf("a dry run left\n%s\nwas\n%s", after, before)
		}

		real := maps.Clone(body)
		delete(real, "dry_run")
		dry := unborn(post(body).JSON())
		if call := unborn(post(real).Want(o.Meta().Status).JSON()); !reflect.DeepEqual(dry, call) {
			t.Errorf("a dry run answers\n%v\nthe call\n%v", dry, call)
		}
		if again := post(real); again.Header.Get("Idempotent-Replayed") != "true" {
			t.Error("the call itself is not recorded")
		}
		if other := post(w.dry(o)); other.Status != o.Meta().Status || other.Header.Get("Idempotent-Replayed") != "" {
			t.Errorf("a dry run with the key of a call is answered %d %s", other.Status, other.Body)
		}
		checkError(t, w.Do("POST", path, w.tenant.Key, body, "Idempotency-Key", strings.Repeat("k", 256)), domain.InvalidRequest)
	})
	if want := []string{"frameworks.assign", "phishing.send", "training.assign", "training.remind"}; !slices.Equal(slices.Sorted(slices.Values(found)), want) {
		t.Errorf("operations with dry runs: %v", found)
	}
}
