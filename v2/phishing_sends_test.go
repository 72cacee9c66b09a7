package v2_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

type sends struct {
	Sends []struct {
		UserID     string `json:"user_id"`
		ResultID   string `json:"result_id"`
		TemplateID string `json:"template_id"`
		SendAt     string `json:"send_at"`
	}
}

func (w *staff) sendPath() string { return "/v2/clients/" + w.client.ID.String() + "/phishing/sends" }

func (w *staff) send(body map[string]any) sends {
	w.T.Helper()
	var out sends
	w.Do("POST", w.sendPath(), w.tenant.Key, body).Want(202).Into(&out)
	return out
}

// TestSendPhishing: each user is sent a template of their own language, at the
// time asked for, and can be followed in the results.
func TestSendPhishing(t *testing.T) {
	t.Parallel()
	w := newSender(t, 3)
	w.Exec("UPDATE users SET preferred_language = 'fr-ca' WHERE id = $1", w.users[1].ID)
	ids := []string{w.users[2].ID.String(), w.users[0].ID.String(), w.users[1].ID.String(), w.users[0].ID.String()}
	at := w.Clock.Now().Add(time.Hour)
	out := w.send(map[string]any{"user_ids": ids, "send_at": at.Format(time.RFC3339)})
	if len(out.Sends) != 3 || out.Sends[0].UserID != ids[0] || out.Sends[1].UserID != ids[1] || out.Sends[2].UserID != ids[2] {
		t.Fatalf("sends %+v", out)
	}
	if out.Sends[0].TemplateID == out.Sends[1].TemplateID || !strings.HasPrefix(out.Sends[0].SendAt, at.Format("2006-01-02T15:04:05")) {
		t.Errorf("sends %+v", out)
	}
	if n := w.Number("SELECT count(*) FROM phishing_results AS r JOIN phishing_templates AS t ON t.id = r.template_id JOIN users AS u ON u.id = r.user_id AND u.preferred_language = t.language"); n != 3 {
		t.Errorf("%d are in their reader's language", n)
	}
	for _, s := range out.Sends {
		row := w.result(s.ResultID)
		if row["status"] != "scheduled" || row["template_id"] != s.TemplateID || row["user_id"] != s.UserID || row["send_at"] != s.SendAt {
			t.Errorf("the result is %v", row)
		}
	}
	if n := w.Number("SELECT count(*) FROM outbox WHERE kind = 'simulation' AND due_at = $1", at); n != 3 {
		t.Errorf("%d jobs", n)
	}
	// A past time is now, and a template that was named is taken as it is.
	named := out.Sends[2].TemplateID
	past := w.send(map[string]any{"user_ids": ids[:1], "template_id": named, "send_at": "2020-01-01T00:00:00Z"})
	if past.Sends[0].TemplateID != named || !strings.HasPrefix(past.Sends[0].SendAt, "2026-06-15T12:00:0") {
		t.Errorf("sends %+v", past)
	}
	if n := w.Number("SELECT count(*) FROM outbox WHERE due_at <= $1", w.Clock.Now()); n != 1 {
		t.Errorf("%d jobs can begin at once", n)
	}
}

// TestTemplatesAreNotRepeated: no user sees a template twice before all of the
// client's categories were seen, however many requests come at once.
func TestTemplatesAreNotRepeated(t *testing.T) {
	t.Parallel()
	w := newSender(t, 1)
	w.Exec("UPDATE clients SET phishing_categories = '{it,hr}' WHERE id = $1", w.client.ID)
	body := map[string]any{"user_ids": []string{w.users[0].ID.String()}}
	chosen := make([]string, 7) // as many templates as both categories have
	v2test.AtOnce(len(chosen), func(i int) int {
		chosen[i] = w.send(body).Sends[0].TemplateID
		return i
	})
	slices.Sort(chosen)
	if len(slices.Compact(slices.Clone(chosen))) != len(chosen) {
		t.Errorf("chose %v", chosen)
	}
	first := w.send(body).Sends[0].TemplateID
	if !slices.Contains(chosen, first) {
		t.Errorf("the next is %s, of another category", first)
	}
	w.Exec("UPDATE clients SET phishing_categories = '{none}' WHERE id = $1", w.client.ID)
	if got := w.Do("POST", w.sendPath(), w.tenant.Key, body).Want(400); !strings.Contains(string(got.Body), "template_id") {
		t.Errorf("%s", got.Body)
	}
}

// TestSendPhishingRefusals: one bad name and nothing is sent; the fault names
// its place.
func TestSendPhishingRefusals(t *testing.T) {
	w := newSender(t, 2)
	other := w.AddClient(w.tenant, "Other client")
	elsewhere := w.AddUser(w.tenant, other.ID, "else@example.com")
	w.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", w.users[1].ID)
	good := w.users[0].ID.String()
	for _, c := range []struct {
		users    []string
		template string
		field    string
	}{
		{[]string{good, elsewhere.ID.String()}, "", "user_ids[1]"}, // another client's
		{[]string{db.NewID[domain.UserKind]().String(), good}, "", "user_ids[0]"},
		{[]string{good, w.users[1].ID.String()}, "", "user_ids[1]"}, // who is inactive
		{[]string{good}, db.NewID[domain.TemplateKind]().String(), "template_id"},
	} {
		body := map[string]any{"user_ids": c.users}
		if c.template != "" {
			body["template_id"] = c.template
		}
		checkInvalid(t, w.Do("POST", w.sendPath(), w.tenant.Key, body), c.field)
	}
	if n := w.Number("SELECT (SELECT count(*) FROM phishing_results) + (SELECT count(*) FROM outbox)"); n != 0 {
		t.Errorf("%d were scheduled", n)
	}
}
