package v2_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// scheduled schedules a mail to each user for tomorrow, and returns the results' ids.
func (w *staff) scheduled() (ids []string) {
	w.T.Helper()
	var users []string
	for _, u := range w.users {
		users = append(users, u.ID.String())
	}
	for _, s := range w.send(map[string]any{"user_ids": users, "send_at": w.Clock.Now().AddDate(0, 0, 1).Format(time.RFC3339)}).Sends {
		ids = append(ids, s.ResultID)
	}
	return ids
}

// result reads a result.
func (w *staff) result(id string) map[string]any {
	w.T.Helper()
	return rows(w.Get("/v2/clients/"+w.client.ID.String()+"/phishing/results?result_id="+id, w.tenant.Key).Want(200))[0]
}

// onResult runs a statement on a result, $1.
func (w *staff) onResult(statement, id string) {
	w.T.Helper()
	w.Exec(statement, idOf[domain.ResultKind](w.T, id))
}

func newSender(t *testing.T, users int) *staff {
	w := newStaff(t, users)
	if err := w.DB.LoadTemplates(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestCancelSend: a scheduled mail is cancelled, also twice; one that is being sent, was sent or failed is a conflict.
func TestCancelSend(t *testing.T) {
	t.Parallel()
	w := newSender(t, 4)
	ids := w.scheduled()
	w.onResult("UPDATE outbox SET lease = gen_random_uuid() WHERE id = $1", ids[1])
	w.onResult("UPDATE phishing_results SET status = 'sent', sent_at = send_at WHERE id = $1", ids[2])
	w.onResult("UPDATE phishing_results SET status = 'failed', failed_at = send_at, failure = 'the user is inactive' WHERE id = $1", ids[3])
	w.Exec("DELETE FROM outbox AS o USING phishing_results AS r WHERE r.client_id = o.client_id AND r.id = o.id AND r.status <> 'scheduled'")
	w.Clock.Advance(time.Minute)
	cancel := func(id string) v2test.Response { return w.Do("DELETE", w.sendPath()+"/"+id, w.tenant.Key, nil) }

	cancel(ids[0]).Want(http.StatusNoContent)
	w.Clock.Advance(time.Minute)
	cancel(ids[0]).Want(http.StatusNoContent)
	at := v2test.Noon.Add(time.Minute + 3*time.Second).Format("2006-01-02T15:04:05.000000Z")
	if r := w.result(ids[0]); r["status"] != "failed" || r["failure"] != "cancelled" || r["failed_at"] != at || r["updated_at"] != at || r["sent_at"] != nil {
		t.Errorf("the result is %v", r)
	}
	if n := w.Number("SELECT count(*) FROM events WHERE type = 'phishing.result.updated'"); n != 1 {
		t.Errorf("%d events", n)
	}
	for _, id := range ids[1:] {
		before := w.result(id)
		checkError(t, cancel(id), domain.Conflict)
		if after := w.result(id); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%v became %v", before, after)
		}
	}

	summary := w.Get("/v2/clients/"+w.client.ID.String()+"/phishing/summary", w.tenant.Key).Want(200)
	if summary.Field("total.sent") != 0.0 { // none was marked as sent by the service
		t.Errorf("the summary is %s", summary.Body)
	}
}

// TestCancelSends: those that wait are cancelled, the others listed in the order of the request; an unknown one leaves
// all as they were.
func TestCancelSends(t *testing.T) {
	t.Parallel()
	w := newSender(t, 4)
	ids := w.scheduled()
	other := scheduledBeside(w)
	cancel := func(ids ...string) v2test.Response {
		return w.Do("POST", w.sendPath()+"/cancel", w.tenant.Key, map[string]any{"result_ids": ids})
	}
	waiting := func() int { return w.Number("SELECT count(*) FROM phishing_results WHERE status = 'scheduled'") }

	for _, unknown := range []string{db.NewID[domain.ResultKind]().String(), other} {
		if r := cancel(ids[0], unknown).Want(400); !strings.Contains(string(r.Body), "result_ids[1]") || waiting() != 5 {
			t.Errorf("%d wait after %s", waiting(), r.Body)
		}
	}

	w.onResult("UPDATE outbox SET lease = gen_random_uuid() WHERE id = $1", ids[3])
	w.onResult("UPDATE outbox SET maybe_sent = true WHERE id = $1", ids[1])
	cancel(ids[2]).Want(200)
	r := cancel(ids[3], ids[0], ids[1], ids[0], ids[2]).Want(200)
	if r.Field("cancelled_count") != 2.0 || fmt.Sprint(r.Field("not_cancelled")) !=
		fmt.Sprintf("[map[result_id:%s status:scheduled] map[result_id:%s status:scheduled]]", ids[3], ids[1]) {
		t.Errorf("answers %s", r.Body)
	}
	if waiting() != 3 || w.Number("SELECT count(*) FROM outbox") != 3 || w.Number("SELECT count(*) FROM events WHERE type = 'phishing.result.updated'") != 2 {
		t.Errorf("%d wait", waiting())
	}
}

// scheduledBeside schedules a mail to a user of another client of the partner, and returns its id.
func scheduledBeside(w *staff) string {
	w.T.Helper()
	client := w.AddClient(w.tenant, "Beside")
	user := w.AddUser(w.tenant, client.ID, "beside@example.com")
	var out sends
	w.Do("POST", "/v2/clients/"+client.ID.String()+"/phishing/sends", w.tenant.Key,
		map[string]any{"user_ids": []string{user.ID.String()}, "send_at": "2026-07-01T00:00:00Z"}).Want(202).Into(&out)
	return out.Sends[0].ResultID
}
