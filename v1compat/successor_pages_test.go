package v1compat

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// furnish gives the scene's client lists of more rows than a page holds.
func (s *scene) furnish() {
	s.T.Helper()
	types := []domain.MessageType{domain.PhishingMail, domain.TrainingInvite, domain.WelcomeMail}
	states := []domain.ResultStatus{domain.ResultSent, domain.ResultScheduled, domain.ResultClicked}
	for i := range 8 { // some at one time
		s.mail(s.client, s.userID, types[i%3], noon.AddDate(0, 0, -5*(i/2)))
		state, sent := states[i%3], noon.Add(time.Duration(i/3)*time.Hour)
		if state == domain.ResultScheduled {
			sent = time.Time{}
		}
		s.simulated(s.client, s.userID, state, sent)
		s.addReport(s.client)
		s.addPolicy(s.client, domain.TenantScope, s.client.UUID(), true)
		s.insertClient(s.ID, db.NewID[domain.ClientKind](), fmt.Sprint("Client ", i), noon)
	}
	s.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'x' || n || '@example.com', 'A', 'B', 'a b', CASE WHEN n % 3 = 0 THEN 'inactive' ELSE 'active' END,
			'standard', 'en', 'api', 750, $2, $2 FROM generate_series(1, 630) AS n`, s.client, noon)
	s.count(s.client, domain.Inactive, 210)
	s.count(s.client, domain.Active, 420)
	s.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'c' || n, 'c' || n, 'api', $2, $2 FROM generate_series(1, 480) AS n`, s.client, noon)
}

// filterTexts are values of the filters of routes.
var filterTexts = map[string]map[string][]string{
	"users":        {"status": {"active", "inactive", "all"}},
	"policy-users": {"status": {"signed", "unsigned", "all"}},
	"exposures": {
		"start": {"2026-01-01", "2026-01-01T00:00:00.123456789Z"}, "end": {"2026-06-15", "9999-12-31", "2026-06-15T14:00:00.5+02:00"},
	},
}

// TestSuccessorsOfPages: of every list, for any limit, offset and filters, the link
// leads to what the page shows; and there is one unless v2 has no such page.
func TestSuccessorsOfPages(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	s.furnish()
	rnd := rand.New(rand.NewPCG(11, 3))
	of := func(texts ...string) string { return texts[rnd.IntN(len(texts))] }
	for _, r := range s.facade.routes {
		if !strings.HasPrefix(r.output.Name(), "Paging[") {
			continue
		}
		linked, without := 0, 0
		for i := range 10 {
			query := url.Values{}
			if i > 0 && rnd.IntN(5) > 0 {
				query.Set("limit", of("-1", "1", "2", "7", "20", "50", "100", "499", "500", "501", "1000", "1001"))
			}
			if i == 1 { // a list of nothing, which the documents want as []
				query.Set("offset", "5000")
			} else if i > 1 && rnd.IntN(5) == 0 {
				query.Set("offset", of("1", "30", "5000"))
			}
			for _, name := range slices.Sorted(maps.Keys(filterTexts[r.ID])) {
				if rnd.IntN(2) == 0 {
					query.Set(name, of(filterTexts[r.ID][name]...))
				}
			}
			if s.leads(r, query, rnd) {
				linked++
			} else {
				without++
			}
		}
		if linked == 0 || without == 0 {
			t.Errorf("%s: %d pages with a link, %d without", r.ID, linked, without)
		}
	}
}

// leads holds the link of one page to the page, and reports whether it has one.
func (s *scene) leads(r *route, query url.Values, rnd *rand.Rand) bool {
	s.T.Helper()
	good := s.good(r)
	if r.ID == "sentemails" {
		good.body = s.mailsAsked(rnd)
	}
	got := s.Do(r.Method, good.path+"?"+query.Encode(), s.Key, good.body).Want(200)
	var p page
	got.Into(&p)
	whole, target := p.Offset+len(p.Items) >= p.Total, successorOf(s.T, got)

	wanted := p.Offset == 0 && (!r.Reordered || whole)
	if r.ID != "download-report" { // which is one object, whatever the limit
		wanted = wanted && (p.Limit <= 500 || whole && len(p.Items) <= 500)
	}
	if wanted != (target != "") {
		s.T.Errorf("%s?%s %s: %d of %d items lead to %q", good.path, query.Encode(), good.body, len(p.Items), p.Total, target)
	}
	if target != "" {
		s.leadsTo(s.Key, r, got, target)
	}
	return target != ""
}

// mailsAsked is a body that asks for the mails of the user.
func (s *scene) mailsAsked(rnd *rand.Rand) string {
	body := fmt.Sprintf(`{"user_infima_id":%q`, s.user)
	if rnd.IntN(3) == 0 {
		body = `{"email_address":"First@example.com"`
	}
	if rnd.IntN(2) == 0 {
		body += `,"message_types":["phishing","training-invite"]`
	}
	if rnd.IntN(2) == 0 {
		body += `,"start_time":"2026-06-01T14:00:00.123456789+02:00"`
	}
	return body + "}"
}
