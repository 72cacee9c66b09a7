package v2_test

import (
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// checkCounts verifies that a recount of the stored counts by label finds none that is wrong.
func (w *staff) checkCounts() {
	w.T.Helper()
	wrong, err := doctor.Recount(w.T.Context(), w.DB, "phishing by day", "phishing by label and day", "sends by label", "dates of labels", "uses of templates")
	if err != nil || len(wrong) != 0 {
		w.T.Errorf("wrong counts: %v, %v", wrong, err)
	}
}

func (w *staff) phishing(path string) string {
	return "/v2/clients/" + w.client.ID.String() + "/phishing/" + path
}

// labels returns the labels of the client, in the order of the list.
func (w *staff) labels() []map[string]any {
	w.T.Helper()
	return w.All(w.phishing("labels"), w.tenant.Key)
}

// advance applies an action of their users to emails.
func (w *staff) advance(kind domain.ResultEventKind, ids ...string) {
	w.T.Helper()
	var steps []domain.ResultStep
	for _, id := range ids {
		steps = append(steps, domain.ResultStep{Result: idOf[domain.ResultKind](w.T, id), Kind: kind, At: w.Clock.Now()})
	}
	if err := w.DB.AdvanceResults(w.T.Context(), steps); err != nil {
		w.T.Fatal(err)
	}
}

// TestLabels verifies that results and labels show the spelling of the first send, and that filters compare by key.
func TestLabels(t *testing.T) {
	t.Parallel()
	w := newSender(t, 3)
	users := []string{w.users[0].ID.String(), w.users[1].ID.String()}
	first := w.Clock.Now().Add(24 * time.Hour)
	a := w.send(map[string]any{"user_ids": users, "label": " Q3  Drill ", "send_at": first.Format(time.RFC3339)})
	b := w.send(map[string]any{"user_ids": users[:1], "label": "q3 drill", "send_at": first.AddDate(0, 0, 7).Format(time.RFC3339)})
	c := w.send(map[string]any{"user_ids": users[1:], "label": "Other", "send_at": first.AddDate(0, 0, 1).Format(time.RFC3339)})
	plain := w.send(map[string]any{"user_ids": users[:1]})

	if w.result(b.Sends[0].ResultID)["label"] != "Q3  Drill" || w.result(plain.Sends[0].ResultID)["label"] != nil {
		t.Errorf("labels are %v", w.result(b.Sends[0].ResultID))
	}
	list := w.All(w.phishing("results?label="+url.QueryEscape("Q3 DRILL")), w.tenant.Key)
	if len(list) != 3 || list[0]["result_id"] != a.Sends[0].ResultID && list[0]["result_id"] != a.Sends[1].ResultID {
		t.Errorf("the filter lists %v", list)
	}
	newest := w.All(w.phishing("results?sort=-send_at&label=q3+drill"), w.tenant.Key)
	if len(newest) != 3 || newest[0]["result_id"] != b.Sends[0].ResultID {
		t.Errorf("newest first lists %v", newest)
	}
	labels := w.labels()
	if len(labels) != 2 || labels[0]["label"] != "Other" || labels[1]["label"] != "Q3  Drill" || labels[1]["sends"] != 3.0 ||
		labels[1]["first_send_at"] != list[0]["send_at"] || labels[1]["last_send_at"] != newest[0]["send_at"] {
		t.Errorf("the labels are %v", labels)
	}
	w.checkCounts()

	// A dry run leaves nothing, and a repeated request is the first one.
	w.send(map[string]any{"user_ids": users, "label": "Dry", "dry_run": true})
	body := map[string]any{"user_ids": users, "label": "Once"}
	for range 2 {
		w.Do("POST", w.sendPath(), w.tenant.Key, body, "Idempotency-Key", "once").Want(202)
	}
	if labels := w.labels(); len(labels) != 3 || labels[2]["label"] != "Once" || labels[2]["sends"] != 2.0 {
		t.Errorf("the labels are %v", labels)
	}
	for _, bad := range []any{"", "  ", "a\x07", nil, 7} {
		checkInvalid(t, w.Do("POST", w.sendPath(), w.tenant.Key, map[string]any{"user_ids": users, "label": bad}), "label")
	}

	w.Do("DELETE", w.sendPath()+"/"+c.Sends[0].ResultID, w.tenant.Key, nil).Want(204)
	w.Do("DELETE", w.sendPath()+"/"+b.Sends[0].ResultID, w.tenant.Key, nil).Want(204)
	labels = w.labels()
	if labels[0]["sends"] != 0.0 || labels[0]["first_send_at"] != w.result(c.Sends[0].ResultID)["send_at"] ||
		labels[1]["sends"] != 2.0 || labels[1]["last_send_at"] != list[0]["send_at"] {
		t.Errorf("after cancelling, the labels are %v", labels)
	}
	w.checkCounts()
}

// TestLabelCounts verifies that the summary of a label and its item in the list count what its users did.
func TestLabelCounts(t *testing.T) {
	t.Parallel()
	w := newSender(t, 3)
	var users []string
	for _, u := range w.users {
		users = append(users, u.ID.String())
	}
	out := w.send(map[string]any{"user_ids": users, "label": "Drill"})
	other := w.send(map[string]any{"user_ids": users[:1], "label": "Other"})
	w.sendMails()
	w.Clock.Advance(time.Hour)
	w.advance(domain.MailClicked, out.Sends[0].ResultID, other.Sends[0].ResultID)
	w.advance(domain.MailAttachmentOpened, out.Sends[1].ResultID)
	w.advance(domain.MailReported, out.Sends[1].ResultID)

	summary := w.Get(w.phishing("summary?label=DRILL"), w.tenant.Key).Want(200)
	for name, want := range map[string]float64{
		"30d.sent": 3, "total.clicked": 2, "total.click_rate": 66.7, "90d.attachments_opened": 1, "365d.report_rate": 33.3, "repeat_clickers": 0,
	} {
		if summary.Field(name) != want {
			t.Errorf("%s is %v, not %v", name, summary.Field(name), want)
		}
	}
	unknown := w.Get(w.phishing("summary?label=none"), w.tenant.Key).Want(200)
	if unknown.Field("total.sent") != 0.0 || w.Get(w.phishing("summary"), w.tenant.Key).Field("repeat_clickers") != 1.0 {
		t.Errorf("an unknown label has %s", unknown.Body)
	}
	i := slices.IndexFunc(w.labels(), func(l map[string]any) bool { return l["label"] == "Drill" })
	if l := w.labels()[i]; l["sends"] != 3.0 || l["opened"] != 2.0 || l["clicked"] != 2.0 || l["reported"] != 1.0 ||
		l["attachments_opened"] != 1.0 || l["click_rate"] != 66.7 || l["report_rate"] != 33.3 {
		t.Errorf("the label is %v", l)
	}
	w.checkCounts()
}

// sendMails marks all waiting simulated emails as sent, and counts them.
func (w *staff) sendMails() {
	w.T.Helper()
	w.Exec("DELETE FROM outbox")
	w.Exec("UPDATE phishing_results SET status = 'sent', sent_at = $1 WHERE status = 'scheduled'", w.Clock.Now())
	if _, err := doctor.Recount(w.T.Context(), w.DB, "phishing by day", "phishing by label and day"); err != nil {
		w.T.Fatal(err)
	}
}

// TestLabelsSpelledAtOnce verifies that concurrent first sends agree on a spelling, and that none is lost.
func TestLabelsSpelledAtOnce(t *testing.T) {
	t.Parallel()
	w := newSender(t, 8)
	v2test.AtOnce(len(w.users), func(i int) int {
		w.send(map[string]any{"user_ids": []string{w.users[i].ID.String()}, "label": []string{"Drill", "DRILL"}[i%2]})
		return i
	})
	if n := w.Number("SELECT count(DISTINCT label) FROM phishing_results"); n != 1 {
		t.Errorf("%d spellings", n)
	}
	if labels := w.labels(); len(labels) != 1 || labels[0]["sends"] != 8.0 {
		t.Errorf("the labels are %v", labels)
	}
	w.checkCounts()
}

// TestCancelLabel verifies that cancelling by label cancels all emails of a label, in several transactions, each with an
// audit entry, and that it lists at most 500 of the others.
func TestCancelLabel(t *testing.T) {
	t.Parallel()
	w := newStaffOf(t, v2test.Options{Limits: v2test.Unlimited, Audit: true}, 1)
	if err := w.DB.LoadTemplates(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := w.send(map[string]any{"user_ids": []string{w.users[0].ID.String()}, "label": "Drill", "send_at": "2026-07-01T00:00:00Z"})
	w.send(map[string]any{"user_ids": []string{w.users[0].ID.String()}, "label": "Other", "send_at": "2026-07-01T00:00:00Z"})
	more := func(n int, status string, leased bool) {
		t.Helper()
		w.Exec(fmt.Sprintf(`WITH added AS (
				INSERT INTO phishing_results (client_id, id, user_id, template_id, status, label, label_key, send_at, sent_at, created_at, updated_at)
				SELECT client_id, gen_random_uuid(), user_id, template_id, '%s', label, label_key, send_at + n * interval '1 minute',
					CASE WHEN '%[1]s' = 'sent' THEN created_at END, created_at, updated_at
				FROM phishing_results, generate_series(1, %d) AS n WHERE id = $1 RETURNING client_id, id, send_at, status)
			INSERT INTO outbox (client_id, id, kind, urgency, due_at, lease)
			SELECT client_id, id, 'simulation', 2, send_at, CASE WHEN %t THEN gen_random_uuid() END FROM added WHERE status = 'scheduled'`,
			status, n, leased), idOf[domain.ResultKind](t, out.Sends[0].ResultID))
	}
	more(1199, "scheduled", false)
	more(2, "scheduled", true)
	more(600, "sent", false)
	if _, err := doctor.Recount(t.Context(), w.DB); err != nil {
		t.Fatal(err)
	}
	cancel := func(body map[string]any, headers ...string) v2test.Response {
		return w.Do("POST", w.sendPath()+"/cancel", w.tenant.Key, body, headers...)
	}
	entries := func() int {
		return w.Number("SELECT count(*) FROM audit_entries WHERE operation = 'phishing.sends.cancel_many'")
	}

	for range 2 {
		r := cancel(map[string]any{"label": " drill"}, "Idempotency-Key", "drill").Want(200)
		if r.Field("cancelled_count") != 1200.0 || r.Field("not_cancelled_count") != 602.0 || len(r.Field("not_cancelled").([]any)) != 500 {
			t.Errorf("cancelled %v, not %v, listed %d", r.Field("cancelled_count"), r.Field("not_cancelled_count"), len(r.Field("not_cancelled").([]any)))
		}
	}
	if n := entries(); n != 3 {
		t.Errorf("%d audit entries", n)
	}
	if n := w.Number("SELECT count(*) FROM outbox"); n != 3 {
		t.Errorf("%d emails wait", n)
	}
	if n := w.Number("SELECT count(*) FROM events WHERE type = 'phishing.result.updated'"); n != 1200 {
		t.Errorf("%d events", n)
	}
	w.checkCounts()

	unknown := cancel(map[string]any{"label": "none"}).Want(200)
	if unknown.Field("cancelled_count") != 0.0 || unknown.Field("not_cancelled_count") != 0.0 {
		t.Errorf("an unknown label: %s", unknown.Body)
	}
	both := map[string]any{"label": "Drill", "result_ids": []string{out.Sends[0].ResultID}}
	checkInvalid(t, cancel(both), "label", "result_ids")
	checkInvalid(t, cancel(map[string]any{}), "result_ids", "label")
}

// TestCancelBeforeLabels verifies that release 2.4 requires result_ids, and does not know labels.
func TestCancelBeforeLabels(t *testing.T) {
	t.Parallel()
	w := newStaffOf(t, v2test.Options{Limits: v2test.Unlimited, Release: op.V2_4}, 1)
	user := w.users[0].ID.String()
	checkInvalid(t, w.Do("POST", w.sendPath()+"/cancel", w.tenant.Key, map[string]any{}), "result_ids", "is required")
	named := map[string]any{"result_ids": []string{db.NewID[domain.ResultKind]().String()}, "label": "Drill"}
	checkInvalid(t, w.Do("POST", w.sendPath()+"/cancel", w.tenant.Key, named), "label", "unknown")
	checkInvalid(t, w.Do("POST", w.sendPath(), w.tenant.Key, map[string]any{"user_ids": []string{user}, "label": "Drill"}), "label", "unknown")
}
