package mail_test

import (
	"errors"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"

	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

func message(to string) mail.Message {
	return mail.Message{
		ID: "0190-test", From: netmail.Address{Name: "Sécurité", Address: "no-reply@partner.test"}, To: to,
		Subject: "Über alles", Text: "Hello\n.\nend", HTML: "<p>Hello</p>", Language: domain.English, At: v2test.Noon,
	}
}

func open(t testing.TB, url string) mail.Sender {
	t.Helper()
	sender := must(mail.Open(url, t.TempDir()))
	t.Cleanup(func() { _ = sender.Close() })
	return sender
}

// send sends a mail and says how that went: "sent", "refused", "perhaps sent" or "later".
func send(t testing.TB, sender mail.Sender, to string) string {
	t.Helper()
	err := sender.Send(t.Context(), message(to))
	var refused *mail.RefusedError
	var maybe *mail.MaybeSentError
	switch {
	case err == nil:
		return "sent"
	case errors.As(err, &refused):
		return "refused"
	case errors.As(err, &maybe):
		return "perhaps sent"
	}
	t.Log(err)
	return "later"
}

func TestEncryptionAndAuthentication(t *testing.T) {
	t.Parallel()
	config, ca := certificate(t)
	encrypted := startServer(t, "", func(s *server) { s.smtp.TLSConfig, s.user = config, "relay" })
	plain := startServer(t, "", func(s *server) { s.user = "relay" })
	implicit := startServer(t, "", func(s *server) { s.user, s.implicit = "relay", config })
	open1 := startServer(t, "", nil)
	for _, c := range []struct {
		name, url, want string
		server          *server
	}{
		{"required", "smtp://relay:secret@" + encrypted.address + "?starttls=required&ca=" + ca, "sent", encrypted},
		{"offered", "smtp://relay:secret@" + encrypted.address + "?ca=" + ca, "sent", encrypted},
		{"unknown certificate", "smtp://relay:secret@" + encrypted.address, "later", encrypted},
		{"wrong password", "smtp://relay:wrong@" + encrypted.address + "?ca=" + ca, "later", encrypted},
		{"no password", "smtp://" + encrypted.address + "?ca=" + ca, "later", encrypted},
		{"never", "smtp://relay:secret@" + plain.address + "?starttls=never", "sent", plain},
		{"not offered", "smtp://relay:secret@" + plain.address, "sent", plain},
		{"required and not offered", open1.url() + "?starttls=required", "later", open1},
		{"authentication not offered", "smtp://relay:secret@" + open1.address, "later", open1},
		{"from the first byte", "smtps://relay:secret@" + implicit.address + "?ca=" + ca, "sent", implicit},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(c.server.all())
			if got := send(t, open(t, c.url), "a@example.test"); got != c.want {
				t.Fatalf("%s, not %s", got, c.want)
			}
			mails := c.server.all()[before:]
			if c.want != "sent" {
				if len(mails) != 0 {
					t.Errorf("the server took %d mails", len(mails))
				}
				return
			}
			if len(mails) != 1 || mails[0].user != "relay" || mails[0].encrypted != (c.server != plain) {
				t.Errorf("the server took %+v", mails)
			}
		})
	}
}

// TestConnections: one connection carries many mails, its end is no loss, and
// there are never more than allowed.
func TestConnections(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", nil)
	sender := open(t, s.url()+"?connections=3")
	for range 5 {
		if got := send(t, sender, "a@example.test"); got != "sent" {
			t.Fatal(got)
		}
	}
	if s.sessions != 1 {
		t.Errorf("%d connections for 5 mails", s.sessions)
	}
	_ = s.smtp.Close()
	again := startServer(t, s.address, nil)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if got := send(t, sender, "b@example.test"); got != "sent" {
				t.Error(got)
			}
		})
	}
	all.Wait()
	if n := len(again.all()); n != 20 || again.sessions > 3 {
		t.Errorf("%d mails on %d connections", n, again.sessions)
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://h":                       "smtp://",
		"smtp://":                        "no host",
		"smtp://h/path":                  "path",
		"smtp://h:0":                     "port",
		"smtp://h?starttls=perhaps":      "perhaps",
		"smtps://h?starttls=required":    "always encrypted",
		"smtp://h?connections=0":         "number",
		"smtp://h?tls=1":                 "unknown option",
		"smtp://h?ca=/no/such/file":      "no such file",
		"smtp://user:top%secret@h:25":    "is invalid",
		"smtp://user:top secret@h:2 5":   "is invalid",
		"smtp://user:topsecret@h:twenty": "is invalid",
	} {
		_, err := mail.Open(url, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
	}
}
