package v1compat

import (
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

// TestStatusDate: the furthest state of a simulated mail is shown with the time of the
// first event of that state (decisions 5.10).
func TestStatusDate(t *testing.T) {
	t.Parallel()
	hour := func(n int) *domain.Time { return new(domain.At(noon.Add(time.Duration(n) * time.Hour))) }
	for name, c := range map[string]struct {
		in     api.PhishingResult
		status PhishingStatus
		hour   int
	}{
		"reported":         {api.PhishingResult{Status: domain.ResultSent, SentAt: hour(0), Reported: true, ReportedAt: hour(1)}, Sent, 0},
		"automated":        {api.PhishingResult{Status: domain.ResultSent, SentAt: hour(0), Automated: true, AutomatedReason: new(domain.ByHaste)}, Sent, 0},
		"opened":           {api.PhishingResult{Status: domain.ResultOpened, SentAt: hour(0), OpenedAt: hour(1)}, Opened, 1},
		"attachment":       {api.PhishingResult{Status: domain.ResultAttachmentOpened, OpenedAt: hour(1), AttachmentOpenedAt: hour(2)}, Clicked, 2},
		"attachment first": {api.PhishingResult{Status: domain.ResultClicked, AttachmentOpenedAt: hour(2), ClickedAt: hour(3)}, Clicked, 2},
		"clicked first":    {api.PhishingResult{Status: domain.ResultClicked, ClickedAt: hour(3), AttachmentOpenedAt: hour(4)}, Clicked, 3},
		"credentials":      {api.PhishingResult{Status: domain.ResultCredentialsSubmitted, ClickedAt: hour(3), CredentialsSubmittedAt: hour(4)}, Clicked, 3},
	} {
		if got := toPhishingResult(c.in); got.Status != c.status || !got.StatusDate.Time.Equal(noon.Add(time.Duration(c.hour)*time.Hour)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// simulated adds a simulated mail whose later times are that of its sending; zero for none.
func (s *service) simulated(client domain.ClientID, user domain.UserID, status domain.ResultStatus, sent time.Time) {
	s.T.Helper()
	var at *time.Time
	if !sent.IsZero() {
		at = &sent
	}
	s.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, opened_at, clicked_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $7, $7, $6, $6)`, client, db.NewID[domain.ResultKind](), user, s.insertTemplate(1), status, noon, at)
}
