package mail_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledongthuc/pdf"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// foundations is a course that every new user is given.
var foundations = domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: 1}

const day = 24 * time.Hour

// user adds a user of a client.
func (p *office) user(client domain.ClientID, email string, language domain.Language) domain.UserKey {
	p.t.Helper()
	u := p.AddUser(p.tenant, client, email)
	p.Exec("UPDATE users SET preferred_language = $1 WHERE id = $2", language, u.ID)
	return domain.UserKey{Client: client, User: u.ID}
}

// simulation adds a simulated mail that was sent to the user at a time.
func (p *office) simulation(to domain.UserKey, at time.Time, indicators ...string) domain.ResultID {
	p.t.Helper()
	id, template := db.NewID[domain.ResultKind](), db.NewID[domain.TemplateKind]()
	fixture.Insert(p.t, p.DB.SQL(), "phishing_templates", fixture.Row{"id": template, "indicators": append([]string{}, indicators...)})
	fixture.Insert(p.t, p.DB.SQL(), "phishing_results", fixture.Row{
		"client_id": to.Client, "id": id, "user_id": to.User, "template_id": template, "status": "sent", "sent_at": at, "created_at": at,
	})
	p.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		VALUES ($1, $2, $3, $4, 'ceo@bait.example', 'Urgent, Ada!', 'smtp', 'phishing')`, to.Client, to.User, id, at)
	return id
}

func (p *office) completed(u domain.UserKey, at time.Time) {
	p.t.Helper()
	p.Signal(domain.Signal{Type: domain.CourseCompleted, User: u.User, Course: foundations, At: at})
}

func (p *office) exposed(u domain.UserKey, breach string, at time.Time) {
	p.t.Helper()
	p.Signal(domain.Signal{Type: domain.ExposureFound, User: u.User, Breach: breach, At: at})
}

func (p *office) clicked(result domain.ResultID, at time.Time) {
	p.t.Helper()
	p.Signal(domain.Signal{Type: domain.PhishingClicked, Result: result, At: at})
}

// queued counts the mails of a type that were asked for.
func (p *office) queued(kind domain.MessageType) int {
	p.t.Helper()
	return p.Number("SELECT count(*) FROM mail_requests AS r JOIN outbox AS o USING (client_id, id) WHERE r.type = $1", kind)
}

// sent sends all that is due and returns the types of the mails that were recorded
// then, sorted.
func (p *office) sent() string {
	p.t.Helper()
	before := p.recorded()
	p.drain(p.sender)
	after := p.recorded()
	for _, kind := range before {
		i := slices.Index(after, kind)
		after = slices.Delete(after, i, i+1)
	}
	return strings.Join(after, " ")
}

// recorded are the types of the mails to users that are recorded, sorted.
func (p *office) recorded() []string {
	p.t.Helper()
	return strings.Fields(p.text(`SELECT coalesce(string_agg(message_type, ' ' ORDER BY message_type), '')
		FROM sent_emails WHERE message_type <> 'phishing'`))
}

// TestServiceMail: completing a course, being exposed and falling for a simulation
// bring a mail each, in the user's language, the last one two days later; it does not wait
// before it is due.
func TestServiceMail(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	languages := map[string]domain.Language{"en@example.test": domain.English, "es@example.test": domain.Spanish, "fr@example.test": domain.French}
	for email, language := range languages {
		u := p.user(p.client, email, language)
		p.completed(u, now)
		p.exposed(u, "Forum", now)
		p.clicked(p.simulation(u, now.Add(-time.Hour), "fear", "external"), now)
	}
	for range 2 {
		p.drain(p.sender)
	}
	if n := len(p.server.all()); n != 6 || p.queued(domain.PhishReminder) != 3 {
		t.Fatalf("%d mails at once, %d reminders wait", n, p.queued(domain.PhishReminder))
	}
	waiting := func() float64 { return worldtest.Figures(t, p.DB)["mails mail waiting"] }
	p.Clock.Advance(2*day - time.Second)
	p.drain(p.sender)
	if n, b := len(p.server.all()), waiting(); n != 6 || b != 0 {
		t.Fatalf("%d mails before the reminders are due, %v wait", n, b)
	}
	p.Clock.Advance(4 * time.Second)
	if f := worldtest.Figures(t, p.DB); waiting() != 3 || f["mail_oldest_seconds mail"] != 3 {
		t.Errorf("got %v", f)
	}
	p.drain(p.sender)

	want := map[string][]string{
		"en Your certificate: Security awareness foundations":                     {"Certificate of completion\n", "\n    This certifies that\n    Ada Example\n    has completed the course\n    Security awareness foundations\n    on 15 June 2026 (UTC)\n", "Hopper & Sons - Überwald IT", "/training"},
		"es Su certificado: Fundamentos de concienciación en seguridad":           {"Certificado de finalización\n", "    Se certifica que\n    Ada Example\n    ha completado el curso\n    Fundamentos de concienciación en seguridad\n", "el 15 de junio de 2026 (UTC)"},
		"fr Votre attestation : Notions de base en sensibilisation à la sécurité": {"Attestation de réussite\n", "    a terminé le cours\n    Notions de base en sensibilisation à la sécurité\n", "le 15 juin 2026 (UTC)"},
		"en Your data was found in a data breach: Forum & Co":                     {"en@example.test", "“Forum & Co” (forum.example) of 15 June 2025.", "\n- Passwords\n- Tea preferences\n", "1. Change your password at forum.example now.\n2. ", "https://haveibeenpwned.com"},
		"es Sus datos aparecen en una filtración: Forum & Co":                     {"- Contraseñas\n- Tea preferences\n", "1. Cambie ahora su contraseña en forum.example.\n", "15 de junio de 2025"},
		"fr Vos données figurent dans une fuite : Forum & Co":                     {"- Mots de passe\n", "1. Changez maintenant votre mot de passe sur forum.example.\n", "15 juin 2025"},
		"en What gave the phishing simulation away":                               {"On 15 June 2026, you received an email from ceo@bait.example with the subject “Urgent, Ada!”", "gave it away:\n- It came from outside your organization", "\n- It threatened you with a loss", "Next time"},
		"es Lo que delataba la simulación de phishing":                            {"«Urgent, Ada!»", "- Venía de fuera de su organización", "\n- Le amenazaba", "La próxima vez"},
		"fr Ce qui trahissait la simulation d’hameçonnage":                        {"« Urgent, Ada! »", "- Il venait de l’extérieur de votre organisation", "\n- Il vous menaçait", "La prochaine fois"},
	}
	for _, m := range p.server.all() {
		got := parse(t, m.data)
		key := m.to[:2] + " " + got.subject
		texts, known := want[key]
		if !known {
			t.Errorf("%q is not expected, or came twice", key)
		}
		delete(want, key)
		for _, text := range append(texts, "") {
			if !strings.Contains(got.text, text) {
				t.Errorf("%s lacks %q:\n%s", key, text, got.text)
			}
		}
		if strings.Contains(got.html, "ZgotmplZ") || strings.Contains(got.text, "<no value>") || got.Get("Auto-Submitted") != "auto-generated" ||
			strings.Contains(key, "ertifica") && !strings.Contains(got.html, ">Ada Example</div>") {
			t.Errorf("%s:\n%s", key, got.html)
		}
	}
	for key := range want {
		t.Errorf("%q did not come", key)
	}
	p.checkCertificates(t, 3)
	if n := p.Number("SELECT count(*) FROM exposures WHERE notified_at = $1 AND updated_at = $1", now); n != 3 {
		t.Errorf("%d exposures are noted as told of", n)
	}
}

// checkCertificates verifies that each of the n certificates that the server received has its PDF file, which names the
// user, the course, the client and the day in UTC, in the language of the email.
func (p *office) checkCertificates(t *testing.T, n int) {
	t.Helper()
	days := map[string]string{"en": "on15June2026(UTC)", "es": "el15dejuniode2026(UTC)", "fr": "le15juin2026(UTC)"}
	courses := map[string]string{
		"en": "Securityawarenessfoundations", "es": "Fundamentosdeconcienciaciónenseguridad", "fr": "Notionsdebaseensensibilisationàlasécurité",
	}
	for _, m := range p.server.all() {
		email := parse(t, m.data)
		name, file, found := strings.Cut(email.file, ":")
		if !found {
			continue
		}
		n--
		r, err := pdf.NewReader(strings.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatalf("%s: %v", m.to, err)
		}
		text := strings.ReplaceAll(must(r.Page(1).GetPlainText(nil)), " ", "")
		for _, want := range []string{"AdaExample", courses[m.to[:2]], days[m.to[:2]], "Hopper&Sons"} {
			if !strings.Contains(text, want) {
				t.Errorf("the certificate to %s lacks %q: %s", m.to, want, text)
			}
		}
		if name != "certificate-2026-06-15.pdf" || r.NumPage() != 1 || len(file) > 100_000 {
			t.Errorf("the certificate to %s is %s with %d pages and %d bytes", m.to, name, r.NumPage(), len(file))
		}
	}
	if n != 0 {
		t.Errorf("%d certificates are not attached", n)
	}
}

// TestOldCauses: what happened more than seven days ago brings no mail, nor does an exposure that
// was resolved before it was found, and a reminder is due two days after the failing itself.
func TestOldCauses(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	for _, c := range []struct {
		email string
		ago   time.Duration
		now   string
		later string // a day later
	}{
		{"old@example.test", 7*day + time.Second, "", ""},
		{"edge@example.test", 7 * day, "certificate exposure-notice phish-reminder", ""},
		{"recent@example.test", day, "certificate exposure-notice", "phish-reminder"},
	} {
		at := p.Clock.Now().Add(-c.ago)
		u := p.user(p.client, c.email, domain.English)
		p.completed(u, at)
		p.exposed(u, "List", at)
		result := p.simulation(u, now.AddDate(0, 0, -20))
		p.clicked(result, at)
		p.Signal(domain.Signal{Type: domain.CredentialsSubmitted, Result: result, At: p.Clock.Now()}) // who has failed before
		if got := p.sent(); got != c.now {
			t.Errorf("%s: %q at once", c.email, got)
		}
		p.Clock.Advance(day)
		if got := p.sent(); got != c.later {
			t.Errorf("%s: %q a day later", c.email, got)
		}
	}
	p.Clock.Advance(10 * day)
	u := p.user(p.client, "ada@example.test", domain.English)
	p.Signal(domain.Signal{Type: domain.ExposureResolved, User: u.User, Breach: "Forum", At: p.Clock.Now()})
	p.exposed(u, "Forum", p.Clock.Now().Add(-time.Hour))
	if got := p.sent(); got != "" {
		t.Errorf("%q in the end", got)
	}
}

// TestWhoFails: a scanner's click, an opened mail and a report bring no reminder;
// each way of falling for a mail does, once.
func TestWhoFails(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	u := p.user(p.client, "ada@example.test", domain.English)
	sentAt := now.Add(-time.Hour)
	step := func(result domain.ResultID, kind domain.ResultEventKind, at time.Time, by domain.AutomatedReason) {
		t.Helper()
		err := p.DB.AdvanceResults(t.Context(), []domain.ResultStep{{Result: result, Kind: kind, At: at, Automated: by}})
		p.must(err)
	}
	scanned := p.simulation(u, sentAt)
	step(scanned, domain.MailClicked, now, domain.ByNetwork)
	hasty := p.simulation(u, sentAt)
	step(hasty, domain.MailClicked, sentAt.Add(time.Second), "")
	other := p.simulation(u, sentAt)
	step(other, domain.MailOpened, now, "")
	step(other, domain.MailReported, now, "")
	if n := p.queued(domain.PhishReminder); n != 0 {
		t.Fatalf("%d reminders", n)
	}
	for i, kind := range []domain.ResultEventKind{domain.MailClicked, domain.MailAttachmentOpened, domain.MailCredentialsSubmitted} {
		result := []domain.ResultID{scanned, hasty, other}[i] // whatever a scanner did before
		step(result, kind, now, "")
		step(result, kind, now.Add(time.Minute), "")
		step(result, domain.MailCredentialsSubmitted, now.Add(time.Minute), "")
		if n := p.queued(domain.PhishReminder); n != i+1 {
			t.Errorf("%d reminders after %s", n, kind)
		}
	}
}

// TestUnknownSimulation: a mail without a record, of a template without
// indicators, has a reminder all the same.
func TestUnknownSimulation(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	result := p.simulation(p.user(p.client, "ada@example.test", domain.English), now.Add(-time.Hour))
	p.Exec("DELETE FROM sent_emails")
	p.clicked(result, now)
	p.Clock.Advance(2 * day)
	p.drain(p.sender)
	if text := parse(t, p.server.all()[0].data).text; !strings.Contains(text, "you received an email. It was") || !strings.Contains(text, "- Its link led to a web address") {
		t.Errorf("%s", text)
	}
}

// TestServiceMailUnwanted: it is at the sending that a user is active, the client
// is there, and the subject of the mail still stands.
func TestServiceMailUnwanted(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	for name, change := range map[string]struct {
		text, want string
	}{
		"inactive":  {"UPDATE users SET status = 'inactive' WHERE client_id = $1", "the user is inactive; the user is inactive; the user is inactive"},
		"archived":  {"UPDATE clients SET archived_at = now() WHERE id = $1", "the client is archived; the client is archived; the client is archived"},
		"unwatched": {"UPDATE clients SET dark_web_monitoring = false WHERE id = $1", "sent; the client has no Dark Web Monitoring; sent"},
		"resolved":  {"UPDATE exposures SET resolved_at = now() WHERE client_id = $1", "sent; the exposure is resolved; sent"},
		"told":      {"UPDATE exposures SET notified_at = now() WHERE client_id = $1", "sent; the user was already notified; sent"},
		"undone":    {"UPDATE assignments SET completed_at = NULL WHERE client_id = $1", "the course is not completed; sent; sent"},
	} {
		client := p.AddClient(p.tenant, name).ID
		u := p.user(client, "ada@example.test", domain.English)
		p.completed(u, now)
		p.exposed(u, "List", now)
		p.clicked(p.simulation(u, now.Add(-3*day)), now.Add(-2*day))
		p.Exec(change.text, client)
		p.drain(p.sender)
		got := p.text(`SELECT string_agg(coalesce(failure, CASE WHEN sent_at IS NULL THEN 'waits' ELSE 'sent' END), '; ' ORDER BY type)
			FROM mail_requests WHERE client_id = ?`, client)
		if got != change.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestTenantsMail: a mail about a user of one client goes to no user of
// another who has the same address.
func TestTenantsMail(t *testing.T) {
	t.Parallel()
	p, now := newOffice(t), v2test.Noon
	stranger := p.AddPartner("Stranger")
	twin := p.AddUser(stranger, p.AddClient(stranger, "Hopper & Sons").ID, "ada@example.test")
	u := p.user(p.client, "ada@example.test", domain.English)
	p.must(outbox.SwitchMail(t.Context(), p.DB, twin.ClientID, domain.CertificateMail, false))
	p.completed(u, now)
	p.exposed(u, "Forum", now)
	if got := p.sent(); got != "certificate exposure-notice" {
		t.Errorf("sent %q", got)
	}
	if n := p.Number("SELECT count(*) FROM sent_emails WHERE user_id = $1 AND client_id = $2", u.User, u.Client); n != 2 {
		t.Errorf("%d are the user's", n)
	}
}
