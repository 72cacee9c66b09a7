package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

// TestPolicies: counts are those of each policy's list, also where a snapshot finds stale counts.
func TestPolicies(t *testing.T) {
	w := twoClients(t)
	d, asked := w.document(domain.PolicyReport, nil), w.document(domain.PolicyAcknowledgment, nil)
	type policy struct {
		ID                domain.PolicyID `json:"id"`
		Title             string          `json:"title"`
		MustSign          bool            `json:"requires_acknowledgment"`
		AudienceUserCount *int            `json:"audience_user_count"`
		AcknowledgedCount *int            `json:"acknowledged_count"`
		Percentage        *float64        `json:"acknowledged_percentage"`
	}
	audiences := map[string]string{"Policy 9": "All users", "Policy 8": "Group Warehouse",
		"Policy 7": "Collection New starters", "Policy 6": "Nobody: what it was for is deleted", "Policy 5": "All users"}
	var want, users []row
	missing := 0
	for _, p := range list[policy](w, w.path("/policies")) {
		r := row{"Title": p.Title, "Version": 2, "Audience": audiences[p.Title], "To be signed": p.MustSign,
			"Renewal days": 100, "Users": nil, "Signed": nil, "Unsigned": nil, "Signed rate": nil}
		want = append(want, r)
		if !p.MustSign {
			continue
		}
		r["Users"], r["Signed"] = *p.AudienceUserCount, *p.AcknowledgedCount
		if *p.AudienceUserCount > 0 { // an empty audience has no rate
			r["Signed rate"] = *p.Percentage
		}
		r["Unsigned"] = *p.AudienceUserCount - *p.AcknowledgedCount
		missing += *p.AudienceUserCount - *p.AcknowledgedCount
		for _, u := range list[api.PolicyUser](w, w.path("/policies/"+p.ID.String()+"/users")) {
			cells := row{"Email": u.Email, "Name": u.Name, "Policy": p.Title, "Version": 2, "Signed": u.Acknowledged,
				"Signed on": nil, "Valid until": nil}
			if u.AcknowledgedAt != nil {
				day := domain.DateOf(u.AcknowledgedAt.Time)
				cells["Signed on"], cells["Valid until"] = day, day.AddDays(100)
			}
			users = append(users, cells)
		}
	}
	slices.Reverse(want)
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
	w := twoClients(t)
	d := w.document(domain.DarkWebReport, &period)
	var shown api.DarkWeb
	w.Get(w.path("/dark-web"), w.tenant.Key).Want(200).Into(&shown)
	d.figure(t, "Unresolved exposures", shown.Summary.UnresolvedExposures)
	d.figure(t, "Resolved exposures", shown.Summary.ResolvedExposures)
	d.figure(t, "Affected users", shown.Summary.AffectedUsers)
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

// TestHistory: every user's events in the period are there, in the order of time.
