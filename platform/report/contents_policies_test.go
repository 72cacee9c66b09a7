package report_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

// TestPolicies: counts are those of each policy's list, also where a snapshot finds stale counts.
func TestPolicies(t *testing.T) {
	w := newWorld(t)
	w.Exec("UPDATE policies SET counted_until = '-infinity', audience_count = 0, acknowledged_count = 0")
	w.Exec(`UPDATE policies SET scope_id = gen_random_uuid() WHERE id = (SELECT id FROM policies
		WHERE client_id = $1 AND scope_type = 'collection' AND archived_at IS NULL ORDER BY id LIMIT 1)`, w.client)
	d, asked := w.document(domain.PolicyReport, nil), w.document(domain.PolicyAcknowledgment, nil)
	names := map[domain.AnyRef]string{}
	for _, u := range list[api.User](w, w.path("/users")) {
		if u.Group != nil {
			names[domain.AnyRefTo(u.Group.ID)] = "Group " + u.Group.Name
		}
	}
	for _, c := range list[api.Collection](w, w.path("/collections")) {
		names[domain.AnyRefTo(c.ID)] = "Collection " + c.Name
	}
	var want, users []row
	missing := 0
	for _, p := range list[api.Policy](w, w.path("/policies")) {
		audience := cmp.Or(names[p.ScopeID], "Nobody: what it was for is deleted")
		if p.ScopeType == domain.TenantScope {
			audience = "All users"
		}
		r := row{"Title": p.Title, "Version": p.Version, "Audience": audience, "To be signed": p.RequiresAcknowledgment,
			"Renewal days": p.RenewalPeriodDays, "Users": nil, "Signed": nil, "Unsigned": nil, "Signed rate": nil}
		want = append(want, r)
		if !p.RequiresAcknowledgment {
			continue
		}
		r["Users"], r["Signed"] = *p.AudienceUserCount, *p.AcknowledgedCount
		if *p.AudienceUserCount > 0 { // an empty audience has no rate
			r["Signed rate"] = rate(*p.AcknowledgedCount, *p.AudienceUserCount)
		}
		r["Unsigned"] = *p.AudienceUserCount - *p.AcknowledgedCount
		missing += *p.AudienceUserCount - *p.AcknowledgedCount
		for _, u := range list[api.PolicyUser](w, w.path("/policies/"+p.ID.String()+"/users")) {
			cells := row{"Email": u.Email, "Name": u.Name, "Policy": p.Title, "Version": p.Version, "Signed": u.Acknowledged,
				"Signed on": nil, "Valid until": nil}
			if u.AcknowledgedAt != nil {
				day := domain.DateOf(u.AcknowledgedAt.Time)
				cells["Signed on"], cells["Valid until"] = day, day.AddDays(p.RenewalPeriodDays)
			}
			users = append(users, cells)
		}
	}
	slices.SortFunc(want, func(a, b row) int {
		return strings.Compare(domain.SortKey(a["Title"].(string)), domain.SortKey(b["Title"].(string)))
	})
	same(t, "policies", d.tables["Policies"], want)
	d.figure(t, "Signatures missing", missing)
	asked.figure(t, "Signatures missing", missing)

	slices.SortFunc(users, func(a, b row) int {
		of := func(r row) string {
			return fmt.Sprintf("%s\x00%s %s", domain.SortKey(r["Name"].(string)), r["Email"], r["Policy"])
		}
		return strings.Compare(of(a), of(b))
	})
	for _, r := range asked.tables["Policy acknowledgment"] {
		delete(r, "Department")
	}
	same(t, "users", asked.tables["Policy acknowledgment"], users)
}

// TestDarkWeb: figures are those of GET dark-web, users have the counts of their
// list, and what was found in the period is what the list of a period has.
func TestDarkWeb(t *testing.T) {
	w := newWorld(t)
	d := w.document(domain.DarkWebReport, &period)
	var shown api.DarkWeb
	w.Get(w.path("/dark-web"), w.tenant.Key).Want(200).Into(&shown)
	d.figure(t, "Unresolved exposures", shown.Summary.UnresolvedExposures)
	d.figure(t, "Resolved exposures", shown.Summary.ResolvedExposures)
	d.figure(t, "Affected employees", shown.Summary.AffectedUsers)
	if !strings.Contains(d.texts, "Have I Been Pwned (https://haveibeenpwned.com)") {
		t.Error("the source is not credited")
	}

	active := map[domain.UserID]api.User{}
	for _, u := range w.active() {
		active[u.ID] = u
	}
	tallies := map[string]*domain.ExposureTally{} // by severity, breach and user
	total := domain.ExposureTally{}
	for _, e := range list[api.Exposure](w, w.path("/dark-web/exposures")) {
		if active[e.UserID].Email == "" {
			continue
		}
		for _, n := range []*domain.ExposureTally{&total, at(tallies, capital(e.Severity)), at(tallies, e.Title),
			at(tallies, active[e.UserID].Email)} {
			if within(period, &e.FirstSeenAt.Time) {
				n.Found++
			}
			if e.ResolvedAt != nil {
				n.Resolved++
				if within(period, &e.ResolvedAt.Time) {
					n.ResolvedWithin++
				}
			} else {
				n.Unresolved++
			}
		}
	}
	d.figure(t, "Found in this period", total.Found)
	compared := 0
	for table, column := range map[string]string{
		"Exposures by severity": "Severity", "Exposures by breach": "Breach", "Exposures by user": "Email",
	} {
		for _, r := range d.tables[table] {
			n := at(tallies, r[column].(string))
			got := domain.ExposureTally{Found: r["Found in period"].(int), ResolvedWithin: r["Resolved in period"].(int),
				Unresolved: r["Unresolved"].(int), Resolved: r["Resolved"].(int)}
			if got != *n {
				t.Errorf("%s: %v has %+v, not %+v", table, r[column], got, *n)
			}
			compared++
		}
	}
	if compared != len(tallies) {
		t.Errorf("%d rows of %d", compared, len(tallies))
	}
	for _, u := range list[api.DarkWebUser](w, w.path("/dark-web/users")) {
		n := at(tallies, u.Email)
		if n.Unresolved != u.UnresolvedExposures || n.Resolved != u.ResolvedExposures {
			t.Errorf("%s: %+v, not %+v", u.Email, *n, u)
		}
	}

	w.Exec("UPDATE clients SET dark_web_monitoring = false WHERE id = $1", w.client)
	if _, err := w.try(domain.DarkWebReport, nil); !domain.IsCode(err, domain.Forbidden) {
		t.Errorf("without monitoring: %v", err)
	}
	if history := w.document(domain.EmployeeHistory, &period); strings.Contains(fmt.Sprint(history.tables), "Exposure") {
		t.Error("the history has exposures of a client without monitoring")
	}
}

// counts are those of simulated mails, counted one by one.
type counts domain.PhishingCounts

func (c *counts) add(r api.PhishingResult) {
	c.Sent++
	for column, counts := range map[*int]bool{
		&c.Opened:  r.Status != domain.ResultSent,
		&c.Clicked: r.Status != domain.ResultSent && r.Status != domain.ResultOpened, &c.Reported: r.Reported,
		&c.CredentialsSubmitted: r.CredentialsSubmittedAt != nil, &c.AttachmentsOpened: r.AttachmentOpenedAt != nil,
	} {
		if counts {
			*column++
		}
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
	w := newWorld(t)
	var summary api.PhishingSummary
	w.Get(w.path("/phishing/summary"), w.tenant.Key).Want(200).Into(&summary)
	year := domain.YearTo(today)
	for days, n := range map[int]api.PhishingCounts{30: summary.Days30, 90: summary.Days90, 365: summary.Days365} {
		p := domain.ReportPeriod{Start: today.AddDays(1 - days), End: today}
		for _, typ := range []domain.ReportType{domain.PhishingOverview, domain.PhishingPerformance} {
			d := w.document(typ, &p)
			d.figure(t, "Simulated emails sent", n.Sent)
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
		if r.SentAt == nil { // it is scheduled, or failed
			continue
		}
		total.add(r)
		for _, c := range []*counts{at(byUser, r.UserID), at(byMonth, r.SentAt.Time.UTC().Format("Jan 2006")),
			at(byCategory, categories[r.TemplateID])} {
			c.add(r)
		}
	}
	d := w.document(domain.PhishingOverview, &period)
	d.figure(t, "Simulated emails sent", total.Sent)
	d.figure(t, "Click rate", rate(total.Clicked, total.Sent))
	var months, groups []row
	for _, month := range []string{"Feb 2026", "Mar 2026", "Apr 2026", "May 2026"} {
		months = append(months, at(byMonth, month).row(row{"Month": month}))
	}
	for _, category := range slices.Sorted(maps.Keys(byCategory)) {
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
