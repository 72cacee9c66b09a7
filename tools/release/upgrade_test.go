package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// first is the commit of 1.0.0.
const first = "a17a07f1c1fc42de3764ca47a80eb17167929ddd"

// TestUpgradeUnderLoad verifies that two processes of 1.0.0, from its own archive, are replaced one by one by this
// version, as the handbook says, while callers use old and new processes: no request fails, and users that were created on
// the way, by either version of the program, are there with their events. Afterwards 1.0.0 refuses the database.
func TestUpgradeUnderLoad(t *testing.T) {
	data := t.TempDir()
	before := process{program: "./partnerapi", folder: unpackedFirst(t), env: append(usual(t), "PARTNERAPI_DATA_DIR="+data)}
	after := before
	after.folder = unpackedHere(t)

	serve := []string{"serve", "--listen=127.0.0.1:0", "--release=latest"}
	old := []*running{before.start(t, append(serve, "--demo")...), before.start(t, append(serve, "--no-work")...)}
	u := &load{keys: keysOf(t, before), emails: map[string]bool{}}
	for _, s := range old {
		u.add(s)
	}
	u.during(t, func() { after.run(t, "migrate") })
	for _, s := range old {
		u.during(t, func() { u.add(after.start(t, append(serve, "--no-migrate")...)) })
		u.during(t, func() { u.remove(s); s.stop(t) })
	}

	if said := after.run(t, "doctor", "--recount"); strings.Contains(said, "was (") {
		t.Errorf("stored counts were wrong: %s", said)
	}
	u.checkEvents(t)
	if said, err := before.command("serve", "--listen=127.0.0.1:0").CombinedOutput(); err == nil || !strings.Contains(string(said), "newer version") {
		t.Errorf("1.0.0 serves tables of this version (%v): %s", err, said)
	}
}

// unpackedFirst builds the archive of 1.0.0 from its commit, without the licenses of its parts, and returns the folder of
// its contents.
func unpackedFirst(t *testing.T) string {
	t.Helper()
	sources := filepath.Join(t.TempDir(), "sources")
	_, err := output(exec.Command("git", "clone", "--quiet", "--shared", "--no-checkout", root, sources))
	check(t, err)
	_, err = output(exec.Command("git", "-C", sources, "checkout", "--quiet", first))
	check(t, err)
	r := &release{version: "v1.0.0", out: t.TempDir(), progress: t.Output(), binaries: map[target][]byte{}}
	check(t, r.prepare(t.Context(), sources, false))
	r.binaries[here], err = r.compile(t.Context(), here)
	check(t, err)
	name := "partnerapi_1.0.0_" + here.os + "_" + here.arch
	check(t, r.write(name+".tar.gz", func(w io.Writer) error { return r.writeArchive(w, here) }))
	return unpackedArchive(t, filepath.Join(r.out, name))
}

// unpackedHere returns the folder of the contents of this version's archive.
func unpackedHere(t *testing.T) string {
	t.Helper()
	return unpackedArchive(t, filepath.Join(made(t).out, prefix+here.os+"_"+here.arch))
}

// unpackedArchive unpacks NAME.tar.gz, and returns the folder of its contents.
func unpackedArchive(t *testing.T, name string) string {
	t.Helper()
	folder := t.TempDir()
	_, err := output(exec.Command("tar", "--extract", "--gzip", "--directory="+folder, "--file="+name+".tar.gz"))
	check(t, err)
	return filepath.Join(folder, filepath.Base(name))
}

// keysOf creates API keys, each of which may make 600 requests a minute.
func keysOf(t *testing.T, p process) (keys []string) {
	t.Helper()
	for n := range 12 {
		key := p.run(t, "keys", "create", "--partner=Northlight Demo MSP", fmt.Sprintf("--name=load %d", n), "--clients=all", "--scopes=read,write")
		keys = append(keys, strings.TrimSpace(key))
	}
	return keys
}

// load sends requests to processes that come and go.
type load struct {
	keys []string
	sent atomic.Int64

	use       sync.RWMutex // held for reading by a request, and for writing by a change of addresses
	addresses []string

	mu     sync.Mutex
	emails map[string]bool // of users that were created
}

// add adds a process to those that receive requests.
func (u *load) add(s *running) {
	u.use.Lock()
	defer u.use.Unlock()
	u.addresses = append(u.addresses, s.address)
}

// remove waits for the requests in progress, and removes a process.
func (u *load) remove(s *running) {
	u.use.Lock()
	defer u.use.Unlock()
	u.addresses = slices.DeleteFunc(u.addresses, func(address string) bool { return address == s.address })
}

// during sends requests from three callers, at least three rounds each, until step returns.
func (u *load) during(t *testing.T, step func()) {
	t.Helper()
	done := make(chan struct{})
	var callers sync.WaitGroup
	defer callers.Wait()
	defer close(done)
	for range 3 {
		callers.Go(func() {
			for n, ended := 0, false; n < 3 || !ended; n++ {
				if err := u.round(); err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					ended = true
				default:
				}
			}
		})
	}
	step()
}

// round reads through each version of the API, creates a user and changes it.
func (u *load) round() error {
	return errors.Join(
		u.v2Round(),
		u.v1Round(), // v1-line
	)
}

func (u *load) v2Round() error {
	var clients struct {
		Data []struct{ ID string }
	}
	if err := u.send("GET", "/v2/clients?limit=3", nil, &clients); err != nil {
		return err
	}
	if len(clients.Data) == 0 {
		return errors.New("there are no clients")
	}
	client := "/v2/clients/" + clients.Data[0].ID
	user, err := u.create(client + "/users")
	return errors.Join(err,
		u.send("PATCH", "/v2/users/"+user, map[string]any{"job_title": "Accountant"}, nil),
		u.send("GET", "/v2/users/"+user, nil, nil), u.send("GET", client, nil, nil), u.send("GET", client+"/risk", nil, nil),
		u.send("GET", client+"/users?limit=20&sort=-created_at", nil, nil),
		u.send("GET", client+"/phishing/results?limit=20", nil, nil), u.send("GET", "/v2/events?limit=20", nil, nil),
	)
}

// create creates a user of a client, and returns its ID.
func (u *load) create(path string) (id string, err error) {
	email := fmt.Sprintf("upgrade-%d@example.com", u.sent.Add(1))
	var user struct{ ID string }
	err = u.send("POST", path, map[string]any{"email": email, "first_name": "Ada", "last_name": "Upgrade"}, &user)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.emails[email] = true
	return user.ID, err
}

// send sends a request to one of the processes, by a key with budget left, and decodes the response. Any status but a
// success is an error.
func (u *load) send(method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if in == nil {
		body = nil
	}
	for {
		status, text, err := u.try(method, path, body)
		switch {
		case err != nil:
			return err
		case status == http.StatusTooManyRequests: // the key's 600 a minute; the next one may have some left
			continue
		case status >= 300:
			return fmt.Errorf("%s %s: got %d %s", method, path, status, text)
		case out == nil:
			return nil
		}
		return json.Unmarshal(text, out)
	}
}

// try sends a request once.
func (u *load) try(method, path string, body []byte) (int, []byte, error) {
	u.use.RLock()
	defer u.use.RUnlock()
	n := int(u.sent.Add(1))
	request, err := http.NewRequest(method, "http://"+u.addresses[n%len(u.addresses)]+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("X-API-Key", u.keys[n%len(u.keys)])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, text, errors.Join(err, response.Body.Close())
}

// checkEvents reads the events from the beginning until each created user has had its own, and no user two.
func (u *load) checkEvents(t *testing.T) {
	t.Helper()
	found := map[string]int{}
	for cursor := ""; len(found) < len(u.emails); {
		var page struct {
			Data []struct {
				Data struct{ Email string }
			}
			Page struct {
				Next string `json:"next_cursor"`
			}
		}
		check(t, u.send("GET", "/v2/events?types=user.created&limit=500&cursor="+url.QueryEscape(cursor), nil, &page))
		for _, e := range page.Data {
			if u.emails[e.Data.Email] {
				found[e.Data.Email]++
			}
		}
		cursor = page.Page.Next
	}
	for email, n := range found {
		if n != 1 {
			t.Errorf("%s has %d events of its creation", email, n)
		}
	}
	t.Logf("%d requests, %d users", u.sent.Load(), len(found))
}
