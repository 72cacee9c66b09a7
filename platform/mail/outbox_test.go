package mail_test

import (
	"bytes"
	"errors"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/platform/mail"
)

// TestOutboxTidies: a start removes what a process that died left unfinished,
// and nothing that another may be writing, or that was sent.
func TestOutboxTidies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		".writing-old": 2 * time.Hour, ".writing-new": time.Minute, "old.eml": 100 * time.Hour,
	} {
		file := filepath.Join(dir, name)
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	outbox := must(mail.NewOutbox(dir))
	for range 2 { // the second replaces the first
		if err := outbox.Send(t.Context(), message("ada@example.test")); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if want := []string{".writing-new", "0190-test.eml", "old.eml"}; err != nil || !slices.Equal(names, want) {
		t.Errorf("%v, %v", names, err)
	}
	if send(t, outbox, "no address") != "refused" {
		t.Error("an address that is none is not refused")
	}
}

// TestHeaderLines: a header begins in its first line, whatever its text, and no line is
// longer than RFC 2047 and RFC 5322 allow.
func TestHeaderLines(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Welcome", "Réinitialisez le mot de passe", strings.Repeat("é", 200), "安全培训：您有一门课程即将到期，请尽快完成", "a " + strings.Repeat("long ", 40) + "end",
		strings.Repeat("unbroken", 12), "📬" + strings.Repeat("x", 60) + "📬 end", "=?not?=",
	} {
		dir := t.TempDir()
		outbox := must(mail.NewOutbox(dir))
		m := message("ada@example.test")
		m.Subject, m.From = text, netmail.Address{Name: text, Address: "training@example.test"}
		if err := outbox.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		data := must(os.ReadFile(filepath.Join(dir, m.ID+".eml")))
		head, _, _ := bytes.Cut(data, []byte("\r\n\r\n"))
		for line := range strings.SplitSeq(string(head), "\r\n") {
			if strings.HasSuffix(strings.TrimSpace(line), ":") || strings.TrimSpace(line) == "" || len(line) > 78 {
				t.Errorf("%q has the line %q", text, line)
			}
		}
		p := parse(t, data)
		from, err := netmail.ParseAddress(p.Get("From"))
		if err != nil || from.Name != text || from.Address != m.From.Address || p.subject != text {
			t.Errorf("%q: the subject is %q, the sender %v, %v", text, p.subject, from, err)
		}
	}
}
