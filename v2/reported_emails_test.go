package v2_test

import (
	"testing"
	"time"

	"partnerapi/db/ingest"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// TestReportedEmails: what the feed shows of a signal, and what it moves.
func TestReportedEmails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	path := "/v2/clients/" + w.client.ID.String() + "/phishing/reported"
	at := w.Clock.Now().Add(-time.Hour)
	ingest := func(signals ...domain.Signal) {
		t.Helper()
		if _, err := ingest.Apply(t.Context(), w.DB, signals); err != nil {
			t.Fatal(err)
		}
	}
	ingest(domain.Signal{
		ID: "1", Type: domain.EmailReported, At: at, User: w.user.ID, Message: "a@x", Subject: "Invoice", Sender: "who@example.com",
	})
	got := rows(w.Get(path, w.tenant.Key).Want(200))
	if len(got) != 1 {
		t.Fatalf("%v", got)
	}
	id := got[0]["id"]
	for field, want := range map[string]any{
		"user_id": w.user.ID.String(), "client_id": w.client.ID.String(), "reported_at": "2026-06-15T11:00:00.000000Z",
		"subject": "Invoice", "sender": "who@example.com", "classification": "pending", "classified_at": nil, "mailbox_action": nil,
	} {
		if got[0][field] != want {
			t.Errorf("%s is %v, not %v", field, got[0][field], want)
		}
	}

	before := w.Clock.Now()
	w.Clock.Advance(time.Minute)
	ingest(domain.Signal{
		ID: "2", Type: domain.EmailClassified, At: at.Add(time.Minute), Message: "a@x",
		Class: domain.SentClass(domain.ClassPhishing), Action: "deleted",
	})
	since := path + "?updated_since=" + before.Add(time.Second).Format(time.RFC3339)
	got = rows(w.Get(since, w.tenant.Key).Want(200))
	if len(got) != 1 || got[0]["id"] != id || got[0]["classification"] != "phishing" || got[0]["mailbox_action"] != "deleted" ||
		got[0]["classified_at"] != "2026-06-15T11:01:00.000000Z" {
		t.Errorf("after its classification: %v", got)
	}
	risk := w.Get("/v2/users/"+w.user.ID.String()+"/risk", w.tenant.Key).Want(200)
	if n := risk.Field("tallies.real_phish_reported"); n != 1.0 {
		t.Errorf("%v real mails in the tallies", n)
	}
	checkInvalid(t, w.Get(path+"?classification=good", w.tenant.Key), "classification", "phishing")
}
