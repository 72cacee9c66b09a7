package figures

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// countedIn returns the metrics of what waits in the database, without those of the pool, as lines.
func countedIn(t *testing.T, w *worldtest.World) (lines []string) {
	t.Helper()
	sources, err := SourcesOf(t.Context(), w.DB)
	w.Must(err)
	for name, value := range values(t, NewRegistry("test", sources)) {
		ofProcess := slices.ContainsFunc([]string{"go_", "process_", "build_info", "database_"}, func(p string) bool { return strings.HasPrefix(name, p) })
		if !ofProcess || name == "database_up" {
			lines = append(lines, fmt.Sprint(name, " = ", value))
		}
	}
	slices.Sort(lines)
	return lines
}

// TestFiguresOfDatabase verifies the values of all metrics that are counted in the database: of an empty one, and of one
// with work of each kind in each state.
func TestFiguresOfDatabase(t *testing.T) {
	t.Parallel()
	w := worldtest.New(t)
	empty := countedIn(t, w)
	google, microsoft, new, archived := w.AddClient(), w.AddClient(), w.AddClient(), w.AddClient()
	w.Exec("UPDATE clients SET archived_at = created_at WHERE id = $1", archived)
	user := w.AddUser(google, domain.RoleStandard, 500)
	w.AddUnsent(google, user, worldtest.Noon)
	w.Exec("UPDATE phishing_results SET send_at = $1, sent_at = NULL, failed_at = NULL", worldtest.Noon.Add(-2*time.Minute))
	end := worldtest.Noon.Add(100 * time.Hour)
	key, err := w.CreateKey(t.Context(), db.NewKey{Partner: w.Partner, Name: "ends", Scopes: []domain.Scope{domain.Read}, ExpiresAt: &end})
	w.Must(err)
	w.Exec("INSERT INTO periodic_jobs (kind, due_at, failed_at) VALUES ('report_care', $1::timestamptz - interval '3 minutes', "+
		"ARRAY[$1 - interval '1 hour', $1 - interval '30 days'])", worldtest.Noon)
	w.Exec(`INSERT INTO reports (client_id, id, type, format, status, lease, due_at, tries, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'risk_overview', 'pdf', status, lease::uuid, $2::timestamptz + due::interval, tries, $2 + created::interval, $2 + created::interval FROM (VALUES
			('pending', NULL, NULL, 0, '-10 s'), ('pending', gen_random_uuid()::text, '1 min', 1, '-20 s'), ('pending', NULL, '1 min', 2, '-30 s'),
			('pending', NULL, '1 min', 0, '-5 s'), ('failed', NULL, NULL, `+fmt.Sprint(domain.ReportTries)+`, '-1 h'), ('failed', NULL, NULL, 1, '-1 h')
		) AS r (status, lease, due, tries, created)`, google, worldtest.Noon)
	w.Exec(`INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
		SELECT c.id::uuid, c.provider, '{}', '', 'infinity', $5, $5 FROM (VALUES ($1, 'google'), ($2, 'microsoft'), ($3, 'google'), ($4, 'google')) AS c (id, provider)`,
		google.UUID(), microsoft.UUID(), new.UUID(), archived.UUID(), worldtest.Noon)
	w.Exec(`INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, finished_at, updated_at)
		SELECT r.id::uuid, gen_random_uuid(), r.status, 'api', $4::timestamptz + r.queued::interval, CASE WHEN r.status IN ('completed', 'failed') THEN $4::timestamptz END, $4 FROM (VALUES
			($1, 'failed', '-3 h'), ($1, 'running', '-1 h'), ($2, 'failed', '-5 h'), ($2, 'completed', '-4 h'), ($3, 'queued', '-2 min')
		) AS r (id, status, queued)`, google.UUID(), microsoft.UUID(), w.AddClient().UUID(), worldtest.Noon)
	w.Exec("INSERT INTO events (client_id, id, type, created_at, recorded_at) SELECT $1, gen_random_uuid(), 'user.created', $2::timestamptz, "+
		"$2 - n * interval '5 seconds' FROM generate_series(1, 3) AS n", google, worldtest.Noon)
	w.Exec("UPDATE event_head SET position = 7")
	w.Exec(`INSERT INTO moves (partner_id, step, cell) SELECT gen_random_uuid(), step, '01' FROM unnest('{copying,arriving,arriving,gone}'::text[]) AS step`)
	w.Exec("INSERT INTO moves (partner_id, step, cell, held_until) VALUES (gen_random_uuid(), 'handing', '01', $1)", worldtest.Noon.Add(db.FreezeFor-30*time.Second))
	w.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret, failing_since)
		SELECT partner_id, ('00000000-0000-7000-8000-00000000000' || n)::uuid, id, 'https://hook.example', '{}', (ARRAY['active', 'active', 'paused', 'disabled'])[n],
			$1, $1, '', CASE WHEN n < 2 THEN $1::timestamptz - interval '1 hour' END FROM api_keys, generate_series(1, 4) AS n`, worldtest.Noon)
	w.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, due_at, created_at)
		SELECT '00000000-0000-7000-8000-000000000002', gen_random_uuid(), $1, 1, $2, gen_random_uuid(), 'user.created', $3::timestamptz + due, $3
		FROM unnest('{-90 s,-1 s,1 h}'::interval[]) AS due`, w.Partner, google, worldtest.Noon)
	full := countedIn(t, w)
	for _, line := range empty {
		if name, value, _ := strings.Cut(line, " = "); (value == "0") == (name == "database_up") {
			t.Errorf("an empty database: got %s", line)
		}
	}
	want := strings.ReplaceAll(`
api_key_ends_seconds KEY = 360000
database_up = 1
directory_connections google failing = 1
directory_connections google new = 1
directory_connections google working = 0
directory_connections microsoft failing = 0
directory_connections microsoft new = 0
directory_connections microsoft working = 1
event_oldest_seconds = 15
events_published_total = 7
events_waiting = 3
job_leader = 0
job_oldest_seconds report = 10
job_oldest_seconds report_care = 180
jobs report available = 1
jobs report discarded = 1
jobs report retryable = 1
jobs report running = 1
jobs report_care available = 1
jobs report_care discarded = 1
jobs report_care retryable = 0
jobs report_care running = 0
mail_oldest_seconds mail = 0
mail_oldest_seconds simulation = 120
mails mail failed = 0
mails mail waiting = 0
mails simulation failed = 0
mails simulation waiting = 1
move_held_seconds = 30
moves arriving = 2
moves copying = 1
moves handing = 1
moves holding = 0
report_oldest_seconds = 30
reports_waiting = 4
sync_oldest_seconds = 3600
syncs google queued = 0
syncs google running = 1
syncs microsoft queued = 0
syncs microsoft running = 0
syncs none queued = 1
webhook_deliveries_waiting = 3
webhook_failing_seconds whk_0000000000e008000000000001 = 3600
webhook_oldest_due_seconds = 90
webhooks active = 2
webhooks disabled = 1
webhooks paused = 1
`, "KEY", key[:13])
	if got := "\n" + strings.Join(full, "\n") + "\n"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	zeros := 0
	for _, line := range full { // those of the empty database, and the key, the webhook and the provider none
		if name, _, _ := strings.Cut(line, " = "); slices.ContainsFunc(empty, func(l string) bool { return strings.HasPrefix(l, name+" = ") }) {
			zeros++
		}
	}
	if zeros != len(empty) || len(full) != len(empty)+3 {
		t.Errorf("an empty database: got %d metrics, want %d", len(empty), len(full)-3)
	}
}
