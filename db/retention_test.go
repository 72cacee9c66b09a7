package db_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// agedID returns an ID of version 7 that was made the given number of days before noon.
const agedID = "uuid_v7($2::timestamptz - make_interval(days => age))"

// TestRetention verifies which rows the daily refresh deletes after 400 days.
func TestRetention(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := w.AddClient()
	user := w.AddUser(client, domain.RoleStandard, 0)
	const ages = "unnest('{399,400,401,500}'::integer[]) AS age" // the third and the fourth are past 400 days
	at := "$2::timestamptz - make_interval(days => age)"
	insert := func(statement string, args ...any) {
		t.Helper()
		w.Exec(strings.NewReplacer("{ages}", ages, "{at}", at, "{id}", agedID).Replace(statement), args...)
	}
	insert(`INSERT INTO risk_history (client_id, day, average_score) SELECT $1, ({at})::date, 700 FROM {ages}`, client, noon)
	w.Exec("DELETE FROM active_user_days")
	insert(`INSERT INTO active_user_days (client_id, day, active_users_max, active_users_last) SELECT $1, ({at})::date, age, age FROM {ages}`, client, noon)
	insert(`INSERT INTO mail_requests (client_id, id, type, user_id, created_at, sent_at)
		SELECT $1, {id}, 'welcome', $3, {at}, {at} FROM {ages}`, client, noon, user)
	insert(`INSERT INTO mail_requests (client_id, id, type, user_id, created_at, failed_at, failure)
		SELECT $1, {id}, 'welcome', $3, {at}, {at}, 'refused' FROM {ages}`, client, noon, user)
	insert(`INSERT INTO mail_requests (client_id, id, type, user_id, created_at) SELECT $1, {id}, 'welcome', $3, {at} FROM {ages}`, client, noon, user)
	insert(`WITH invites AS (
			INSERT INTO admin_invites (client_id, id, email, role, created_at, expires_at)
			SELECT $1, {id}, age || '@b.example', 'admin', {at}, {at} + interval '7 days' FROM unnest('{399,407,408,500}'::integer[]) AS age RETURNING *
		)
		INSERT INTO mail_requests (client_id, id, type, invite_id, created_at, sent_at)
		SELECT client_id, gen_random_uuid(), 'admin-invite', id, created_at, created_at FROM invites WHERE email LIKE '500@%'`, client, noon)
	for _, kind := range []string{"webhook-failing", "of-an-extension"} {
		insert(`INSERT INTO partner_mails (partner_id, id, kind, cause, admin_id, recipient, notice, created_at, sent_at)
			SELECT $1, {id}, $3, age::text, gen_random_uuid(), 'a@b.example', '{}', {at}, {at} FROM {ages}`, w.Partner, noon, kind)
	}
	insert(`INSERT INTO daily_refreshes (day, finished_at) SELECT ({at})::date, $1 FROM {ages}`, noon, noon)
	insert(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		SELECT $1, $3, {id}, {at}, '', '', 'smtp', 'welcome' FROM {ages}`, client, noon, user)

	w.Must(w.DropOld(t.Context()))
	for query, want := range map[string]int{
		"risk_history":     2,
		"active_user_days": 2,
		"mail_requests WHERE type = 'welcome' AND sent_at IS NOT NULL":                   2,
		"mail_requests WHERE type = 'welcome' AND failed_at IS NOT NULL":                 4, // operators see them
		"mail_requests WHERE type = 'welcome' AND sent_at IS NULL AND failed_at IS NULL": 4, // they wait
		"admin_invites": 3, // one of 500 days has an email with a random ID, and stays
		"partner_mails WHERE kind = 'webhook-failing'": 2,
		"partner_mails WHERE kind = 'of-an-extension'": 4,
		"daily_refreshes": 2,
		"sent_emails":     4,
	} {
		if n := w.Number("SELECT count(*) FROM " + query); n != want {
			t.Errorf("%s: %d rows are left, want %d", query, n, want)
		}
	}
	w.Clock.Advance(1000 * day)
	w.Must(w.DropOld(t.Context()))
	for _, table := range []string{"daily_refreshes", "active_user_days"} {
		if n := w.Number("SELECT count(*) FROM " + table); n != 1 {
			t.Errorf("%s: %d rows are left, want the newest", table, n)
		}
	}
}

// retentionRow matches a row of the table in docs/operating.md, and the tables that it names.
var (
	retentionRow = regexp.MustCompile(`(?m)^\| .* \|$`)
	tableName    = regexp.MustCompile("`([a-z0-9_]+)`")
)

// TestRetentionDocument verifies that the section Retention of docs/operating.md names every table with a time: with a
// number of days those that the daily refresh empties.
func TestRetentionDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text, err := os.ReadFile("../docs/operating.md")
	w.Must(err)
	_, section, _ := strings.Cut(string(text), "\n## Retention\n")
	section, _, _ = strings.Cut(section, "\n## ")
	documented := map[string]string{} // the row that names a table
	for _, row := range retentionRow.FindAllString(section, -1) {
		for _, name := range tableName.FindAllStringSubmatch(row, -1) {
			documented[name[1]] = row
		}
	}
	emptied := map[string]time.Duration{}
	for table, life := range db.Retained() {
		emptied[table] = life
	}
	names, err := pg.All[string](t.Context(), w.DB, "list tables", pg.SQL(`
		SELECT DISTINCT table_name::text COLLATE "C" FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND data_type IN ('date', 'timestamp with time zone') ORDER BY 1`))
	w.Must(err)
	for _, name := range names {
		row, ok := documented[name]
		switch life, dropped := emptied[name]; {
		case !ok:
			t.Errorf("the section Retention does not name the table %s", name)
		case dropped && !strings.Contains(row, days(life)):
			t.Errorf("%s is kept for %s, and the document has: %s", name, days(life), row)
		}
	}
	for name := range documented {
		if !slices.Contains(names, name) {
			t.Errorf("the section Retention names %s, which is no table with a time", name)
		}
	}
}

// days returns a duration as the document writes it.
func days(d time.Duration) string {
	if d == day {
		return "24 hours"
	}
	return strings.TrimSuffix((d/24).String(), "h0m0s") + " days"
}
