//go:build slow

package main

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestLifeOfADemonstration is what somebody does who tries the service: start it on nothing,
// try what it says, use commands beside it, and come back. Its database is started again
// when it dies, outlives the first of two services, and ends with the last.
func TestLifeOfADemonstration(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	first := process(t, dir, "--demo")
	said := first.out.String()
	for _, key := range []string{"pk_demo_all", "pk_demo_readonly", "pk_demo_subset", "pk_demo_other"} {
		says(t, said, "\n  "+key+" ")
		first.get("/v2/clients?limit=1", key).want(http.StatusOK)
	}
	tryCommands(t, first, false)
	client := "/v2/clients/" + oldestClient(first)
	before := first.get(client, "pk_demo_all").want(http.StatusOK).body
	pid := postmaster(t, dir)
	must(t, "partners", "create", "Acme", "--data-dir="+dir)
	says(t, must(t, "partners", "list", "--data-dir="+dir), "Acme")
	if pid == 0 || postmaster(t, dir) != pid {
		t.Fatal("a command that joined stopped the server")
	}

	killServer(t, dir)
	if first.logs.await(regexp.MustCompile("PostgreSQL was restarted"), first.ended) == nil {
		t.Fatalf("it was not started again:\n%s", first.logs)
	}
	if postmaster(t, dir) == pid {
		t.Error("the server is the one that was killed")
	}
	pid = postmaster(t, dir)
	// Each connection that broke may be noticed by a request.
	await(t, "a request succeeds", func() bool {
		got := first.get(client, "pk_demo_all")
		if got.status != http.StatusOK {
			got.want(http.StatusServiceUnavailable)
		}
		return got.status == http.StatusOK
	})

	second := process(t, dir) // without --demo
	if strings.Contains(second.logs.String(), "creating a database") {
		t.Error("the second start makes the database anew")
	}
	first.finish()
	if postmaster(t, dir) != pid {
		t.Fatal("the first service stopped the server of the second")
	}
	second.get("/v2/clients", "pk_demo_all").want(http.StatusUnauthorized)
	key := strings.TrimSpace(must(t, "keys", "create", "--data-dir="+dir, "--name=mine", "--partner=Northlight Demo MSP", "--clients=all", "--scopes=read"))
	if after := second.get(client, key).want(http.StatusOK).body; string(after) != string(before) {
		t.Errorf("the client was\n%s\nand is\n%s", before, after)
	}
	second.finish()
	if runs(pid) || postmaster(t, dir) != 0 {
		t.Errorf("the database (process %d) runs on", pid)
	}
	must(t, "keys", "list", "--data-dir="+dir) // starts it, and stops it again
	if postmaster(t, dir) != 0 {
		t.Error("a command alone left the server running")
	}
}
