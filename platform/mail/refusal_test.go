package mail_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"partnerapi/platform/mail"
)

// TestRefusalKinds: what becomes of a message for each answer of a server. What
// may be the fault of this service's configuration loses no mail. Only a message that
// the server had all of, and did not answer, may have been taken.
func TestRefusalKinds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ at, answer, want string }{
		{"MAIL", "550 5.7.1 not this sender", "later"},
		{"MAIL", "553 5.1.8 no such domain", "later"},
		{"MAIL", "451 4.3.0 wait", "later"},
		{"RCPT", "554 5.7.1 <ada@example.test>: Relay access denied", "later"},
		{"RCPT", "550-5.7.26 this mail is\r\n550 5.7.26 unauthenticated", "later"},
		{"RCPT", "553 5.1.8 sender address rejected: domain not found", "later"},
		{"RCPT", "550 5.1.7 bad sender", "later"},
		{"RCPT", "530 5.5.1 authentication required", "later"},
		{"RCPT", "450 4.7.1 greylisted", "later"},
		{"RCPT", "421 4.7.0 too many errors", "later"},
		{"RCPT", "452 4.2.2 full", "later"},
		{"RCPT", "550 5.1.1 no such user", "refused"},
		{"RCPT", "550 5.1.10 no such user", "refused"},
		{"RCPT", "550 5.1.77 of a status that is longer", "refused"},
		{"RCPT", "552 5.2.2 full for good", "refused"},
		{"RCPT", "550 5.4.1 no access", "refused"},
		{"RCPT", "550 no such user", "refused"},
		{"RCPT", "550 see rule 5.7.1", "refused"},
		{"DATA", "554 5.5.1 no", "refused"},
		{"DATA", "451 4.3.0 wait", "later"},
		{".", "550 5.7.1 content not wanted", "refused"},
		{".", "535 5.7.8 authentication has expired", "later"},
		{".", "452 4.3.1 disk full", "later"},
		{".", "421 4.7.0 enough for today", "later"},
		{".", hangUp, "perhaps sent"},
		{"DATA", hangUp, "later"},
		{"RCPT", hangUp, "later"},
		{"", "HTTP/1.1 400 Bad Request", "later"}, // instead of a greeting
	} {
		t.Run(c.at+" "+c.answer, func(t *testing.T) {
			var refused atomic.Bool
			s := script(t, func(_ int, command string) string {
				if command == c.at && refused.CompareAndSwap(false, true) {
					return c.answer
				}
				return usual(command)
			})
			sender := open(t, s.url())
			if got := send(t, sender, "ada@example.test"); got != c.want {
				t.Errorf("%s, not %s", got, c.want)
			}
			// The next message goes out, on the same connection where that goes on.
			if got := send(t, sender, "ada@example.test"); got != "sent" {
				t.Errorf("the next one: %s", got)
			}
			want := 1
			if c.answer == hangUp || strings.HasPrefix(c.answer, "421") {
				want = 2
			}
			if n := strings.Count(strings.Join(s.commands(), " "), "EHLO"); n != want {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestErrorsNameNoReader: a temporary error, which is logged, shows what the
// server said without the reader's address.
func TestErrorsNameNoReader(t *testing.T) {
	t.Parallel()
	for to, said := range map[string]string{
		"ada@example.test":                "450 4.2.1 <ADA@example.test>: Recipient ada@example.test is busy",
		`"ada lovelace"@example.test`:     `450 4.2.1 <"ada lovelace"@example.test>: busy (ada lovelace@example.test)`,
		"ada@bücher.test":                 "450 4.2.1 <ada@xn--bcher-kva.test>: ada@BÜCHER.test is busy",
		"a.very.long.address@example.com": "450-4.2.1 a.very.long.address@example.com\r\n450 4.2.1 is busy",
	} {
		s := answering(t, "RCPT", said)
		err := open(t, s.url()).Send(t.Context(), message(to))
		if err == nil {
			t.Fatal("sent")
		}
		text := strings.ToLower(err.Error())
		for _, name := range []string{"ada", "lovelace", "bücher", "bcher", "long.address"} {
			if strings.Contains(text, name) {
				t.Errorf("to %s: %v", to, err)
			}
		}
		if !strings.Contains(text, "450 4.2.1") || !strings.Contains(text, "busy") || !strings.Contains(text, "the address") || strings.Contains(text, "\n") {
			t.Errorf("to %s: %v", to, err)
		}
	}
}

// TestWordsForOperators: what is wrong between the configuration and the server
// is said in the configuration's words.
func TestWordsForOperators(t *testing.T) {
	t.Parallel()
	login, none := answering(t, "EHLO", "250-here\r\n250 AUTH GSSAPI"), answering(t, "", usual(""))
	for _, c := range []struct {
		url  string
		says []string
	}{
		{none.url() + "?starttls=required", []string{"127.0.0.1 does not offer STARTTLS", "starttls=required"}},
		{"smtp://relay:secret@" + none.address, []string{"does not offer authentication"}},
		{"smtp://relay:secret@" + login.address, []string{"none of the supported authentication methods", "GSSAPI"}},
	} {
		err := open(t, c.url).Send(t.Context(), message("a@example.test"))
		for _, text := range c.says {
			if err == nil || !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", c.url, err)
			}
		}
		if err != nil && (strings.Contains(err.Error(), "TLSMandatory") || strings.Contains(err.Error(), "secret")) {
			t.Error(err)
		}
	}
	for _, command := range none.commands() {
		if command != "EHLO" {
			t.Errorf("a server without STARTTLS heard %s", command)
		}
	}
}

// TestAddresses: what the server gets, and the reader sees, for addresses
// with other letters than those of ASCII or with quotes.
func TestAddresses(t *testing.T) {
	t.Parallel()
	plain := startServer(t, "", nil)
	modern := startServer(t, "", func(s *server) { s.smtp.EnableSMTPUTF8 = true })
	for _, c := range []struct {
		to, told string // told "" where a plain server cannot take it
		utf8     bool
	}{
		{"ada@example.test", "ada@example.test", false},
		{"ada@bücher.example", "ada@xn--bcher-kva.example", false},
		{"ada@BÜCHER.example", "ada@xn--bcher-kva.example", false},
		{`"ada lovelace"@example.test`, `ada lovelace@example.test`, false},
		{`"a\"b"@bücher.example`, `a"b@xn--bcher-kva.example`, false},
		{"ada@[192.0.2.1]", "ada@[192.0.2.1]", false},
		{"jürgen@bücher.example", "", true},
	} {
		for _, s := range []*server{plain, modern} {
			before := len(s.all())
			err := open(t, s.url()).Send(t.Context(), message(c.to))
			var refused *mail.RefusedError
			if c.utf8 && s == plain {
				if !errors.As(err, &refused) || !strings.Contains(err.Error(), "SMTPUTF8") {
					t.Errorf("to %s: %v", c.to, err)
				}
				continue
			}
			mails := s.all()[before:]
			if err != nil || len(mails) != 1 {
				t.Errorf("to %s: %d mails, %v", c.to, len(mails), err)
				continue
			}
			told := c.told
			if c.utf8 {
				told = "jürgen@xn--bcher-kva.example"
			}
			shown, err := parse(t, mails[0].data).AddressList("To")
			if mails[0].to != told || mails[0].utf8 != c.utf8 || err != nil || len(shown) != 1 || shown[0].Address != told {
				t.Errorf("to %s: told %s, utf8 %t, shown %v, %v", c.to, mails[0].to, mails[0].utf8, shown, err)
			}
		}
	}
	for _, to := range []string{"no address", "a@b@c", "Ada <ada@example.test>", "ada@xn--ü.example", ""} {
		if got := send(t, open(t, modern.url()), to); got != "refused" {
			t.Errorf("to %q: %s", to, got)
		}
	}
}

// TestSenderAddresses: the sender's domain is written like the reader's, in the
// Message-ID too, and a sender that the server cannot take loses no mail.
func TestSenderAddresses(t *testing.T) {
	t.Parallel()
	s := startServer(t, "", nil)
	m := message("ada@example.test")
	m.From.Address = "no-reply@schulung.bücher.example"
	if err := open(t, s.url()).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	got := s.all()[0]
	header := parse(t, got.data)
	if got.from != "no-reply@schulung.xn--bcher-kva.example" || !strings.HasSuffix(header.Get("From"), "<"+got.from+">") ||
		header.Get("Message-ID") != "<0190-test@schulung.xn--bcher-kva.example>" {
		t.Errorf("%s\n%s", got.from, got.data)
	}
	m.From.Address = "büro@example.test"
	var refused *mail.RefusedError
	if err := open(t, s.url()).Send(t.Context(), m); err == nil || errors.As(err, &refused) || !strings.Contains(err.Error(), "sender") {
		t.Errorf("a sender of other letters: %v", err)
	}
}
