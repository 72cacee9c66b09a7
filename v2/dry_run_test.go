package v2_test

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

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
	var found []string
	w.dryRuns(t, func(t *testing.T, w *world, o op.Operation) {
		found = append(found, o.Meta().ID)
		path, body := pathOf(t, o, w.ids()), w.dry(o)
		post := func(body any) v2test.Response {
			return w.Do("POST", path, w.tenant.Key, body, "Idempotency-Key", o.Meta().ID)
		}

		before := w.contents(t)
		for range 2 {
			dry := post(body).Want(o.Meta().Status)
			if dry.Header.Get("Idempotent-Replayed") != "" || dry.Header.Get("Location") != "" {
				t.Errorf("a dry run has the headers %v", dry.Header)
			}
		}
		if after := w.contents(t); after != before {
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

// TestDryRunsAreRejected: a dry run needs what the call needs.
func TestDryRunsAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	reader := w.NewKey(w.tenant, []domain.Scope{domain.Read}, nil)
	w.dryRuns(t, func(t *testing.T, w *world, o op.Operation) {
		checkError(t, w.Do("POST", pathOf(t, o, w.ids()), reader, w.dry(o)), domain.Forbidden)
		checkError(t, w.Do("POST", pathOf(t, o, strangers()), w.tenant.Key, w.dry(o)), domain.NotFound)
		body := w.dry(o)
		body["dry_run"] = nil
		checkError(t, w.Do("POST", pathOf(t, o, w.ids()), w.tenant.Key, body), domain.InvalidRequest)
		if o.Meta().ID == "training.remind" {
			return // which requires nothing
		}
		body = blanked(w, o)
		body["dry_run"] = true
		checkError(t, w.Do("POST", pathOf(t, o, w.ids()), w.tenant.Key, body), domain.InvalidRequest)
	})
}

// TestTrainingRemindersDryRun: a dry run is not the client's reminder of the day, and is limited by it.
func TestTrainingRemindersDryRun(t *testing.T) {
	t.Parallel()
	w := newTrainee(t, 2)
	w.Clock.Set(time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC))
	path := "/v2/clients/" + w.client.ID.String() + "/training/reminders"
	remind := func(dry bool) v2test.Response {
		return w.Do("POST", path, w.tenant.Key, map[string]any{"dry_run": dry})
	}

	for range 2 {
		if n := remind(true).Want(http.StatusAccepted).Field("recipient_count"); n != 2.0 {
			t.Errorf("%v users would be reminded", n)
		}
	}
	if n := w.Number("SELECT count(*) FROM mail_requests WHERE type = 'training-reminder'"); n != 0 {
		t.Errorf("dry runs requested %d mails", n)
	}
	if n := remind(false).Want(http.StatusAccepted).Field("recipient_count"); n != 2.0 {
		t.Errorf("%v users are reminded", n)
	}
	if r := remind(true).Want(http.StatusTooManyRequests); r.Header.Get("Retry-After") != remind(false).Header.Get("Retry-After") {
		t.Errorf("a dry run is to be repeated after %s", r.Header.Get("Retry-After"))
	}
}
