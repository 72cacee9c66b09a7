package v1compat

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func TestPhishingResultGolden(t *testing.T) {
	t.Parallel()
	user := db.NewID[domain.UserKind]()
	in := &listPhishing{}
	in.Path.UserID = uuidOf(user)
	if out, _ := fromListPhishing(in); out.Path.UserID != user {
		t.Errorf("asks v2 for %+v", out)
	}
	hour := func(n int) *domain.Time { return new(domain.At(noon.Add(time.Duration(n) * time.Hour))) }
	for _, c := range []struct {
		in   api.PhishingResult
		want string
	}{
		{api.PhishingResult{Status: domain.ResultSent, SentAt: hour(0)}, `{"status":"Sent","status_date":"2026-06-15T12:00:00Z"}`},
		{api.PhishingResult{Status: domain.ResultSent, SentAt: hour(0), Reported: true, ReportedAt: hour(1)}, `{"status":"Sent","status_date":"2026-06-15T12:00:00Z"}`},
		{api.PhishingResult{Status: domain.ResultOpened, SentAt: hour(0), OpenedAt: hour(1)}, `{"status":"Opened","status_date":"2026-06-15T13:00:00Z"}`},
		{api.PhishingResult{Status: domain.ResultAttachmentOpened, SentAt: hour(0), OpenedAt: hour(1), AttachmentOpenedAt: hour(2)}, `{"status":"Clicked","status_date":"2026-06-15T14:00:00Z"}`},
		{api.PhishingResult{Status: domain.ResultClicked, SentAt: hour(0), ClickedAt: hour(3)}, `{"status":"Clicked","status_date":"2026-06-15T15:00:00Z"}`},
		{api.PhishingResult{Status: domain.ResultClicked, SentAt: hour(0), AttachmentOpenedAt: hour(2)}, `{"status":"Clicked","status_date":"2026-06-15T14:00:00Z"}`},
		{api.PhishingResult{Status: domain.ResultCredentialsSubmitted, SentAt: hour(0), ClickedAt: hour(3), CredentialsSubmittedAt: hour(4)}, `{"status":"Clicked","status_date":"2026-06-15T15:00:00Z"}`},
		{api.PhishingResult{Status: domain.ResultClicked, SentAt: hour(0), ClickedAt: hour(3), AttachmentOpenedAt: hour(4)}, `{"status":"Clicked","status_date":"2026-06-15T15:00:00Z"}`},
		{api.PhishingResult{Status: domain.ResultSent, SentAt: hour(0), Automated: true, AutomatedReason: new(domain.ByHaste)}, `{"status":"Sent","status_date":"2026-06-15T12:00:00Z"}`},
	} {
		written(t, toPhishingResult(c.in), c.want)
	}
}

// simulated adds a simulated mail whose later times are that of its sending.
func (r *reader) simulated(user api.User, status domain.ResultStatus, sent time.Time) domain.ResultID {
	r.T.Helper()
	id := db.NewID[domain.ResultKind]()
	r.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
		VALUES ($1, '', 'en', '', '', '', '', '', $2) ON CONFLICT DO NOTHING`, domain.TemplateID{15: 1}, noon)
	var at any = sent
	if sent.IsZero() {
		at = nil
	}
	r.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, opened_at, clicked_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $7, $6, $6)`, user.ClientID, id, user.ID, domain.TemplateID{15: 1}, status, noon, at)
	return id
}

// TestPhishing: what was sent, newest first, and no other user's.
func TestPhishing(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	other := r.User(r.tenant, r.client, "bob@example.com")
	r.simulated(other, domain.ResultClicked, noon)
	r.simulated(r.user, domain.ResultScheduled, time.Time{})
	statuses := []domain.ResultStatus{domain.ResultSent, domain.ResultOpened, domain.ResultAttachmentOpened, domain.ResultClicked, domain.ResultCredentialsSubmitted}
	for i, status := range statuses {
		r.simulated(r.user, status, noon.AddDate(0, 0, -i))
	}
	path := "/v1/users/" + r.user.ID.UUID() + "/phishing"
	p := r.list(path, r.tenant.Key)
	if got := p.texts("status"); p.Total != 5 || p.Limit != 20 || !slices.Equal(got, []string{"Sent", "Opened", "Clicked", "Clicked", "Clicked"}) {
		t.Errorf("the page is %+v", p)
	}
	if dates := p.texts("status_date"); dates[0] != "2026-06-15T12:00:00Z" || dates[1] != "2026-06-14T12:00:00Z" || dates[3] != "2026-06-12T12:00:00Z" {
		t.Errorf("the dates are %v", dates)
	}
	if v2page := r.Get("/v2/clients/"+r.client.String()+"/phishing/results?user_id="+r.user.ID.String(), r.tenant.Key).Want(200); len(v2page.Field("data").([]any)) != 6 {
		t.Errorf("v2 shows %s", v2page.Body)
	}
}

// TestPhishingWalk: while mails are sent, a walk sees each that was there once,
// and with any page size.
func TestPhishingWalk(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	path := "/v1/users/" + r.user.ID.UUID() + "/phishing"
	for i := range 11 { // ties of the time too
		r.simulated(r.user, domain.ResultSent, noon.AddDate(0, 0, -i/2))
	}
	all := r.list(path, r.tenant.Key).texts("status_date")
	for limit := 1; limit <= 12; limit++ {
		var got []string
		for offset := 0; ; offset += limit {
			p := r.list(fmt.Sprintf("%s?limit=%d&offset=%d", path, limit, offset), r.tenant.Key)
			got = append(got, p.texts("status_date")...)
			if p.Total < min(offset+limit, 11) {
				t.Fatalf("total %d at %d", p.Total, offset)
			}
			if offset+limit >= p.Total {
				break
			}
			if offset == limit { // a newer one comes in before the walk's place
				r.simulated(r.user, domain.ResultSent, noon.Add(time.Duration(limit)*time.Hour))
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("limit %d: walked %v, not %v", limit, got, all)
		}
		all = r.list(path, r.tenant.Key).texts("status_date")
		r.Exec("DELETE FROM phishing_results WHERE sent_at > $1", noon)
		all = slices.DeleteFunc(all, func(at string) bool { return at > "2026-06-15T12:00:00Z" })
	}
}
