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
