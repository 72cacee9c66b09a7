package seed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// demands are what decisions 9 asks of the demonstration: queries that must be
// true, about the client $1; now() and current_date are by the test's clock.
var demands = []struct{ what, query string }{
	{"at least 30 clients", `SELECT count(*) >= 30 FROM clients WHERE partner_id = (SELECT partner_id FROM clients WHERE id = $1)`},
	{"sizes from 0 to 120", `SELECT min(users_active + users_inactive) = 0 AND max(users_active + users_inactive) = 120 FROM clients WHERE $1::text <> ''`},
	{"the client is the largest and the oldest", `SELECT users_active + users_inactive = 120 AND created_at = (SELECT min(created_at) FROM clients) FROM clients WHERE id = $1`},
	{"one without Dark Web Monitoring", `SELECT count(*) >= 1 FROM clients WHERE NOT dark_web_monitoring AND $1::text <> ''`},
	{"no exposures there", `SELECT count(*) = 0 FROM exposures JOIN clients AS c ON c.id = client_id WHERE NOT c.dark_web_monitoring AND $1::text <> ''`},
	{"one without sync", `SELECT count(*) >= 1 FROM clients WHERE directory_sync IS NULL AND users_active > 10 AND $1::text <> ''`},
	{"a name that is not ASCII", `SELECT count(*) >= 1 FROM clients WHERE name ~ '[^\x01-\x7f]' AND $1::text <> ''`},
	{"a second partner with 2 clients", `SELECT count(*) = 2 FROM clients WHERE partner_id <> (SELECT partner_id FROM clients WHERE id = $1)`},
	{"every role in both states", `SELECT count(DISTINCT (role, status)) = 10 FROM users WHERE client_id = $1`},
	{"every language", `SELECT count(DISTINCT preferred_language) = 3 FROM users WHERE client_id = $1`},
	{"every source", `SELECT count(DISTINCT source) = 4 FROM users WHERE client_id = $1`},
	{"nearly every grade", `SELECT count(DISTINCT CASE WHEN score >= 800 THEN 1 WHEN score >= 700 THEN 2 WHEN score >= 600 THEN 3 WHEN score >= 400 THEN 4 ELSE 5 END) >= 4 FROM users WHERE client_id = $1`},
	{"overrides", `SELECT count(DISTINCT overrides) >= 3 FROM users WHERE client_id = $1`},
	{"groups of both kinds in use", `SELECT count(DISTINCT g.id) FILTER (WHERE g.manual) = 1 AND count(DISTINCT g.id) FILTER (WHERE NOT g.manual) >= 2
		FROM groups AS g JOIN users AS u ON u.client_id = g.client_id AND u.group_id = g.id WHERE g.client_id = $1`},
	{"every client has its manual group", `SELECT count(*) = (SELECT count(*) FROM clients) FROM groups WHERE manual AND $1::text <> ''`},
	{"collections with members, and an empty one", `SELECT count(*) FILTER (WHERE member_count > 0) >= 4 AND count(*) FILTER (WHERE member_count = 0) = 1
		AND count(DISTINCT created_by) = 2 FROM collections WHERE client_id = $1`},
	{"policies of every scope", `SELECT count(DISTINCT scope_type) = 3 FROM policies WHERE client_id = $1 AND archived_at IS NULL`},
	{"signed, lapsed, and of an old version", `SELECT count(*) FILTER (WHERE s.version = p.version AND s.signed_at > now() - interval '1 day' * p.renewal_period_days) > 0
		AND count(*) FILTER (WHERE s.version = p.version AND s.signed_at < now() - interval '1 day' * p.renewal_period_days) > 0
		AND count(*) FILTER (WHERE s.version < p.version) > 0
		FROM policies AS p JOIN policy_signatures AS s ON s.client_id = p.client_id AND s.policy_id = p.id WHERE p.client_id = $1`},
	{"an archived policy and one without signatures", `SELECT count(archived_at) = 1 AND count(*) FILTER (WHERE NOT requires_acknowledgment) = 1 FROM policies WHERE client_id = $1`},
	{"exposures of every severity, resolved and not", `SELECT count(DISTINCT (severity, resolved_at IS NULL)) = 8 FROM exposures WHERE client_id = $1`},
	{"results in every status", `SELECT count(DISTINCT status) = 7 FROM phishing_results WHERE client_id = $1 AND created_at > now() - interval '30 days'`},
	{"results reported and automated", `SELECT bool_or(reported) AND bool_or(automated) FROM phishing_results WHERE client_id = $1`},
	{"real mails of every kind", `SELECT count(DISTINCT classification) = 4 FROM reported_emails WHERE client_id = $1`},
	{"mail of every type of late", `SELECT count(DISTINCT message_type) = 8 FROM sent_emails WHERE client_id = $1 AND sent_at > now() - interval '30 days'`},
	{"mail of every type of old", `SELECT count(DISTINCT message_type) = 8 FROM sent_emails WHERE client_id = $1 AND sent_at < now() - interval '30 days'`},
	{"frameworks of every audience", `SELECT count(DISTINCT audience_type) = 3 FROM framework_assignments WHERE client_id = $1`},
	{"courses of every framework", `SELECT count(DISTINCT frameworks) FILTER (WHERE frameworks <> '{}') >= 3 FROM assignments WHERE client_id = $1`},
	{"training completed, overdue, assigned and renewed", `SELECT count(completed_at) > 0 AND count(*) FILTER (WHERE completed_at IS NULL AND due_on < current_date) > 0
		AND count(*) FILTER (WHERE completed_at IS NULL AND due_on >= current_date) > 0 AND max(round) >= 2 FROM assignments WHERE client_id = $1`},
	{"users on track and behind, with nothing left too", `SELECT bool_or(next_due_on < current_date) AND bool_or(next_due_on >= current_date) AND bool_or(next_due_on IS NULL) FROM users WHERE client_id = $1`},
	{"admins in every role", `SELECT count(DISTINCT role) = 3 FROM admins WHERE client_id = $1`},
	{"admins of both partners", `SELECT count(DISTINCT partner_id) = 2 FROM admins WHERE client_id IS NULL AND $1::text <> ''`},
	{"invites open, expired and accepted", `SELECT count(*) FILTER (WHERE accepted_at IS NULL AND expires_at > now()) = 1
		AND count(*) FILTER (WHERE accepted_at IS NULL AND expires_at <= now()) = 1 AND count(accepted_at) = 1 FROM admin_invites WHERE client_id = $1`},
	{"90 days of history", `SELECT count(*) = 90 AND max(day) = current_date FROM risk_history WHERE client_id = $1`},
	{"counters of phishing", `SELECT count(*) > 50 FROM phishing_days WHERE client_id = $1`},
	{"templates in every language", `SELECT count(*) = 48 AND count(DISTINCT language) = 3 AND count(DISTINCT category) >= 3 FROM phishing_templates WHERE $1::text <> ''`},
	{"breaches of every severity", `SELECT count(DISTINCT severity) = 4 FROM breaches WHERE $1::text <> ''`},
	{"reports that wait, of today and of before, and one that failed", `SELECT count(*) FILTER (WHERE status = 'pending' AND created_at < now() - interval '48 hours') = 3
		AND count(*) FILTER (WHERE status = 'pending' AND created_at > now() - interval '48 hours') = 1 AND count(*) FILTER (WHERE status = 'failed') = 1 FROM reports WHERE client_id = $1`},
	{"programs of six courses", `SELECT count(*) = 6 FROM program_courses WHERE client_id = $1`},
}

func TestDemoHasSomeOfEverything(t *testing.T) {
	t.Parallel()
	d, keys := demo(t)
	clock := strings.NewReplacer("now()", "'"+noon.Format(time.RFC3339)+"'::timestamptz", "current_date", "'"+noon.Format(time.DateOnly)+"'::date")
	for _, demand := range demands {
		if !value[bool](t, d, clock.Replace(demand.query), keys.Client.UUID()) {
			t.Errorf("missing: %s", demand.what)
		}
	}
}

func TestDemoKeysWork(t *testing.T) {
	t.Parallel()
	d, keys := demo(t)
	for _, want := range []struct {
		text    string
		scopes  string
		clients int // within its reach
		all     bool
	}{
		{keys.All, "[read write]", 32, true},
		{keys.ReadOnly, "[read]", 32, true},
		{keys.Subset, "[read write]", 2, false},
		{keys.Other, "[read write]", 2, true},
	} {
		caller, err := d.CallerByDigest(t.Context(), db.KeyDigest(want.text))
		if err != nil {
			t.Fatalf("%s: %v", want.text, err)
		}
		if !caller.Demo || caller.Prefix != want.text || caller.AllClients != want.all || fmt.Sprint(caller.Scopes) != want.scopes {
			t.Errorf("%s: %+v", want.text, caller)
		}
		ctx := domain.WithCaller(t.Context(), caller)
		clients, err := d.Clients(ctx, domain.ClientFilter{Sort: "name"}, domain.Window{Limit: 500})
		if err != nil {
			t.Fatal(err)
		}
		if len(clients.Rows) != want.clients {
			t.Errorf("%s reaches %d clients, want %d", want.text, len(clients.Rows), want.clients)
		}
		if _, err := d.Tenant(ctx, keys.Client); (err == nil) != (want.text != keys.Other) {
			t.Errorf("%s and the first client: %v", want.text, err)
		}
	}
}
