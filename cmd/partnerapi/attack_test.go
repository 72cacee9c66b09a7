//go:build slow

package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/domain"
)

// target is a service in a process of its own, with keys of three partners.
type target struct {
	*running
	t    *testing.T
	keys [3][]string
	gets int // that the third partner sent
}

// newTarget starts a service whose first two partners have the given number of keys each.
func newTarget(t *testing.T, keys int) *target {
	t.Helper()
	flag := databaseFlag(t)
	d := opened(t, flag)
	x := &target{t: t}
	for n, name := range []string{"First", "Second", "Third"} {
		partner, err := d.InsertPartner(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for range []int{keys, keys, 40}[n] {
			key, err := d.CreateKey(t.Context(), db.NewKey{Partner: partner, Name: "attack", Scopes: []domain.Scope{domain.Read, domain.Write}})
			if err != nil {
				t.Fatal(err)
			}
			x.keys[n] = append(x.keys[n], key)
		}
	}
	x.running = process(t, t.TempDir(), flag, "--release=latest")
	return x
}

// get sends a read with one of the third partner's keys and wants it answered.
func (x *target) get() {
	x.gets++
	r, err := x.client.try("GET", "/v2/clients?limit=1", x.keys[2][x.gets%len(x.keys[2])], nil)
	if err != nil || r.status != http.StatusOK {
		x.t.Errorf("another partner's read answers %d %s (%v)", r.status, r.body, err)
	}
}

// peak is the most memory that the process held, in MB.
func (x *target) peak() int {
	x.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", x.cmd.Process.Pid))
	if err != nil {
		x.t.Skip("the system does not tell what a process holds: ", err)
	}
	held, err := strconv.Atoi(regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindStringSubmatch(string(text))[1])
	if err != nil {
		x.t.Fatal(err)
	}
	return held >> 10
}

// TestLargeBodies: 400 bodies of 1 MiB at a time, of one key and of many, leave the
// service below 300 MB, and others their answers.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	padded := func(start, end string) string { return start + strings.Repeat("x", size-len(start)-len(end)) + end }
	ids := `{"kind":"client","ids":[` + strings.TrimSuffix(strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 1000), ",") + `]}`
	attacks := map[string]string{
		"POST /mcp":        padded(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"`, `"}}`),
		"POST /v2/clients": padded(`{"name":"`, `"}`),
	}
	if older() {
		attacks["POST /v1/ids/exchange"] = ids
	}
	for _, request := range slices.Sorted(maps.Keys(attacks)) {
		for _, many := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s many=%v", request, many), func(t *testing.T) {
				x := newTarget(t, 20)
				x.t = t
				keys := x.keys[0][:1]
				if many {
					keys = slices.Concat(x.keys[0], x.keys[1])
				}
				ended, taken := x.flood(request, keys, attacks[request])
				for under := true; under; {
					x.get()
					select {
					case <-ended:
						under = false
					default:
					}
				}
				if held := x.peak(); held >= 300 || taken.Load() == 0 {
					t.Errorf("the process held %d MB, and took %d bodies", held, taken.Load())
				}
			})
		}
	}
}

// flood sends a body on 400 connections at a time, up to 5 times on each, and counts those that were read.
func (x *target) flood(request string, keys []string, body string) (ended chan struct{}, taken *atomic.Int64) {
	ended, taken = make(chan struct{}), new(atomic.Int64)
	var group sync.WaitGroup
	var next atomic.Int64
	for range 400 {
		group.Go(func() {
			for range dbtest.Times(5) {
				switch x.sendRaw(request, keys[int(next.Add(1))%len(keys)], body) {
				case http.StatusOK, http.StatusBadRequest:
					taken.Add(1)
				}
			}
		})
	}
	go func() {
		group.Wait()
		close(ended)
	}()
	return ended, taken
}

// sendRaw sends a request on a connection of its own, and returns its status; 0 where that was cut off.
func (x *target) sendRaw(request, key, body string) int {
	conn, err := net.Dial("tcp", strings.TrimPrefix(x.address, "http://"))
	if err != nil {
		x.t.Error(err)
		return 0
	}
	defer conn.Close()
	go func() {
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nAccept: application/json, text/event-stream\r\n"+
			"Content-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", request, key, len(body))
		_, _ = io.WriteString(conn, body)
	}()
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}
