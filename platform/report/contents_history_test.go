package report_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func TestHistory(t *testing.T) {
	w := twoClients(t)
	d := w.document(domain.EmployeeHistory, &period)
	want := map[string]int{}
	add := func(u api.User, at *domain.Time, event, subject string) {
		if at != nil && within(period, &at.Time) {
			want[fmt.Sprint(u.Email, " ", at.Time.UTC(), " ", event, " ", subject)]++
		}
	}
	templates := map[domain.TemplateID]string{}
	for _, c := range list[api.PhishingTemplate](w, "/v2/phishing/templates") {
		templates[c.ID] = c.Name
	}
	results := list[api.PhishingResult](w, w.path("/phishing/results"))
	exposures := list[api.Exposure](w, w.path("/dark-web/exposures"))
	active := w.active()
	for _, u := range active {
		for _, r := range results {
			if r.UserID != u.ID {
				continue
			}
			for event, at := range map[string]*domain.Time{"sent": r.SentAt, "opened": r.OpenedAt, "reported": r.ReportedAt} {
				add(u, at, "Simulated mail "+event, templates[r.TemplateID])
			}
			for event, at := range map[string]*domain.Time{"attachment opened": r.AttachmentOpenedAt, "link clicked": r.ClickedAt,
				"credentials submitted": r.CredentialsSubmittedAt} {
				add(u, at, "Simulated mail: "+event, templates[r.TemplateID])
			}
		}
		for _, e := range exposures {
			if e.UserID == u.ID {
				add(u, &e.FirstSeenAt, "Exposure found", e.Title)
				add(u, e.ResolvedAt, "Exposure resolved", e.Title)
			}
		}
	}
	got := map[string]int{}
	before := ""
	for _, r := range d.tables["History"] {
		event := r["Event"].(string)
		if strings.HasPrefix(event, "Simulated") || strings.HasPrefix(event, "Exposure") {
			got[fmt.Sprint(r["Email"], " ", r["Time (UTC)"], " ", event, " ", r["Subject"])]++
		}
		place := fmt.Sprintf("%s\x00%s %s", domain.SortKey(r["Name"].(string)), r["Email"],
			r["Time (UTC)"].(time.Time).Format("2006-01-02T15:04:05.000000"))
		if place < before {
			t.Errorf("%s comes before %s", before, place)
		}
		before = place
	}
	if !reflect.DeepEqual(got, want) || len(want) == 0 {
		t.Errorf("%d kinds of events, not %d", len(got), len(want))
	}

	since, until := period.Start.Time(), period.End.AddDays(1).Time()
	for event, column := range map[string]string{
		"Course assigned": "assignments.assigned_at", "Course completed": "assignments.completed_at",
		"Policy signed": "policy_signatures.signed_at", "Real mail reported": "reported_emails.reported_at",
	} {
		n := 0
		for _, r := range d.tables["History"] {
			if r["Event"] == event {
				n++
			}
		}
		table, _, _ := strings.Cut(column, ".")
		want := w.Number("SELECT count(*) FROM "+table+" WHERE "+column+" >= $2 AND "+column+` < $3
			AND user_id IN (SELECT id FROM users WHERE client_id = $1 AND status = 'active')`, w.client, since, until)
		if n != want || n == 0 {
			t.Errorf("%s: %d events, not %d", event, n, want)
		}
	}
}

// TestEdges: every type reads well without users, with one, and with many; it says
