//go:build slow

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
)

// TestImportOutlivesCrash kills an import of several batches in the middle of one: run
// again with the same file it ends as if nothing had happened, and nothing is done
// twice.
func TestImportOutlivesCrash(t *testing.T) {
	t.Parallel()
	const users = 5000
	id := func(n int) string { return fmt.Sprintf("0197cafe-0000-7000-8000-%012d", n) }
	var lines strings.Builder
	fmt.Fprintf(&lines, `{"object":"collection","id":%q,"client":%q,"name":"K","members":[%q]}`+"\n", id(3), id(2), id(10))
	for n := range users {
		fmt.Fprintf(&lines, `{"object":"user","id":%q,"client":%q,"email":"u%d@example.com","created_at":"2025-01-01T00:00:00Z"}`+"\n",
			id(10+n), id(2), n)
	}
	fmt.Fprintf(&lines, `{"object":"client","id":%q,"partner":%q,"name":"C"}`+"\n", id(2), id(1))
	fmt.Fprintf(&lines, `{"object":"partner","id":%q,"name":"P"}`+"\n", id(1))
	file := filepath.Join(t.TempDir(), "objects.ndjson")
	writeFile(t, file, lines.String())

	dir := dataDir(t)
	must(t, "migrate", "--data-dir="+dir)
	d, leave := lookInto(t, dir)
	defer leave()
	d.exec("BEGIN")
	d.exec(fmt.Sprintf("INSERT INTO partners (id, name, name_key, created_at) VALUES ('%s', '', '', now())", id(0)))
	d.exec(fmt.Sprintf(`INSERT INTO clients (id, partner_id, name, name_key, summarized_at, created_at, updated_at)
		VALUES ('%s', '%s', '', '', now(), now(), now())`, id(0), id(0)))
	d.exec(fmt.Sprintf(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role,
			preferred_language, source, score, created_at, updated_at)
		VALUES ('%s', '%s', '', '', '', '', 'active', 'hr', 'en', 'api', 0, now(), now())`, id(0), id(3000)))

	first := spawned(t, "import", "--data-dir="+dir, file)
	d.until(1, "SELECT count(*) FROM (SELECT FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted LIMIT 1) AS l")
	first.kill()
	d.exec("ROLLBACK")
	d.hangUp()
	if n := d.number("SELECT count(*) FROM users"); n == 0 || n >= users {
		t.Fatalf("%d users are there", n)
	}

	if out := must(t, "import", "--data-dir="+dir, file); !strings.Contains(out, "unchanged, 0 rejected") || strings.Contains(out, " 0 unchanged") {
		t.Error(out)
	}
	for query, want := range map[string]int{
		"SELECT count(*) FROM users":                           users,
		"SELECT users_active FROM clients":                     users,
		"SELECT count(*) FROM user_risks":                      users,
		"SELECT count(*) FROM assignments WHERE overdue_noted": 6 * users,
		"SELECT member_count FROM collections":                 1,
		"SELECT count(*) FROM events":                          0,
		"SELECT count(*) FROM mail_requests":                   0,
		"SELECT count(*) FROM groups WHERE manual":             1,
		"SELECT client_count FROM partners":                    1,
	} {
		if got := d.number(query); got != want {
			t.Errorf("%s: %d, not %d", query, got, want)
		}
	}
}

// TestSyncOutlivesCrash kills the service and its database in the middle of a sync
// of several batches: the next one completes it, and nothing is done twice.
func TestSyncOutlivesCrash(t *testing.T) {
	t.Parallel()
	const accounts = 2500
	office := directorytest.New()
	for i := range accounts {
		office.Put(directorytest.Account{ID: fmt.Sprintf("id-%05d", i), Email: fmt.Sprintf("u%d@example.com", i), First: "U"})
	}
	settings, at := googleArgs(t, office)
	s := newSends(t)
	serve := func() *running { return process(t, s.dir, append(at, "--release=latest")...) }
	first := serve()
	client := s.newClient(first)
	must(t, append(append([]string{"directory", "connect", "acme", "google", "--data-dir=" + s.dir}, settings...), at...)...)
	path := "/v2/clients/" + client
	first.do("POST", path+"/users", s.key, fields{"email": "u1500@example.com"}).want(http.StatusCreated)

	d := s.look()
	d.exec("BEGIN")
	d.exec("SELECT FROM users FOR UPDATE") // the batch that merges this one waits
	first.do("POST", path+"/sync/runs", s.key, nil).want(http.StatusAccepted)
	d.until(1, "SELECT count(*) FROM sync_runs WHERE stage = 'applying' AND created > 0")
	d.until(1, "SELECT count(*) FROM (SELECT FROM pg_locks WHERE locktype IN ('transactionid', 'tuple') AND NOT granted LIMIT 1) AS l")
	first.kill()
	killServer(t, s.dir)

	d = s.look()
	d.until(1, "SELECT count(*) FROM sync_runs WHERE status = 'running' AND stage = 'applying' AND created BETWEEN 1 AND $1::integer", accounts-2)
	d.exec("UPDATE sync_runs SET leased_until = now()") // as if a minute had passed
	second := serve()
	d.until(1, "SELECT count(*) FROM sync_runs WHERE status IN ('completed', 'failed')")
	checkSynced(second, d, s.key, path+"/sync/runs", accounts)
	second.finish()
}

// allEvents are the events of the outbox and those that were published.
const allEvents = "(SELECT id, type FROM events UNION ALL SELECT id, type FROM published_events) AS e"

// checkSynced wants one run to have completed that made all users but one, whom it
// found.
func checkSynced(r *running, d *witness, key, path string, accounts int) {
	r.t.Helper()
	runs := into[struct {
		Data []struct {
			Status domain.SyncStatus
			domain.SyncCounts
		}
	}](r.get(path, key).want(http.StatusOK)).Data
	if len(runs) != 1 || runs[0].Status != domain.SyncCompleted || runs[0].SyncCounts != (domain.SyncCounts{Created: accounts - 1, Merged: 1}) {
		r.t.Errorf("the runs are %+v", runs)
	}
	for what, query := range map[string]string{
		"users":      "SELECT count(*) FROM users",
		"counted":    "SELECT users_active FROM clients",
		"made known": "SELECT count(*) FROM " + allEvents + " WHERE type = 'user.created'",
		"known":      "SELECT count(DISTINCT user_id) FROM directory_accounts",
		"runs":       fmt.Sprintf("SELECT count(*) * %d FROM %s WHERE type = 'sync.completed'", accounts, allEvents),
		"enrolled":   "SELECT count(DISTINCT user_id) FROM assignments",
		"courses": `SELECT count(*) / (SELECT count(*) FROM program_courses) FROM assignments
			WHERE round = 1`,
		"staged": fmt.Sprintf("SELECT %d - count(*) FROM sync_accounts", accounts),
	} {
		if got := d.number(query); got != accounts {
			r.t.Errorf("%s: %d, not %d", what, got, accounts)
		}
	}
}

// secretFile is a file with credentials.
func secretFile(t *testing.T, credentials []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	writeFile(t, name, string(credentials))
	return name
}

// googleArgs starts a server that shows a directory, and returns what connects a client to it
// and where it is.
func googleArgs(t *testing.T, office *directorytest.Directory) (settings, endpoints []string) {
	vendor := directorytest.NewGoogle(office)
	t.Cleanup(vendor.Close)
	var s directory.GoogleSettings
	if err := json.Unmarshal(vendor.Settings(""), &s); err != nil {
		t.Fatal(err)
	}
	return []string{"--admin=" + s.Admin, "--credentials-file=" + secretFile(t, vendor.Credentials())},
		[]string{"--google-url=" + vendor.Endpoints().Google}
}

// TestReportOutlivesKill kills the service in the middle of a report, when the file
// is in the store and the report is about to be marked: after a restart it is made
// once, with one file.
func TestReportOutlivesKill(t *testing.T) {
	t.Parallel()
	s := newSends(t)
	first := process(t, s.dir, "--release=latest")
	client := s.newClient(first)
	path := "/v2/clients/" + client + "/reports"

	d := s.look()
	d.exec("BEGIN")
	d.exec("LOCK TABLE events IN EXCLUSIVE MODE") // marking it writes an event
	id := into[identified](first.do("POST", path, s.key, fields{"type": "risk_overview"}).want(http.StatusCreated)).ID
	// The publisher of events may wait for the table too, before the report is claimed.
	for d.number(`SELECT count(*) FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
		WHERE l.relation = 'events'::regclass AND NOT l.granted AND a.query LIKE '%INSERT INTO events%'`) == 0 {
		d.exec("SELECT pg_stat_clear_snapshot()")
	}
	first.kill()
	d.exec("ROLLBACK")
	d.hangUp()
	d.until(1, "SELECT count(*) FROM reports WHERE status = 'pending'")
	d.exec("UPDATE reports SET due_at = due_at - interval '3 minutes' WHERE lease IS NOT NULL") // for the test not to wait

	second := process(t, s.dir, "--release=latest")
	d.until(1, "SELECT count(*) FROM reports WHERE status = 'ready'")
	d.until(1, "SELECT count(*) FROM "+allEvents+" WHERE type = 'report.ready'")
	if tries := d.number("SELECT tries FROM reports"); tries != 1 {
		t.Errorf("%d tries failed, not the one of the dead process", tries)
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, "reports", "*", "*")); len(files) != 1 {
		t.Errorf("the files are %v", files)
	}
	link := into[struct {
		URL string `json:"download_url"`
	}](second.get(path+"/"+id, s.key).want(http.StatusOK)).URL
	answer, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the file is answered %d", answer.StatusCode)
	}
	second.finish()
}

// TestFrameworkOutlivesKill kills the service while a large audience is given the
// courses of a framework, batch after batch: after a restart everybody has each
// course once, for one reason.
func TestFrameworkOutlivesKill(t *testing.T) {
	t.Parallel()
	const users = domain.AssignAtOnce + 2000
	s := newSends(t)
	first := process(t, s.dir, "--release=latest")
	client := s.newClient(first)
	path := "/v2/clients/" + client
	first.do("POST", path+"/users", s.key, fields{"email": "ann@example.com"}).want(http.StatusCreated)

	d := s.look()
	d.exec(`INSERT INTO users SELECT (json_populate_record(u, json_build_object(
		'id', gen_random_uuid(), 'email', 'user' || n || '@example.com', 'next_due_on', NULL, 'next_course_id', NULL))).*
		FROM users AS u, generate_series(2, ` + strconv.Itoa(users) + `) AS n`)
	d.exec("UPDATE clients SET users_active = " + strconv.Itoa(users))
	d.exec("BEGIN")
	// Batches pass over who is locked: they wait.
	d.exec("SELECT FROM users WHERE id >= (SELECT id FROM users ORDER BY id OFFSET 6000 LIMIT 1) FOR UPDATE")
	first.do("POST", path+"/frameworks", s.key, fields{"framework_id": "cis_v8"}).want(http.StatusCreated)
	d.until(1, "SELECT count(*) FROM (SELECT FROM assignments WHERE frameworks <> '{}' LIMIT 1) AS a")
	first.kill()
	d.hangUp() // before the locks go: what the dead had begun is not done
	d.exec("ROLLBACK")
	for what, query := range map[string]string{
		"given":   "SELECT count(*) FROM (SELECT FROM assignments WHERE frameworks <> '{}' LIMIT 1) AS a",
		"waiting": "SELECT count(*) FROM (SELECT FROM waiting_assignments LIMIT 1) AS w",
	} {
		if d.number(query) != 1 {
			t.Errorf("the kill finds nothing %s", what)
		}
	}

	second := process(t, s.dir, "--release=latest")
	d.until(0, "SELECT count(*) FROM waiting_assignments")
	const asked = "course_id IN (SELECT course_id FROM framework_courses WHERE framework_id = 'cis_v8' AND role IS NULL)"
	courses := d.number("SELECT count(*) FROM framework_courses WHERE framework_id = 'cis_v8' AND role IS NULL")
	for what, want := range map[string][2]any{
		"given": {courses * users, "SELECT count(*) FROM assignments WHERE " + asked + ` AND round = 1 AND NOT direct
			AND frameworks = (SELECT array_agg(id) FROM framework_assignments)`},
		"given twice":         {0, "SELECT count(*) - count(DISTINCT (user_id, course_id)) FROM assignments"},
		"given besides":       {0, "SELECT count(*) FROM assignments WHERE NOT from_program AND NOT " + asked},
		"without a next":      {0, "SELECT count(*) FROM users WHERE next_due_on IS NULL OR next_course_id IS NULL"},
		"framework's own":     {1, "SELECT count(*) FROM framework_assignments"},
		"with another reason": {0, "SELECT count(*) FROM assignments WHERE direct OR cardinality(frameworks) > 1"},
	} {
		if got := d.number(want[1].(string)); got != want[0] {
			t.Errorf("%s: %d, not %d", what, got, want[0])
		}
	}
	second.finish()
}
