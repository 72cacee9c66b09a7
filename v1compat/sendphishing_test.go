package v1compat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"mime"
	"mime/multipart"
	"net"
	"net/http"
	"net/mail"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	platformmail "partnerapi/platform/mail"
	"partnerapi/platform/phishing"
	"partnerapi/v2/api"
)

func TestSendPhishingGolden(t *testing.T) {
	t.Parallel()
	user, template := db.NewID[domain.UserKind](), db.NewID[domain.TemplateKind]()
	in := &sendPhishing{}
	in.Body.UserID, in.Body.PhishingTemplate = new(uuidOf(user)), idmap.RefTo(template)
	in.Body.SendTime = new(domain.At(noon))
	out := fromSendPhishing(in)
	if b := out.Body; len(b.UserIDs) != 1 || b.UserIDs[0] != user || *b.TemplateID != template || !b.SendAt.Value.Time.Equal(noon) {
		t.Errorf("asks v2 for %+v", out)
	}
	text, err := json.Marshal(toMessage(&api.SentToUser{SendAt: domain.At(noon)}))
	if want := `{"message":"The phishing simulation is scheduled for 2026-06-15T12:00:00Z."}`; err != nil || string(text) != want {
		t.Errorf("%s: %v", text, err)
	}
}

// TestSendPhishingConditions: what v1 says to each wrong request (decisions
// 5.3), and that none of them schedules anything.
func TestSendPhishingConditions(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	if err := r.DB.LoadTemplates(t.Context()); err != nil {
		t.Fatal(err)
	}
	template := r.template()
	stranger := r.Tenant("Stranger")
	theirs := r.User(stranger, r.Client(stranger, "Their client").ID, "eve@example.com")
	inactive := r.User(r.tenant, r.client, "gone@example.com")
	r.Exec("UPDATE users SET status = 'inactive' WHERE id = $1", inactive.ID)
	reading := r.NewKey(r.tenant, []domain.Scope{domain.Read}, nil)
	mine := r.user.ID.UUID()
	for name, c := range map[string]struct {
		key, body string
		status    int
		says      string
	}{
		"no key":              {"", `{}`, 401, ""},
		"a key that reads":    {reading, `{"user_id": "` + mine + `", "phishing_template": ` + template + `}`, 403, ""},
		"no user":             {r.tenant.Key, `{"phishing_template": ` + template + `}`, 400, "user_id is required"},
		"empty user":          {r.tenant.Key, `{"user_id": "", "phishing_template": ` + template + `}`, 400, "user_id must be a UUID"},
		"malformed user":      {r.tenant.Key, `{"user_id": "x", "phishing_template": ` + template + `}`, 400, "user_id"},
		"unknown user":        {r.tenant.Key, `{"user_id": "` + db.NewID[domain.UserKind]().UUID() + `", "phishing_template": ` + template + `}`, 404, ""},
		"another's user":      {r.tenant.Key, `{"user_id": "` + theirs.ID.UUID() + `", "phishing_template": ` + template + `}`, 404, ""},
		"inactive user":       {r.tenant.Key, `{"user_id": "` + inactive.ID.UUID() + `", "phishing_template": ` + template + `}`, 400, "user_id is an inactive user"},
		"no template":         {r.tenant.Key, `{"user_id": "` + mine + `"}`, 400, "phishing_template is required"},
		"nor for another's":   {r.tenant.Key, `{"user_id": "` + theirs.ID.UUID() + `", "phishing_template": null}`, 400, "phishing_template is required"},
		"unknown template":    {r.tenant.Key, `{"user_id": "` + mine + `", "phishing_template": 2147483647}`, 400, "phishing_template is not a phishing template"},
		"a text for a number": {r.tenant.Key, `{"user_id": "` + mine + `", "phishing_template": "x"}`, 400, "phishing_template"},
		"an empty time":       {r.tenant.Key, `{"user_id": "` + mine + `", "phishing_template": ` + template + `, "send_time": ""}`, 400, "send_time must be"},
		"an empty number":     {r.tenant.Key, `{"user_id": "` + mine + `", "phishing_template": ""}`, 400, "phishing_template must be"},
		"a bad time":          {r.tenant.Key, `{"user_id": "` + mine + `", "phishing_template": ` + template + `, "send_time": "soon"}`, 400, "send_time"},
		"no JSON":             {r.tenant.Key, `{`, 400, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := r.Do("POST", "/v1/sendphishing", c.key, c.body)
			if message, _ := got.Field("message").(string); got.Status != c.status || !strings.HasPrefix(message, c.says) {
				t.Errorf("%d %s", got.Status, got.Body)
			}
		})
	}
	if n := r.Number("SELECT (SELECT count(*) FROM phishing_results) + (SELECT count(*) FROM outbox)"); n != 0 {
		t.Errorf("%d were scheduled", n)
	}
}

// template is the number of the first of the service's own templates.
func (r *reader) template() string {
	r.T.Helper()
	own, err := db.OwnTemplates()
	if err != nil {
		r.T.Fatal(err)
	}
	return r.numberOf(idmap.Template, idmap.UUID(own[0].ID))
}

// inbox is a real SMTP server that keeps what it is sent.
type inbox struct {
	mails chan []byte
	to    string
}

func (b *inbox) NewSession(*smtp.Conn) (smtp.Session, error) { return b, nil }
func (b *inbox) Reset()                                      {}
func (b *inbox) Logout() error                               { return nil }
func (b *inbox) Mail(string, *smtp.MailOptions) error        { return nil }
func (b *inbox) Rcpt(to string, _ *smtp.RcptOptions) error   { b.to = to; return nil }
func (b *inbox) Data(from io.Reader) error {
	text, err := io.ReadAll(from)
	b.mails <- text
	return err
}

func startInbox(t *testing.T) (b *inbox, url string) {
	t.Helper()
	b = &inbox{mails: make(chan []byte, 8)}
	server := smtp.NewServer(b)
	server.ErrorLog = log.New(io.Discard, "", 0)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return b, "smtp://" + listener.Addr().String()
}

// htmlOf is the HTML part of a mail.
func htmlOf(t *testing.T, text []byte) string {
	t.Helper()
	m, err := mail.ReadMessage(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		t.Fatal(err)
	}
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(part); strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") && err == nil {
			return string(body)
		}
	}
}

var href = regexp.MustCompile(`href="([^"]+)"`)

// TestTheWholeWay: a send is asked for through v1, its mail arrives at a mail
// server, its link is opened, and both versions and the user's risk show it.
func TestTheWholeWay(t *testing.T) {
	t.Parallel()
	r := newReader(t, setup{})
	if err := r.DB.LoadTemplates(t.Context()); err != nil {
		t.Fatal(err)
	}
	box, server := startInbox(t)
	sender, err := platformmail.Open(server, "")
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	secret, err := r.DB.TrackingSecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	quiet := slog.New(slog.DiscardHandler)
	networks, err := phishing.ParseNetworks(nil)
	if err != nil {
		t.Fatal(err)
	}
	tokens := phishing.NewTokens(secret)
	phishing.NewPages(r.DB, tokens, networks, quiet).Mount(r.Engine)

	before := r.Get("/v2/users/"+r.user.ID.String()+"/risk", r.tenant.Key).Want(200).Field("score").(float64)
	r.Do("POST", "/v1/sendphishing", r.tenant.Key, `{"user_id": "`+r.user.ID.UUID()+`", "phishing_template": `+r.template()+`, "send_time": "2026-06-16T09:00:00Z"}`).Want(200)
	if n := r.Number("SELECT count(*) FROM outbox WHERE kind = 'simulation' AND due_at = '2026-06-16T09:00:00Z'"); n != 1 {
		t.Fatalf("%d jobs are scheduled for then", n)
	}
	r.Clock.Set(time.Date(2026, 6, 16, 9, 0, 0, 0, time.UTC))
	var result domain.ResultID
	if err := r.DB.SQL().QueryRow("SELECT id FROM phishing_results").Scan(&result); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(dispatch(r.Harness, sender, tokens), dispatch(r.Harness, sender, tokens)); got != "[sent] []" {
		t.Fatal(got)
	}
	if len(box.mails) != 1 || box.to != r.user.Email {
		t.Fatalf("%d mails, the last to %s", len(box.mails), box.to)
	}
	link := href.FindStringSubmatch(htmlOf(t, <-box.mails))[1]
	path := "/v1/users/" + r.user.ID.UUID() + "/phishing"
	if got := r.list(path, r.tenant.Key).texts("status"); fmt.Sprint(got) != "[Sent]" {
		t.Errorf("before the click: %v", got)
	}

	r.Clock.Advance(time.Minute)
	page, err := http.Get(link) // a reader's browser
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	if page.StatusCode != http.StatusOK {
		t.Fatalf("%s answers %s", link, page.Status)
	}
	shown := r.list(path, r.tenant.Key)
	if len(shown.Items) != 1 || shown.Items[0]["status"] != "Clicked" || shown.Items[0]["status_date"] != "2026-06-16T09:01:00Z" {
		t.Errorf("v1 shows %v", shown.Items)
	}
	v2shown := r.Get("/v2/clients/"+r.client.String()+"/phishing/results?result_id="+result.String(), r.tenant.Key).Want(200)
	row := v2shown.Field("data").([]any)[0].(map[string]any)
	if row["status"] != "clicked" || row["automated"] != false || row["clicked_at"] != "2026-06-16T09:01:00.000000Z" || row["sent_at"] != "2026-06-16T09:00:00.000000Z" {
		t.Errorf("v2 shows %v", row)
	}
	if after := r.Get("/v2/users/"+r.user.ID.String()+"/risk", r.tenant.Key).Want(200).Field("score").(float64); after >= before {
		t.Errorf("the score went from %v to %v", before, after)
	}
	summary := r.Get("/v2/clients/"+r.client.String()+"/phishing/summary", r.tenant.Key).Want(200)
	if summary.Field("30d.sent") != 1.0 || summary.Field("30d.clicked") != 1.0 {
		t.Errorf("the summary is %s", summary.Body)
	}
	if n := r.Number("SELECT count(*) FROM sent_emails WHERE message_type = 'phishing' AND from_email = 'storage@mail-desk.example'"); n != 1 {
		t.Errorf("%d records of the mail", n)
	}
}
