//go:build slow

package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"partnerapi/domain"
)

// TestNginxRoutes has nginx lead two cells' keys and links to them, also where its table
// is behind.
func TestNginxRoutes(t *testing.T) {
	t.Parallel()
	flags, keys := [2]string{}, [2]string{}
	for i := range flags {
		flags[i] = databaseFlag(t)
		keys[i] = cellOf(t, flags[i], fmt.Sprintf("0%d", i))
	}
	behind := newKey(t, flags[1], "--name=behind", "--clients=all", "--scopes=read,write")
	at, router := behindNginx(t, map[string]string{"papi_01Zk4T8q cell_2": prefix(behind) + " cell_0"})
	for i, path := range []string{"", "/c01"} {
		serving(t, flags[i], "--release=latest", "--listen="+at[i], "--public-url="+router+path,
			fmt.Sprintf("--cell=0%d", i), "--cell-count=4", "--trusted-proxies=127.0.0.1")
	}
	asked := plainCaller(t, router)
	type partner struct{ Name string }
	for key, name := range map[string]string{keys[0]: "Partner of 00", keys[1]: "Partner of 01", behind: "Partner of 01"} {
		if got := into[partner](asked.do("GET", "/v2/partner", key, nil).want(http.StatusOK)); got.Name != name {
			t.Errorf("%s leads to %s", prefix(key), got.Name)
		}
		answer := asked.do("POST", "/mcp", "", fields{"jsonrpc": "2.0", "id": 1, "method": "ping"}, "Authorization", "bearer "+key,
			"Origin", router, "Content-Type", "application/json", "Accept", "application/json, text/event-stream").want(http.StatusOK)
		if !strings.Contains(string(answer.body), `"result"`) {
			t.Errorf("MCP answers %s", answer.body)
		}
		asked.do("POST", "/v2/clients", key, fields{"name": "Client of " + prefix(key)}).want(http.StatusCreated)
	}
	asked.do("GET", "/v2/clients", "", nil).want(http.StatusUnauthorized)
	unlisted, err := domain.NewAPIKey(domain.Cell{Number: 3, Count: 4})
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{"/v2/clients"}
	if older() {
		paths = append(paths, "/v1/clients")
	}
	for _, path := range paths {
		got := asked.do("GET", path, unlisted, nil).want(http.StatusMisdirectedRequest)
		if got.header.Get("X-Cell") != "03" || !strings.Contains(string(got.body), "misdirected") {
			t.Errorf("a key of a cell without a line: %s: %v %s", path, got.header, got.body)
		}
	}
	asked.do("GET", "/c01/reports/none", "", nil).want(http.StatusForbidden)
	asked.do("GET", "/reports/none", "", nil).want(http.StatusForbidden)
	for _, path := range []string{"/c09/reports/none", "/metrics", "/c01/metrics"} {
		if got := asked.do("GET", path, "", nil).want(http.StatusNotFound); !strings.Contains(string(got.body), "nginx") {
			t.Errorf("%s leads to a cell: %s", path, got.body)
		}
	}
}
