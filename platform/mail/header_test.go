package mail_test

import (
	"bytes"
	netmail "net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/platform/mail"
)

// TestHeaderLines: a header begins in its first line, whatever its text, and no line is
// longer than RFC 2047 and RFC 5322 allow.
func TestHeaderLines(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"Welcome", "Réinitialisez le mot de passe", strings.Repeat("é", 200), "安全培训：您有一门课程即将到期，请尽快完成", "a " + strings.Repeat("long ", 40) + "end",
		strings.Repeat("unbroken", 12), "📬" + strings.Repeat("x", 60) + "📬 end", "=?not?=",
	} {
		dir := t.TempDir()
		outbox, err := mail.NewOutbox(dir)
		if err != nil {
			t.Fatal(err)
		}
		m := message("ada@example.test")
		m.Subject, m.From = text, netmail.Address{Name: text, Address: "training@example.test"}
		if err := outbox.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, m.ID+".eml"))
		if err != nil {
			t.Fatal(err)
		}
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
