package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/docs"
)

// TestListenPrograms runs the programs of the guide to events on one's own machine until each has posted an event
// with a valid signature, and holds them to 50 lines.
func TestListenPrograms(t *testing.T) {
	t.Parallel()
	source, err := fs.ReadFile(docs.Guides(), "listen.md")
	if err != nil {
		t.Fatal(err)
	}
	url, ran := dbtest.URL(t, guideSchema), 0
	for _, e := range programsOf("listen.md", string(source)) {
		ran++
		t.Run(e.interpreter, func(t *testing.T) { forwards(t, guideService(t, url, ""), e) })
	}
	if ran != 2 {
		t.Errorf("the guide has %d programs", ran)
	}
}

// forwards runs a program that forwards events.
func forwards(t *testing.T, address string, e example) {
	interpreter, err := exec.LookPath(e.interpreter)
	if err != nil {
		t.Logf("%s %v", e.interpreter, errMissing)
		return
	}
	if lines := strings.Count(e.script, "\n"); lines > 50 {
		t.Errorf("the program has %d lines", lines)
	}
	type post struct{ signature, id, body string }
	posts := make(chan post, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posts <- post{r.Header.Get("X-Service-Signature"), r.Header.Get("Webhook-Id"), string(body)}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(receiver.Close)

	s := shell{base: guideBase, address: address, dir: t.TempDir()}
	file, err := s.save(e.interpreter, strings.ReplaceAll(e.script, "http://127.0.0.1:3000", receiver.URL))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), interpreter, file)
	cmd.Dir = s.dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	printed := bufio.NewScanner(out)
	printed.Scan() // the cursor was read
	secret, ok := strings.CutPrefix(printed.Text(), "secret ")
	if !ok {
		t.Fatalf("the program prints %s", printed.Text())
	}

	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/v2/clients", strings.NewReader(`{"name":"Of `+e.interpreter+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", "pk_demo_all")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	got := <-posts
	stamp, sign, _ := strings.Cut(got.signature, ",v1=")
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, strings.TrimPrefix(stamp, "t=")+"."+got.body)
	if sign != hex.EncodeToString(mac.Sum(nil)) || !strings.Contains(got.body, "client.created") {
		t.Errorf("the receiver has %+v", got)
	}
	if printed.Scan(); printed.Text() != "client.created "+got.id+" 204" {
		t.Errorf("the program prints %s", printed.Text())
	}
}

// programsOf finds the programs of a guide that no other test runs.
func programsOf(name, source string) (list []example) {
	ranElsewhere := ranElsewhere[name]
	for block := range strings.SplitSeq(source, "\n```\n") {
		for language, interpreter := range languages {
			if _, code, ok := strings.Cut("\n"+block, "\n```"+language+"\n"); ok && ranElsewhere {
				list = append(list, example{interpreter: interpreter, script: code + "\n"})
			}
		}
	}
	return list
}
