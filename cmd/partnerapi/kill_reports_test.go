//go:build slow

package main

import (
	"net/http"
	"path/filepath"
	"testing"
)

// TestReportOutlivesKill kills the service in the middle of a report, when the file
// is in the store and the report is about to be marked: after a restart it is made
// once, with one file.
func TestReportOutlivesKill(t *testing.T) {
	t.Parallel()
	s := newSends(t)
	first := process(t, s.dir, "--release=latest")
	client := into[identified](first.do("POST", "/v2/clients", s.key, fields{"name": "Acme"}).want(http.StatusCreated)).ID
	path := "/v2/clients/" + client + "/reports"

	d := s.look()
	d.exec("BEGIN")
	d.exec("LOCK TABLE events IN EXCLUSIVE MODE") // marking it writes an event
	id := into[identified](first.do("POST", path, s.key, fields{"type": "risk_overview"}).want(http.StatusCreated)).ID
	d.until(1, "SELECT count(*) FROM pg_locks WHERE relation = 'events'::regclass AND NOT granted")
	first.kill()
	d.exec("ROLLBACK")
	d.hangUp()
	d.until(1, "SELECT count(*) FROM reports WHERE status = 'pending'")
	d.exec("UPDATE river_job SET attempted_at = attempted_at - interval '3 minutes' WHERE state = 'running'") // for the test not to wait

	second := process(t, s.dir, "--release=latest")
	d.until(1, "SELECT count(*) FROM reports WHERE status = 'ready'")
	d.until(1, "SELECT count(*) FROM "+allEvents+" WHERE type = 'report.ready'")
	d.until(1, "SELECT count(*) FROM river_job WHERE kind = 'report' AND state = 'completed' AND attempt = 2")
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
