package mail_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	netmail "net/mail"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// must returns a value, and panics with an error: of what does not fail here.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// parsed is a mail as its receiver reads it.
type parsed struct {
	netmail.Header
	subject, text, html string
	file                string // and its name before it, after a colon
	logo                []byte
}

func parse(t testing.TB, data []byte) (p parsed) {
	t.Helper()
	m := must(netmail.ReadMessage(bytes.NewReader(data)))
	p.Header, p.subject = m.Header, must(new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")))
	kinds := strings.ToLower(strings.Join(p.read(m.Header.Get("Content-Type"), "", m.Body), ", "))
	if want := "text/plain; charset=utf-8, text/html; charset=utf-8"; kinds != want && (p.file == "" || kinds != want+", application/pdf") {
		t.Fatalf("parts %s", kinds)
	}
	return p
}

// read reads a part, and the parts in it, and returns their types.
func (p *parsed) read(contentType, file string, body io.Reader) (kinds []string) {
	kind, params, _ := mime.ParseMediaType(contentType)
	if strings.HasPrefix(kind, "multipart/") {
		for parts := multipart.NewReader(body, params["boundary"]); ; {
			part, err := parts.NextPart()
			if errors.Is(err, io.EOF) {
				return kinds
			}
			kinds = append(kinds, p.read(must(part, err).Header.Get("Content-Type"), part.FileName(), part)...)
		}
	}
	switch kind {
	case "text/html":
		p.html = string(must(io.ReadAll(body)))
	case "text/plain":
		p.text = strings.ReplaceAll(string(must(io.ReadAll(body))), "\r\n", "\n")
	case "image/png":
		p.logo = must(io.ReadAll(base64.NewDecoder(base64.StdEncoding, body)))
		return nil
	default:
		p.file = file + ":" + string(must(io.ReadAll(base64.NewDecoder(base64.StdEncoding, body))))
		return []string{kind}
	}
	return []string{contentType}
}

func composer(t testing.TB, from string) *mail.Composer {
	t.Helper()
	return must(mail.NewComposer("https://train.example.test/", from))
}

// TestWords: every mail is there in every language, complete, and leads to its own page; what
// names and catalogues hold is text and nothing else. What callers name as they like is in no
// subject, which mail programs show before the mail is opened.
func TestWords(t *testing.T) {
	t.Parallel()
	c, dir := composer(t, "Training <train@example.test>"), t.TempDir()
	outbox := must(mail.NewOutbox(dir))
	days := map[domain.Language]string{domain.English: "1 August 2026", domain.Spanish: "1 de agosto de 2026", domain.French: "1er août 2026"}
	tags := map[domain.Language]string{domain.English: "en", domain.Spanish: "es", domain.French: "fr-CA"}
	classes := map[domain.Language]string{domain.English: "- email ADDRESSES", domain.Spanish: "- Direcciones de correo", domain.French: "- Adresses courriel"}
	next := map[domain.Language]string{domain.English: "What happens next", domain.Spanish: "¿Y ahora qué?", domain.French: "Et maintenant?"}
	const name, odd = "<b>Your account is locked</b>\r\n\r\nBcc: all@example.test", "<b>x</b>\r\n\r\nBcc: all@example.test \u202e http://evil.example"
	day, on, host := time.Date(2026, 8, 1, 9, 0, 0, 0, time.UTC), domain.DateOf(v2test.Noon), odd
	subjects := map[string]bool{}
	for _, declared := range domain.MailKinds {
		kind := declared.Type
		if declared.Text == nil {
			continue
		}
		for language, date := range days {
			m := domain.Mail{
				ID: db.NewID[domain.MessageKind](), Type: kind, To: "ada@example.test", Name: name, Language: language,
				ClientName: name, PartnerName: "Überwald " + odd, Invite: db.NewID[domain.InviteKind](), ExpiresAt: day,
				Policy: db.NewID[domain.PolicyKind](), PolicyTitle: odd, Course: db.NewID[domain.CourseKind](), CourseTitle: odd,
				DueOn: domain.DateOf(day), CompletedOn: on, MonthOf: on, Overdue: []domain.OverdueCourse{{Title: odd, DueOn: on}},
				Simulated: domain.SimulatedMail{From: odd, Subject: odd, SentOn: on, Clues: (&domain.Template{}).Clues()},
				Exposure:  domain.Exposure{Title: odd, Domain: &host, DataClasses: []string{odd, "email ADDRESSES"}, Severity: domain.SeverityLow},
			}
			if err := outbox.Send(t.Context(), must(c.Compose(m, v2test.Noon))); err != nil {
				t.Fatal(err)
			}
			data := must(os.ReadFile(filepath.Join(dir, m.ID.UUID()+".eml")))
			p := parse(t, data)
			want := []bool{
				p.Get("To") == "<ada@example.test>", strings.Contains(p.Get("From"), "<train@example.test>"), p.Get("Bcc") == "",
				p.Get("Content-Language") == tags[language], p.Get("Message-ID") == "<"+m.ID.UUID()+"@example.test>",
				p.Get("Auto-Submitted") == "auto-generated", p.Get("Date") == "Mon, 15 Jun 2026 12:00:00 +0000",
				strings.Contains(p.html, `<html lang="`+tags[language]+`">`), !strings.Contains(p.html, "<b>"), !strings.Contains(p.html, "%!"),
				!strings.Contains(p.text+p.html, "<no value>"), !strings.Contains(p.html, "ZgotmplZ"), !strings.Contains(p.text, "\nBcc"),
				!strings.Contains(p.text+p.html+p.subject, "http://evil"),
				strings.Count(p.text+p.html+p.subject, "\u202e") == strings.Count(p.text+p.html+p.subject, "\u2069"),
				p.subject != "", !strings.ContainsAny(p.subject, "\r\n"), !strings.Contains(p.subject, "locked"),
				kind != domain.CertificateMail || strings.Contains(p.text, "\n    ada@example.test\n"), // of a user without a name
				kind != domain.ExposureNotice || strings.Contains(p.text, classes[language]),
				strings.Count(p.html, `class="action"`) == 1, strings.Count(p.html, "<a ") == 1, strings.Count(p.text, "https://train.example.test/") == 1,
				strings.Contains(p.text, "\n"+next[language]+"\n"), strings.Contains(p.html, ">"+next[language]+"<"),
				strings.Contains(p.html, "font-size:1px") && !strings.Contains(p.html, "color:#f3f4f6\">&"), // a preheader
				p.Get("Precedence") == "", p.Get("Feedback-ID") == "",
			}
			link := map[domain.MessageType]string{
				domain.WelcomeMail: "/training", domain.AdminInviteMail: "/invites/" + m.Invite.String(),
				domain.TrainingInvite: "/training/" + m.Course.String(), domain.PolicyReminder: "/policies/" + m.Policy.String(),
			}[kind]
			if link != "" {
				subjects[p.subject] = true
				want = append(want, strings.Contains(p.text, "\nhttps://train.example.test"+link+"\n"), strings.Contains(p.html, `href="https://train.example.test`+link+`"`),
					strings.Contains(p.text, "<b>Your account is locked</b>"), strings.Contains(p.html, "locked&lt;/b&gt; Bcc: all@example.test"),
					strings.Contains(p.text, "Überwald"),
					strings.Contains(p.text, date) == (kind == domain.AdminInviteMail || kind == domain.TrainingInvite))
			}
			for i, ok := range want {
				if !ok {
					t.Fatalf("%s in %s is not as wanted (%d): %s\n%s", kind, language, i, p.subject, data)
				}
			}
		}
	}
	if len(subjects) != 12 {
		t.Errorf("%d subjects: %v", len(subjects), subjects)
	}
}

func TestSenders(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"http://127.0.0.1:8080", "", "no-reply@localhost"}, {"http://[::1]:8080", "", "no-reply@localhost"},
		{"https://api.example.test/x", "", "no-reply@api.example.test"}, {"https://h", "A <a@b.test>", "a@b.test"},
	} {
		composer, err := mail.NewComposer(c[0], c[1])
		if err != nil {
			t.Errorf("%v: %v", c, err)
			continue
		}
		m, err := composer.Compose(domain.Mail{Type: domain.WelcomeMail, Language: "en"}, v2test.Noon)
		if err != nil || m.From.Address != c[2] {
			t.Errorf("%v: %s, %v", c, m.From.Address, err)
		}
	}
	for _, c := range [][2]string{
		{"relative", ""}, {"//h", ""}, {"ftp://h", ""}, {"https://", ""}, {"http://:80", ""}, {"https://h?x=1", ""}, {"https://h#x", ""},
		{"https://h", "nobody"}, {"https://h", "a@xn--ü.test"},
	} {
		if _, err := mail.NewComposer(c[0], c[1]); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
}

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

// TestQuotedNames verifies that a name can neither reverse the text around it nor become a link.
func TestQuotedNames(t *testing.T) {
	for name, want := range map[string]string{
		"Énergie Boréale":           "Énergie Boréale",
		"Ada\nLovelace":             "Ada Lovelace",
		"Acme \u202eelpmaxe":        "\u2068Acme \u202eelpmaxe\u2069",
		"\u2069\u202eevil\u2068":    "\u2068\u202eevil\u2069",
		"חברת דוגמה":                "\u2068חברת דוגמה\u2069",
		"شركة":                      "\u2068شركة\u2069",
		"see https://evil.example/": "see https: //evil.example/",
		"h\u2066ttps:/\u2067/x":     "https: //x",
	} {
		if got := mail.Quote(name); got != want {
			t.Errorf("%+q: got %+q, want %+q", name, got, want)
		}
	}
}

// TestNoticeTable verifies that the table of an email to a partner breaks paths only after slashes, and escapes texts;
// and that the sender has the service's name by default.
func TestNoticeTable(t *testing.T) {
	t.Parallel()
	notice := outbox.NoticeMail{Recipient: "owner@example.test", PartnerName: "P", Notice: domain.Notice{Subject: "s", Tables: []domain.NoticeTable{{
		Heading: "K", Columns: []string{"Operation", "Calls in 30 days", "Call instead"}, Rows: [][]domain.NoticeCell{
			{{Text: "GET /v1/clients/{client_id}/collections"}, {Text: "1,234"}, {Text: "GET /v2/<b>/", Path: "/docs/x"}},
		},
	}}}}
	m := must(composer(t, "").ComposeNotice(domain.MessageID{}, notice, v2test.Noon))
	for _, want := range []string{
		"<td>GET /<wbr>v1/<wbr>clients/<wbr>{client_id}/<wbr>collections</td>", `<td class="count">1,234</td>`,
		`<a href="https://train.example.test/docs/x" style="color:inherit">GET /<wbr>v2/<wbr>&lt;b&gt;/</a>`,
	} {
		if !strings.Contains(m.HTML, want) {
			t.Errorf("the HTML has no %s:\n%s", want, m.HTML)
		}
	}
	if m.From.Name != domain.ServiceName || m.From.Address != "no-reply@train.example.test" {
		t.Errorf("got the sender %v", m.From)
	}
	notice.Brand.SenderName = "Platform"
	if m := must(composer(t, "").ComposeNotice(domain.MessageID{}, notice, v2test.Noon)); m.From.Name != "Platform" {
		t.Errorf("got the sender %v, want the brand's name", m.From)
	}
}

// TestFrenchNeedsNoElision verifies that no name follows "de", "que" or "le" in the French texts: before a vowel, as in
// Énergie Boréale, it would be "d’".
func TestFrenchNeedsNoElision(t *testing.T) {
	t.Parallel()
	words, err := os.ReadFile("words/fr-ca.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range regexp.MustCompile(`\b(de|que) \{\{\.(Client|Partner|From)?\}\}`).FindAll(words, -1) {
		t.Errorf("got %s, want a phrase without an elision", found)
	}
}
