package phishing_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	netmail "net/mail"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const public = "https://train.example.test"

// bait is a service with the pages, and a user to whom simulations are sent.
type bait struct {
	*v2test.Harness
	t        *testing.T
	tenant   v2test.Partner
	client   domain.ClientID
	user     api.User
	tokens   phishing.Tokens
	outbox   string
	sender   mail.Sender
	pages    *phishing.Pages
	log      *slog.Logger
	lastLogs strings.Builder
}

func newBait(t *testing.T) *bait {
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	b := &bait{Harness: h, t: t, tenant: h.AddPartner("Partner"), outbox: t.TempDir()}
	b.client = h.AddClient(b.tenant, "Hopper & Sons").ID
	b.user = h.AddUser(b.tenant, b.client, "ada@example.test")
	secret, err := h.DB.TrackingSecret(t.Context())
	b.must(err)
	b.must(h.DB.LoadTemplates(t.Context()))
	networks, err := phishing.ParseNetworks([]string{"203.0.113.0/24", "2001:db8::1"})
	b.must(err)
	b.tokens = phishing.NewTokens(secret)
	b.sender, err = mail.NewOutbox(b.outbox)
	b.must(err)
	b.log = slog.New(slog.NewTextHandler(&b.lastLogs, nil))
	b.pages = phishing.NewPages(h.DB, b.tokens, networks, b.log)
	b.pages.Mount(h.Engine)
	return b
}

func (b *bait) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// own is the service's own template of a number, in a language.
func own(t *testing.T, number byte, language domain.Language) domain.Template {
	t.Helper()
	list, err := db.OwnTemplates()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(m domain.Template) bool { return m.ID[15] == number && m.Language == language })
	return list[i]
}

// schedule asks for a simulation of a template, through the interface.
func (b *bait) schedule(template domain.TemplateID) domain.ResultID {
	b.t.Helper()
	in := &api.SendPhishingInput{}
	in.Path.ClientID, in.Body.UserIDs, in.Body.TemplateID = b.client, []domain.UserID{b.user.ID}, domain.Give(template)
	out, err := op.Call(b.tenant.Ctx, &b.API.Set, api.SendPhishing, in)
	b.must(err)
	return *out.Sends[0].ResultID
}

// deliver hands the mails that are due to a sender, and returns what came of the
// last.
func (b *bait) deliver(sender mail.Sender) (outcome mail.Outcome, err error) {
	b.t.Helper()
	d := mail.NewDispatcher(b.DB, sender, 1, map[db.OutboxKind]mail.Writer{
		db.SimulatedMail: phishing.NewSimulations(b.DB, phishing.NewComposer(public, b.tokens)),
	}, b.log, nil, nil)
	leases, err := outbox.ClaimMails(b.t.Context(), b.DB, new(outbox.MailTurns), 10, time.Minute)
	b.must(err)
	for _, l := range leases {
		outcome, err = d.Send(b.t.Context(), b.t.Context(), l)
	}
	return outcome, err
}

// sentNow schedules and sends.
func (b *bait) sentNow(number byte, language domain.Language) domain.ResultID {
	b.t.Helper()
	id := b.schedule(own(b.t, number, language).ID)
	if outcome, err := b.deliver(b.sender); err != nil || outcome != mail.Sent {
		b.t.Fatalf("%s, %v", outcome, err)
	}
	return id
}

// sent schedules and sends, a minute ago.
func (b *bait) sent(number byte, language domain.Language) domain.ResultID {
	b.t.Helper()
	id := b.sentNow(number, language)
	b.Clock.Advance(time.Minute)
	return id
}

// request requests a page from a remote address. The method may have a header after it.
func (b *bait) request(method, path, from, body string) *httptest.ResponseRecorder {
	b.t.Helper()
	method, header, _ := strings.Cut(method, " ")
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if name, value, ok := strings.Cut(header, ": "); ok {
		r.Header.Set(name, value)
	}
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	b.Engine.ServeHTTP(w, r)
	return w
}

const home = "198.51.100.7:4711"

// state is what is stored of a result: its status, and how a scanner was detected.
func (b *bait) state(id domain.ResultID) (status, reason string, reported bool) {
	b.t.Helper()
	b.must(b.DB.SQL().QueryRow("SELECT status, coalesce(automated_reason, ''), reported FROM phishing_results WHERE id = $1", id).Scan(&status, &reason, &reported))
	return status, reason, reported
}

// TestThePagesOfAForm: open, click, submit and report, each explained in the
// reader's language, without a key and in no budget; what is typed leaves no trace.
func TestThePagesOfAForm(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	b.Exec("UPDATE users SET preferred_language = 'es' WHERE id = $1", b.user.ID)
	id := b.sent(5, domain.Spanish)
	path := "/t/" + b.tokens.Token(id)
	for _, step := range []struct{ method, path, body, status, says string }{
		{"GET", path + "/open.gif", "", "opened", "GIF89a"},
		{"GET", path, "", "clicked", "<form method=\"post\">"},
		{"POST", path, "user=ada&password=hunter-two", "credentials_submitted", "Esto era una simulación de phishing"},
		{"GET", path + "/report", "", "credentials_submitted", "<button>Denunciar este mensaje</button>"},
		{"POST", path + "/report", "", "credentials_submitted", "¡Bien visto!"},
	} {
		b.Clock.Advance(time.Second)
		page := b.request(step.method, step.path, home, step.body)
		if status, reason, _ := b.state(id); status != step.status || reason != "" {
			t.Errorf("%s %s: %s %s", step.method, step.path, status, reason)
		}
		if page.Code != 200 || !strings.Contains(page.Body.String(), step.says) || page.Header().Get("Cache-Control") != "no-store" ||
			page.Header().Get("X-RateLimit-Limit") != "" {
			t.Errorf("%s %s: %d %s", step.method, step.path, page.Code, page.Body)
		}
		if step.method == "POST" && step.path == path && (!strings.Contains(page.Body.String(), "security@mail-desk.example") || strings.Count(page.Body.String(), "<li>") != 3+3 || !strings.Contains(page.Body.String(), `href="../training"`) || strings.Contains(page.Body.String(), "hunter")) {
			t.Errorf("the lesson is %s", page.Body)
		}
		if strings.Contains(page.Body.String(), "name=\"p") {
			t.Error("a field of the form has a name, so its value would be sent")
		}
	}
	if _, _, reported := b.state(id); !reported {
		t.Error("the report was not recorded")
	}
	if strings.Contains(b.lastLogs.String(), "hunter") || strings.Contains(b.lastLogs.String(), b.tokens.Token(id)) {
		t.Errorf("the log says %s", b.lastLogs.String())
	}
	if n := b.Number("SELECT count(*) FROM events WHERE type = 'phishing.result.updated' AND object_id = $1", id); n != 4 {
		t.Errorf("%d events", n)
	}
	d := b.Number("SELECT sent * 10000 + opened * 1000 + clicked * 100 + credentials_submitted * 10 + reported FROM phishing_days WHERE client_id = $1", b.client)
	if d != 11111 {
		t.Errorf("the day's counters are %d", d)
	}
	plain := b.sent(2, domain.Spanish) // of a template without a form: nothing can be submitted
	for _, method := range []string{"GET", "POST"} {
		page := b.request(method, "/t/"+b.tokens.Token(plain), home, "")
		if status, _, _ := b.state(plain); status != "clicked" || !strings.Contains(page.Body.String(), "Esto era una simulación de phishing") {
			t.Errorf("%s: the mail is %s, the lesson %s", method, status, page.Body)
		}
	}
}

// TestScanners: what a mail scanner opens or clicks is kept with its reason and
// counts nowhere; it neither submits nor reports.
func TestScanners(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	for name, c := range map[string]struct {
		method, below, from string // the method may have a header after it
		after               time.Duration
		status, reason      string
		reported            bool
	}{
		"a person":                  {"GET", "", home, time.Minute, "clicked", "", false},
		"the head of a page":        {"HEAD", "", home, time.Minute, "sent", "head", false},
		"the head of a picture":     {"HEAD", "/open.gif", home, time.Minute, "sent", "head", false},
		"from a scanner":            {"GET", "", "203.0.113.9:1", time.Minute, "sent", "network", false},
		"from one on IPv6":          {"GET", "", "[2001:db8::1]:1", time.Minute, "sent", "network", false},
		"mapped into IPv6":          {"GET", "", "[::ffff:203.0.113.9]:1", time.Minute, "sent", "network", false},
		"next to a scanner":         {"GET", "", "[2001:db8::2]:1", time.Minute, "clicked", "", false},
		"by a clock that is behind": {"GET", "", home, -time.Second, "sent", "fast", false},
		"within two seconds":        {"GET", "", home, 1999 * time.Millisecond, "sent", "fast", false},
		"after two seconds":         {"GET", "", home, 2 * time.Second, "clicked", "", false},
		"a scanner presses all":     {"POST", "/report", "203.0.113.9:1", time.Minute, "sent", "", false},
		"a report at once":          {"POST", "/report", home, time.Second, "sent", "", false},
		"a person's report":         {"POST", "/report", home, time.Minute, "sent", "", true},
		"the page that reports":     {"GET", "/report", home, time.Minute, "sent", "", false},
		"its head":                  {"HEAD", "/report", home, time.Minute, "sent", "", false},
		"a prefetch":                {"GET Sec-Purpose: prefetch;prerender", "", home, time.Minute, "sent", "prefetch", false},
		"an older browser's":        {"GET Purpose: prefetch", "", home, time.Minute, "sent", "prefetch", false},
		"a preview":                 {"GET X-Purpose: Preview", "/open.gif", home, time.Minute, "sent", "prefetch", false},
		"another purpose":           {"GET Purpose: reading", "", home, time.Minute, "clicked", "", false},
		"a prefetch that reports":   {"POST Sec-Purpose: prefetch", "/report", home, time.Minute, "sent", "", false},
		"a scanner sends a form":    {"POST", "", "203.0.113.9:1", time.Minute, "sent", "", false},
		"a form that was not read":  {"POST", "", home, time.Second, "sent", "", false},
	} {
		id := b.sentNow(5, domain.English)
		b.Clock.Advance(c.after)
		before := b.Number("SELECT coalesce(sum(opened + clicked), 0) FROM phishing_days")
		page := b.request(c.method, "/t/"+b.tokens.Token(id)+c.below, c.from, "")
		if page.Code != 200 {
			t.Errorf("%s: %d", name, page.Code)
		}
		if hasButton := strings.Contains(page.Body.String(), "<button>"); c.below == "/report" && hasButton == c.reported {
			t.Errorf("%s: the page that reports has a button: %v", name, hasButton)
		}
		status, reason, reported := b.state(id)
		if status != c.status || reason != c.reason || reported != c.reported {
			t.Errorf("%s: %s, %q, reported %v", name, status, reason, reported)
		}
		counted := b.Number("SELECT sum(opened + clicked) FROM phishing_days") > before
		if want := c.status != "sent"; counted != want {
			t.Errorf("%s: counted %v", name, counted)
		}
	}
}

// TestDefaultNetworks verifies that the built-in list has Exchange Online's networks, and that the guide has the whole list,
// which operators extend.
func TestDefaultNetworks(t *testing.T) {
	t.Parallel()
	networks, err := phishing.ParseNetworks(nil)
	if err != nil || !networks.Contain(netip.MustParseAddr("40.95.1.2")) || networks.Contain(netip.MustParseAddr("40.96.0.1")) {
		t.Errorf("the list is %v: %v", networks, err)
	}
	list, listErr := os.ReadFile("networks.txt")
	guide, guideErr := os.ReadFile("../../docs/operate/emails.md")
	if listErr != nil || guideErr != nil {
		t.Fatal(listErr, guideErr)
	}
	for line := range strings.Lines(string(list)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !strings.Contains(string(guide), line) {
			t.Errorf("the guide lacks %s", line)
		}
	}
}

// TestUnknownTokens: what this service did not make leads nowhere.
func TestUnknownTokens(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	id := b.sent(1, domain.English)
	good := b.tokens.Token(id)
	other := phishing.NewTokens([]byte("another secret")).Token(id)
	for _, token := range []string{"x", other, good[:len(good)-1], good + "A", strings.ToLower(good), b.tokens.Token(db.NewID[domain.ResultKind]())} {
		for _, below := range []string{"", "/open.gif", "/report"} {
			if page := b.request("GET", "/t/"+token+below, home, ""); page.Code != 404 || !strings.Contains(page.Body.String(), "does not exist") {
				t.Errorf("%s%s: %d %s", token, below, page.Code, page.Body)
			}
		}
	}
	if status, _, _ := b.state(id); status != "sent" {
		t.Errorf("the result is %s", status)
	}
}

// TestCompose: placeholders, the tracked link in both parts, the report link
// and the picture; values cannot break out of where they stand.
func TestCompose(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	tokens := phishing.NewTokens([]byte("secret"))
	s := domain.Simulation{
		Result: domain.ResultID{7}, Email: "ada@example.test", FirstName: "<Ada>", LastName: "Love\r\nBcc: x@y.z", ClientName: `Hop "<per>`, Language: domain.French, ReportLink: true,
		Template: domain.Template{Language: domain.French, Subject: "{{first_name}} {{last_name}} {{unknown}}", From: "{{company}} IT <it@bait.example>", TemplateContent: domain.TemplateContent{
			HTML: `<html><body><p>{{first_name}}</p><a class="x" HREF='https://bait.example/a?b=1&amp;c=2'>here</a><a href="https://other.example">2</a></body></html>`,
			Text: "{{first_name}} {{month}} https://bait.example/a?b=1&c=2 {{link}}",
		}},
	}
	m, err := phishing.NewComposer(public+"/", tokens).Compose(s, v2test.Noon)
	b.must(err)
	page := public + "/t/" + tokens.Token(s.Result)
	for name, ok := range map[string]bool{
		"the subject":     m.Subject == "<Ada> Love Bcc: x@y.z {{unknown}}",
		"the sender":      m.From == netmail.Address{Name: `Hop "<per> IT`, Address: "it@bait.example"},
		"the link":        strings.Contains(m.HTML, `<a class="x" href="`+page+`">here`) && strings.Contains(m.HTML, `<a href="`+page+`">2`),
		"escaping":        strings.Contains(m.HTML, "<p>&lt;Ada&gt;</p>"),
		"report":          strings.Contains(m.HTML, page+"/report") && strings.Contains(m.Text, "Signaler ce message: "+page+"/report"),
		"the picture":     strings.Contains(m.HTML, page+"/open.gif") && strings.HasSuffix(m.HTML, "</body></html>"),
		"the text's link": strings.HasPrefix(m.Text, "<Ada> juin "+page+" "+page),
	} {
		if !ok {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestReportLink verifies that a simulated email has the link that reports it only if the client's switch is on, which it
// is not for a new client, and that its page reports either way.
func TestReportLink(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	sent := &keepingServer{}
	for _, on := range []bool{false, true, false} {
		if on {
			b.must(outbox.SwitchMail(t.Context(), b.DB, b.client, domain.ReportLink, true))
		} else if sent.last.ID != "" {
			b.must(outbox.SwitchMail(t.Context(), b.DB, b.client, domain.ReportLink, false))
		}
		switches, err := outbox.MailSwitches(t.Context(), b.DB, b.client)
		if err != nil || !slices.Contains(switches, domain.MailSwitch{Type: domain.ReportLink, On: on}) {
			t.Errorf("got %v, %v, want report-link %v", switches, err, on)
		}
		id := b.schedule(own(t, 5, domain.English).ID)
		if outcome, err := b.deliver(sent); err != nil || outcome != mail.Sent {
			t.Fatalf("%s, %v", outcome, err)
		}
		link := "/t/" + b.tokens.Token(id) + "/report"
		if inHTML, inText := strings.Contains(sent.last.HTML, link), strings.Contains(sent.last.Text, link); inHTML != on || inText != on {
			t.Errorf("switched %v: the link is in the HTML: %v, in the text: %v", on, inHTML, inText)
		}
		if says := strings.Contains(sent.last.HTML+sent.last.Text, "Report this"); says != on {
			t.Errorf("switched %v: the email names the report: %v", on, says)
		}
		b.Clock.Advance(time.Minute)
		b.request("POST", link, home, "")
		if _, _, reported := b.state(id); !reported {
			t.Errorf("switched %v: the page reports nothing", on)
		}
	}
	if err := outbox.SwitchMail(t.Context(), b.DB, domain.ClientID{15: 1}, domain.ReportLink, true); !domain.IsCode(err, domain.NotFound) {
		t.Errorf("an unknown client: %v", err)
	}
}

// keepingServer is a mail server that accepts every message and keeps the last.
type keepingServer struct{ last mail.Message }

func (s *keepingServer) Send(_ context.Context, m mail.Message) error { s.last = m; return nil }
func (s *keepingServer) Close() error                                 { return nil }

// TestHeader verifies that all simulated emails to a client have the same value of the header as written to the mail
// server, and that it differs for another client and with another secret.
func TestHeader(t *testing.T) {
	t.Parallel()
	tokens := phishing.NewTokens([]byte("secret"))
	values := map[string]bool{}
	for _, s := range []domain.Simulation{{Client: domain.ClientID{1}}, {Client: domain.ClientID{1}, Result: domain.ResultID{1}}, {Client: domain.ClientID{2}}} {
		s.Email, s.Template = "ada@example.test", own(t, 1, domain.English)
		m, err := phishing.NewComposer(public, tokens).Compose(s, v2test.Noon)
		if err != nil {
			t.Fatal(err)
		}
		folder := t.TempDir()
		outbox, err := mail.NewOutbox(folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := outbox.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(folder)
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		file, err := os.Open(filepath.Join(folder, files[0].Name()))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		written, err := netmail.ReadMessage(file)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := written.Header.Get(phishing.HeaderName), tokens.Header(s.Client); got != want {
			t.Errorf("the header is %q, want %q", got, want)
		}
		values[written.Header.Get(phishing.HeaderName)] = true
	}
	if other := phishing.NewTokens([]byte("other")).Header(domain.ClientID{1}); len(values) != 2 || values[other] || values[""] {
		t.Errorf("the values are %v, that of another secret is %q", values, other)
	}
}

// TestOwnTemplates: every one of the service's own templates is whole in each
// language, and can be sent and explained.
func TestOwnTemplates(t *testing.T) {
	t.Parallel()
	list, err := db.OwnTemplates()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, m := range list {
		if found, err := phishing.Inspect(m); err != nil || found.Remote != nil || found.Removed != nil {
			t.Errorf("%s (%s): %+v, %v", m.Name, m.Language, found, err)
		}
		s := domain.Simulation{FirstName: "Ada", LastName: "Lovelace", Email: "ada@example.test", ClientName: "Hopper & Sons", Language: m.Language, ReportLink: true, Template: m}
		out, err := phishing.NewComposer(public, phishing.NewTokens(nil)).Compose(s, v2test.Noon)
		switch {
		case err != nil:
			t.Errorf("%s (%s): %v", m.Name, m.Language, err)
		case strings.Contains(out.Subject+out.Text+out.HTML+out.From.Name, "{{"), strings.Contains(out.HTML, "cid:") != (len(out.Files) == 1), strings.Count(out.Text, public) != 2, strings.Count(out.HTML, public) != 3:
			t.Errorf("%s (%s): %+v", m.Name, m.Language, out)
		case len(m.Indicators) == 0, m.Difficulty < 1, m.Difficulty > 6, m.Category == "", seen[string(m.Language)+m.Name], seen[m.ID.UUID()]:
			t.Errorf("%s (%s): %+v", m.Name, m.Language, m)
		}
		for _, i := range m.Indicators {
			if !i.Known() {
				t.Errorf("%s: %s", m.Name, i)
			}
		}
		seen[string(m.Language)+m.Name], seen[m.ID.UUID()] = true, true
	}
	if len(list) != 48 {
		t.Errorf("%d templates", len(list))
	}
	for n, difficulties := byte(1), map[int]bool{}; n <= 16; n++ {
		difficulties[own(t, n, domain.English).Difficulty] = true
		if n == 16 && len(difficulties) != 6 {
			t.Errorf("the difficulties are %v", difficulties)
		}
		cues := map[string]bool{}
		for _, language := range []domain.Language{domain.English, domain.Spanish, domain.French} {
			said := db.TemplateCues(own(t, n, domain.English).ID, language)
			for _, cue := range said {
				cues[cue] = true
			}
			if older := n == 4 || n == 9 || n == 11 || n == 12; older != (said == nil) || !older && len(said) < 3 {
				t.Errorf("template %d has the cues %q in %s", n, said, language)
			}
		}
		if len(cues)%3 != 0 {
			t.Errorf("template %d has cues that are the same in two languages", n)
		}
	}
}

// domainOfCue matches a domain in a cue, and linkOfCue words of a link.
var (
	domainOfCue = regexp.MustCompile(`[a-z-]+\.example`)
	linkOfCue   = regexp.MustCompile(`(?i)link|\bthere\b|enlace|llevaba|allí|\blien|menait|vous y `)
)

// TestCuesNameOnlySenders verifies that cues name no domain but the sender's, and never as that of the link: all links
// lead to the service.
func TestCuesNameOnlySenders(t *testing.T) {
	t.Parallel()
	list, err := db.OwnTemplates()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		for _, cue := range db.TemplateCues(m.ID, m.Language) {
			for _, name := range domainOfCue.FindAllString(cue, -1) {
				if !strings.HasSuffix(m.From, "@"+name+">") || linkOfCue.MatchString(cue) {
					t.Errorf("%s (%s): got a cue about the link or another domain, want one about the sender %s: %s", m.Name, m.Language, m.From, cue)
				}
			}
		}
	}
}

// beforePlaceholder matches French words that could need an elision before the value of a placeholder.
var beforePlaceholder = regexp.MustCompile(`(?i)(^|[^\pL])((de|que|le|la|se|ne|je|me|te|lorsque|puisque|jusque) |[a-z]['’])\{\{[^}]*\}\}`)

// TestFrenchNeedsNoElision verifies that the French templates are correct for names that begin with a vowel, such as
// Énergie Boréale.
func TestFrenchNeedsNoElision(t *testing.T) {
	t.Parallel()
	list, err := db.OwnTemplates()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.Language != domain.French {
			continue
		}
		for _, found := range beforePlaceholder.FindAllString(m.Subject+"\n"+m.From+"\n"+m.Text+"\n"+m.HTML, -1) {
			t.Errorf("%s: got %q, want no word that needs an elision", m.Name, found)
		}
	}
}

// TestDates verifies that {{date}} is written as in the template's language.
func TestDates(t *testing.T) {
	t.Parallel()
	for language, want := range map[domain.Language][2]string{
		domain.English: {"15 June 2026, 23:59", "1 August 2026, 23:59"}, domain.Spanish: {"15 de junio de 2026, 23:59", "1 de agosto de 2026, 23:59"},
		domain.French: {"15 juin 2026, 23 h 59", "1er août 2026, 23 h 59"},
	} {
		for i, at := range []time.Time{v2test.Noon, time.Date(2026, 8, 1, 23, 0, 0, 0, time.UTC)} {
			s := domain.Simulation{Email: "ada@example.test", Template: own(t, 14, language)}
			m, err := phishing.NewComposer(public, phishing.NewTokens(nil)).Compose(s, at)
			if err != nil || !strings.Contains(m.Text, ": "+want[i]+"\n") || !strings.Contains(m.HTML, ">"+want[i]+"<") {
				t.Errorf("%s: got %s, %v, want %s", language, m.Text, err, want[i])
			}
		}
	}
}

// TestLinksOfAPartnerThatMoved: who follows a link of a partner that moved to another cell
// is sent on there, and nothing is recorded here.
func TestLinksOfAPartnerThatMoved(t *testing.T) {
	t.Parallel()
	b := newBait(t)
	moved, stays := b.sent(1, domain.English), b.sent(1, domain.English)
	b.pages.Forward(func(_ context.Context, id domain.ResultID) (string, error) {
		if id == moved {
			return "https://api.example.test/c01", nil
		}
		return "", nil
	})
	path := "/t/" + b.tokens.Token(moved)
	for _, method := range []string{"GET", "POST"} {
		if r := b.request(method, path, "192.0.2.1", ""); r.Code != http.StatusTemporaryRedirect || r.Header().Get("Location") != "https://api.example.test/c01"+path {
			t.Errorf("%s: %d to %q", method, r.Code, r.Header().Get("Location"))
		}
	}
	if status, _, _ := b.state(moved); status != "sent" {
		t.Errorf("the result is %s here", status)
	}
	if r := b.request("GET", "/t/"+b.tokens.Token(stays), "192.0.2.1", ""); r.Code != http.StatusOK {
		t.Errorf("another link: %d", r.Code)
	}

	other := phishing.NewTokens([]byte("another cell's"))
	accepts := b.tokens.Accept(func() [][]byte { return [][]byte{[]byte("another cell's")} })
	if id, ok := accepts.Result(other.Token(stays)); !ok || id != stays {
		t.Error("a token of another cell is not read")
	}
	if _, ok := b.tokens.Result(other.Token(stays)); ok {
		t.Error("a token of another cell is read without its secret")
	}
}
