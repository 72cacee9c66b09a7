//go:build slow

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/directory"
	"partnerapi/platform/directory/directorytest"
)

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
	client := into[identified](first.do("POST", "/v2/clients", s.key, fields{"name": "Acme"}).want(http.StatusCreated)).ID
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
	if err := syscall.Kill(postmaster(t, s.dir), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}

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
