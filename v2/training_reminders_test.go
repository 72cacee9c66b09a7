package v2_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
	"partnerapi/v2/v2test"
)

// TestTrainingReminders: who has overdue courses is sent one mail a day that names them,
// and a client is reminded as a whole once a day.
func TestTrainingReminders(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 3)
	path := "/v2/clients/" + w.client.ID.String() + "/training/reminders"
	remind := func(body any) v2test.Response { return w.Do("POST", path, w.tenant.Key, body) }
	mails := func() int { return w.Number("SELECT count(*) FROM mail_requests WHERE type = 'training-reminder'") }
	skipped := func(r v2test.Response) map[any]any {
		reasons := map[any]any{}
		for _, s := range r.Want(http.StatusAccepted).Field("skipped").([]any) {
			reasons[s.(map[string]any)["user_id"]] = s.(map[string]any)["reason"]
		}
		return reasons
	}
	first, second, third := w.users[0].ID.String(), w.users[1].ID.String(), w.users[2].ID.String()
	all := map[string]any{"user_ids": []string{first, second, third}}

	early := remind(all)
	if got := skipped(early); early.Field("recipient_count") != 0.0 || len(got) != 3 || got[first] != "nothing_overdue" {
		t.Errorf("before anything is due: %s", early.Body)
	}
	w.Clock.Set(time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC))
	w.Do("PATCH", "/v2/users/"+third, w.tenant.Key, map[string]any{"status": "inactive"}).Want(http.StatusOK)
	one := remind(map[string]any{"user_ids": []string{first, third}})
	if got := skipped(one); one.Field("recipient_count") != 1.0 || len(got) != 1 || got[third] != "inactive" || mails() != 1 {
		t.Errorf("of two, one inactive: %s", one.Body)
	}
	again := remind(all)
	if got := skipped(again); again.Field("recipient_count") != 1.0 || got[first] != "reminded_today" || mails() != 2 {
		t.Errorf("a second time: %s", again.Body)
	}
	if dry := remind(map[string]any{"dry_run": true}); dry.Field("recipient_count") != 0.0 || mails() != 2 {
		t.Errorf("a dry run, which is no reminder of the day: %s", dry.Body)
	}
	whole := remind(nil)
	if got := skipped(whole); whole.Field("recipient_count") != 0.0 || len(got) != 2 || got[second] != "reminded_today" {
		t.Errorf("the client as a whole: %s", whole.Body)
	}
	refused := remind(map[string]any{}).Want(http.StatusTooManyRequests)
	if refused.Code() != domain.RateLimited || refused.Header.Get("Retry-After") != strconv.Itoa(14*60*60) {
		t.Errorf("refused with %s %s", refused.Header.Get("Retry-After"), refused.Body)
	}
	if dry := remind(map[string]any{"dry_run": true}).Want(http.StatusTooManyRequests); dry.Header.Get("Retry-After") != refused.Header.Get("Retry-After") {
		t.Errorf("a dry run is refused with %s %s", dry.Header.Get("Retry-After"), dry.Body)
	}
	foreign := w.AddUser(w.tenant, w.AddClient(w.tenant, "Other").ID, "theirs@example.com")
	mixed := remind(map[string]any{"user_ids": []any{first, foreign.ID}}).Want(http.StatusBadRequest)
	if !strings.Contains(string(mixed.Body), "user_ids[1]") || mails() != 2 {
		t.Errorf("a user of another client: %s", mixed.Body)
	}
	w.Clock.Advance(14 * time.Hour)
	if n := remind(map[string]any{}).Want(http.StatusAccepted).Field("recipient_count"); n != 2.0 || mails() != 4 {
		t.Errorf("on the next day %v", n)
	}
}

// TestTrainingRemindersAtOnce: of reminders at the same time each user gets one.
func TestTrainingRemindersAtOnce(t *testing.T) {
	t.Parallel()
	w := newStaff(t, 2)
	w.Clock.Set(time.Date(2026, 7, 1, 10, 0, 0, 0, time.UTC))
	path := "/v2/clients/" + w.client.ID.String() + "/training/reminders"
	statuses := v2test.AtOnce(6, func(n int) int {
		body := map[string]any{}
		if n%2 == 0 {
			body["user_ids"] = []any{w.users[0].ID, w.users[1].ID}
		}
		return w.Do("POST", path, w.tenant.Key, body).Status
	})
	if statuses[http.StatusAccepted]+statuses[http.StatusTooManyRequests] != 6 {
		t.Errorf("answers %v", statuses)
	}
	if n := w.Number("SELECT count(*) FROM mail_requests WHERE type = 'training-reminder'"); n != 2 {
		t.Errorf("%d mails are asked for, not 2", n)
	}
}

// TestOptionalBodies: of a body without a required member none need be sent, unless it has to
// name something.
func TestOptionalBodies(t *testing.T) {
	t.Parallel()
	document, err := openapi.ForRelease(api.Interface, op.Latest)
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range document.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.RequestBody == nil {
				continue
			}
			body := operation.RequestBody.Value
			schema := body.Content.Get("application/json").Schema.Value
			if optional := len(schema.Required) == 0 && schema.MinProps == 0; body.Required == optional {
				t.Errorf("%s %s: the body is required: %v", method, path, body.Required)
			}
		}
	}
}
