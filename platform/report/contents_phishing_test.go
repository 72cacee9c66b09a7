package report_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

// counts are those of simulated mails, counted one by one.
type counts domain.PhishingCounts

func (c *counts) add(r api.PhishingResult) {
	c.Sent++
	switch r.Status {
	case domain.ResultCredentialsSubmitted:
		c.CredentialsSubmitted++
		c.Clicked++
	case domain.ResultAttachmentOpened:
		c.AttachmentsOpened++
		c.Clicked++
	case domain.ResultClicked:
		c.Clicked++
	}
	if r.OpenedAt != nil {
		c.Opened++
	}
	if r.Reported {
		c.Reported++
	}
}

func (c *counts) row(more row) row {
	for title, n := range map[string]int{"Sent": c.Sent, "Opened": c.Opened, "Clicked": c.Clicked, "Reported": c.Reported,
		"Submitted": c.CredentialsSubmitted, "Attachments": c.AttachmentsOpened} {
		more[title] = n
	}
	more["Click rate"], more["Report rate"] = rate(c.Clicked, c.Sent), rate(c.Reported, c.Sent)
	return more
}

// TestPhishing: figures are those of the summary, for the period that both know,
// and rows are those of the results, counted one by one, for any period.
func TestPhishing(t *testing.T) {
	w := twoClients(t)
	var summary api.PhishingSummary
	w.Get(w.path("/phishing/summary"), w.tenant.Key).Want(200).Into(&summary)
	year := domain.YearTo(today)
	for days, n := range map[int]api.PhishingCounts{30: summary.Days30, 90: summary.Days90, 365: summary.Days365} {
		p := domain.ReportPeriod{Start: today.AddDays(1 - days), End: today}
		for _, typ := range []domain.ReportType{domain.PhishingOverview, domain.PhishingPerformance} {
			d := w.document(typ, &p)
			d.figure(t, "Simulated mails sent", n.Sent)
			d.figure(t, "Click rate", n.ClickRate)
			d.figure(t, "Report rate", n.ReportRate)
			d.figure(t, "Credentials submitted", n.CredentialsSubmitted)
		}
	}
	w.document(domain.PhishingOverview, &year).figure(t, "Repeat clickers", summary.RepeatClickers)

	results := list[api.PhishingResult](w, w.path("/phishing/results"),
		"since", period.Start.Time().Format(time.RFC3339), "until", period.End.AddDays(1).Time().Format(time.RFC3339))
	categories := map[domain.TemplateID]string{}
	for _, c := range list[api.PhishingTemplate](w, "/v2/phishing/templates") {
		categories[c.ID] = c.Category
	}
	total, byUser := counts{}, map[domain.UserID]*counts{}
	byMonth, byCategory := map[string]*counts{}, map[string]*counts{}
	for _, r := range results {
		total.add(r)
		for _, c := range []*counts{at(byUser, r.UserID), at(byMonth, r.SentAt.Time.UTC().Format("Jan 2006")),
			at(byCategory, categories[r.TemplateID])} {
			c.add(r)
		}
	}
	d := w.document(domain.PhishingOverview, &period)
	d.figure(t, "Simulated mails sent", total.Sent)
	d.figure(t, "Click rate", rate(total.Clicked, total.Sent))
	var months, groups []row
	for _, month := range []string{"Feb 2026", "Mar 2026", "Apr 2026", "May 2026"} {
		months = append(months, at(byMonth, month).row(row{"Month": month}))
	}
	for _, category := range []string{"delivery", "finance"} {
		groups = append(groups, byCategory[category].row(row{"Category": capital(category)}))
	}
	same(t, "months", d.tables["Phishing by month"], months)
	same(t, "categories", d.tables["Phishing by category"], groups)
	w.repeatClickers(t, d, byUser)

	var users []row
	for _, u := range w.active() {
		r := at(byUser, u.ID).row(who(u, row{}))
		delete(r, "Attachments")
		delete(r, "Report rate")
		users = append(users, r)
	}
	same(t, "users", w.document(domain.PhishingPerformance, &period).tables["Phishing by user"], users)
}

func (w *world) repeatClickers(t *testing.T, d read, byUser map[domain.UserID]*counts) {
	var want []string
	for _, u := range list[api.User](w, w.path("/users")) {
		if c := byUser[u.ID]; c != nil && c.Clicked > 1 {
			want = append(want, fmt.Sprintf("%d %s\x00%s %s %d", 100-c.Clicked, key(u), u.Email, capital(u.Status), c.Sent))
		}
	}
	slices.Sort(want)
	var got []string
	for _, r := range d.tables["Repeat clickers"] {
		got = append(got, fmt.Sprintf("%d %s\x00%s %s %d", 100-r["Clicked"].(int),
			domain.SortKey(r["Name"].(string)), r["Email"], r["Status"], r["Sent"]))
	}
	if !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("repeat clickers:\n%q, want\n%q", got, want)
	}
	d.figure(t, "Repeat clickers", len(want))
}

// TestTraining: on-track figures are the client's, a user's row is the user's own
