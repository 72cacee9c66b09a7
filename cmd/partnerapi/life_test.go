package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// runs reports whether a process runs. One that has ended stays in the process
// table, where signals still reach it, until init takes it out: it is a zombie.
func runs(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || !strings.HasPrefix(state, "Z")
}

// oldestClient is the id of the demonstration's first client.
func oldestClient(r *running) string {
	r.t.Helper()
	page := into[struct{ Data []struct{ ID string } }](r.get("/v2/clients?limit=1&sort=created_at", "pk_demo_all").want(http.StatusOK))
	if len(page.Data) != 1 {
		r.t.Fatal("the demonstration has no clients")
	}
	return page.Data[0].ID
}

// tryCommands runs the commands that a demonstration's greeting suggests, and checks what they print.
func tryCommands(t *testing.T, r *running, latest bool) {
	t.Helper()
	_, list, _ := strings.Cut(r.out.String(), "\nTry:\n")
	commands := strings.Split(strings.TrimSpace(list), "\n")
	wanted := []string{`"data":[{"id":"cli_`}
	if older() {
		wanted = append(wanted, `"items":[{"id":"`)
	}
	if older() && latest {
		wanted = append(wanted, "GET /v1/clients")
	}
	if latest {
		wanted = append(wanted, "") // the bridge for agents prints nothing if nothing is sent
	}
	if len(commands) != len(wanted) {
		t.Fatalf("%d commands:\n%s", len(commands), r.out)
	}
	s, err := newShell(t.TempDir(), r.address)
	if err != nil {
		t.Fatal(err)
	}
	s.address = r.address
	for i, line := range commands {
		if got, err := s.run(line); err != nil || !strings.Contains(got, wanted[i]) {
			t.Errorf("%s\nprints %s (%v), without %s", line, got, err, wanted[i])
		}
	}
}

// TestFinishesRequests stops a service while a request is in progress. Before that a second one
// names its address.
func TestFinishesRequests(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	// Without background work, whose statements would wait for the transaction too.
	r := serving(t, flag, "--demo", "--release=latest", "--no-work")
	dir, taken := filepath.Join(t.TempDir(), "data"), strings.TrimPrefix(r.address, "http://")
	refused(t, 1, []string{"serve", "--data-dir=" + dir, "--listen=" + taken}, taken, "address already in use", "--listen")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it touched the data: %v", err)
	}

	d := opened(t, flag)
	tx, err := d.SQL().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	// The request waits for this transaction to end.
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE clients IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	answered := make(chan response, 1)
	go func() {
		got, err := r.client.try("POST", "/v2/clients", "pk_demo_all", fields{"name": "Late"})
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	for waiting := 0; waiting == 0; {
		if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database
			WHERE NOT l.granted AND l.relation = 'clients'::regclass AND d.datname = current_database()`).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	r.stop()
	if r.logs.await(stopping, r.ended) == nil {
		t.Fatalf("it does not say that it stops:\n%s", r.logs)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.status != http.StatusCreated {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	r.finish()
}

var stopping = regexp.MustCompile("finishing the requests in progress")
