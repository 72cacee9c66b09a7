package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"partnerapi/docs"
	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// TestReceivers runs the complete receivers of the guide to webhooks, and posts deliveries to them as the service does.
// They handle each event once, also after a restart, and reject what the service did not sign. The receiver with Express
// needs the packages of tools/npm.
func TestReceivers(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Logf("node %v", errMissing)
		return
	}
	endpoints, err := webhook.NewEndpoints(webhook.Options{Forward: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(endpoints.Close)
	for _, program := range []string{"http.mjs", "express.mjs"} {
		dir := receiverFiles(t)
		if err := linkExpress(dir); program == "express.mjs" && err != nil {
			t.Logf("express %v: %v", errMissing, err)
			continue
		}
		r := receiver{t: t, node: node, dir: dir, program: program, secret: domain.NewWebhookSecret(), endpoints: endpoints}
		r.start()
		r.post(r.secret, "evt_1", `{ "id": "evt_1", "type": "ping", "data": {"name": "Énergie"} }`, http.StatusNoContent)
		r.prints("event ping evt_1")
		r.post(r.secret, "evt_1", `{ "id": "evt_1", "type": "ping", "data": {"name": "Énergie"} }`, http.StatusNoContent)
		r.post(domain.NewWebhookSecret(), "evt_2", `{"id":"evt_2","type":"forged"}`, http.StatusUnauthorized)
		r.postAt(time.Now().Add(-6*time.Minute), `{"id":"evt_3","type":"replayed"}`, http.StatusUnauthorized)
		r.post(r.secret, "evt_4", `{"id":"evt_4","type":"user.created"}`, http.StatusNoContent)
		r.prints("event user.created evt_4")
		r.post(r.secret, "evt_4", `{"id":"evt_4","type":"user.created"}`, http.StatusNoContent) // its work is done before the response
		r.stop()

		// A receiver that was killed between the response and the work continues with what it stored.
		writeFile(t, filepath.Join(dir, "inbox", "evt_5"), `{"id":"evt_5","type":"user.updated"}`)
		r.start("event user.updated evt_5")
		r.post(r.secret, "evt_4", `{"id":"evt_4","type":"user.created"}`, http.StatusNoContent)
		r.post(r.secret, "evt_6", `{"id":"evt_6","type":"user.deactivated"}`, http.StatusNoContent)
		r.prints("event user.deactivated evt_6")
		r.stop()
	}
}

// receiverFiles writes the receiver's programs to a folder.
func receiverFiles(t *testing.T) string {
	t.Helper()
	source, err := fs.ReadFile(docs.Guides(), "webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, block := range fencedBlock.FindAllStringSubmatch(string(source), -1) {
		found := regexp.MustCompile(`^// (\w+\.mjs)\n`).FindStringSubmatch(block[2])
		switch {
		case block[1] == "js" && strings.Contains(block[2], "export function verify("):
			writeFile(t, filepath.Join(dir, "verify.mjs"), block[2])
		case block[1] == "js" && found != nil:
			writeFile(t, filepath.Join(dir, found[1]), block[2])
		}
	}
	return dir
}

// linkExpress gives the programs of a folder the packages of tools/npm.
func linkExpress(dir string) error {
	modules, err := filepath.Abs(filepath.Join(root, "tools", "npm", "node_modules"))
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(modules, "express", "package.json")); err != nil {
		return err
	}
	return os.Symlink(modules, filepath.Join(dir, "node_modules"))
}

// receiver is a program that receives deliveries.
type receiver struct {
	t                          *testing.T
	node, dir, program, secret string
	endpoints                  *webhook.Endpoints
	cmd                        *exec.Cmd
	lines                      *bufio.Scanner
	url                        string
}

// start starts the program on a free port. It prints lines before it listens.
func (r *receiver) start(before ...string) {
	r.t.Helper()
	r.cmd = exec.CommandContext(r.t.Context(), r.node, r.program)
	r.cmd.Dir, r.cmd.Stderr = r.dir, r.t.Output()
	r.cmd.Env = append(os.Environ(), "PORT=0", "WEBHOOK_SECRET="+r.secret)
	out, err := r.cmd.StdoutPipe()
	if err = errors.Join(err, r.cmd.Start()); err != nil {
		r.t.Fatal(err)
	}
	r.lines = bufio.NewScanner(out)
	for _, want := range before {
		r.prints(want)
	}
	r.lines.Scan()
	port, ok := strings.CutPrefix(r.lines.Text(), "listening on port ")
	if !ok {
		r.t.Fatalf("%s prints %q", r.program, r.lines.Text())
	}
	r.url = "http://127.0.0.1:" + port + "/hooks"
}

// stop kills the program.
func (r *receiver) stop() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}

// prints waits for the program's next line.
func (r *receiver) prints(want string) {
	r.t.Helper()
	if r.lines.Scan(); r.lines.Text() != want {
		r.t.Fatalf("%s prints %q, want %q", r.program, r.lines.Text(), want)
	}
}

// post sends a delivery as the service does.
func (r *receiver) post(secret, id, body string, want int) {
	r.t.Helper()
	if try := r.endpoints.Send(r.t.Context(), domain.DeliveryMessage{URL: r.url, ID: id, Secrets: []string{secret}, Body: []byte(body)}); try.StatusCode != want {
		r.t.Errorf("%s: got %+v, want status %d", r.program, try, want)
	}
}

// postAt sends a delivery that was signed at a time.
func (r *receiver) postAt(at time.Time, body string, want int) {
	r.t.Helper()
	mac := hmac.New(sha256.New, []byte(r.secret))
	fmt.Fprintf(mac, "%d.%s", at.Unix(), body)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Service-Signature", fmt.Sprintf("t=%d,v1=%s", at.Unix(), hex.EncodeToString(mac.Sum(nil))))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != want {
		r.t.Errorf("%s: got status %d, want %d", r.program, res.StatusCode, want)
	}
}
