package mail_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/mail"
	"partnerapi/v2/v2test"
)

// TestLinksOfEmails verifies that no link of an email leads to a 404: with a learning platform to a URL of it that names the
// object, and without one to a path that LearningPages serve. Those redirect to the platform once there is one.
func TestLinksOfEmails(t *testing.T) {
	t.Parallel()
	platform := must(mail.LearningURL("https://learn.example.test/start?tenant=7"))
	brand := domain.Brand{DisplayName: "Acme <IT>", AccentColor: "#ffd400", Logo: aLogo(40, 20, 9), SupportContact: "help@acme.example"}
	read := func(context.Context) (domain.Brand, error) { return brand, nil }
	served, redirecting := http.NewServeMux(), http.NewServeMux()
	for _, path := range domain.LinkPaths {
		pattern := "GET " + strings.ReplaceAll(path, ":id", "{id}")
		served.Handle(pattern, mail.LearningPages{Brand: read, Log: slog.New(slog.DiscardHandler)})
		redirecting.Handle(pattern, mail.LearningPages{Brand: read, Log: slog.New(slog.DiscardHandler), Platform: platform})
	}
	get := func(from http.Handler, path string) *http.Response {
		w := httptest.NewRecorder()
		from.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w.Result()
	}
	c := composer(t, "")
	for _, kind := range domain.MailKinds {
		if kind.Text == nil {
			continue
		}
		m := domain.Mail{
			Type: kind.Type, Language: domain.English, Course: db.NewID[domain.CourseKind](), Policy: db.NewID[domain.PolicyKind](), Invite: db.NewID[domain.InviteKind](),
		}
		query := map[domain.MessageType]string{
			domain.TrainingInvite: "course=" + m.Course.String() + "&", domain.PolicyReminder: "policy=" + m.Policy.String() + "&", domain.AdminInviteMail: "invite=" + m.Invite.String() + "&",
		}[kind.Type]
		want := "https://learn.example.test/start?" + query + "tenant=7"
		c.Learning = nil
		_, text, _ := strings.Cut(must(c.Compose(m, v2test.Noon)).Text, "https://train.example.test")
		path, _, _ := strings.Cut(text, "\n")
		if res := get(served, path); res.StatusCode != http.StatusOK {
			t.Errorf("%s leads to %s, which returns %d", kind.Type, path, res.StatusCode)
		}
		if res := get(redirecting, path); res.StatusCode != http.StatusFound || res.Header.Get("Location") != want {
			t.Errorf("%s: %s redirects to %s, want %s", kind.Type, path, res.Header.Get("Location"), want)
		}
		c.Learning = platform
		if text := must(c.Compose(m, v2test.Noon)).Text; !strings.Contains(text, "\n"+want+"\n") {
			t.Errorf("%s does not lead to %s:\n%s", kind.Type, want, text)
		}
	}
	for _, path := range []string{"/training/crs_%22%3E", "/policies/no", "/invites/" + db.NewID[domain.CourseKind]().String()} {
		if res := get(redirecting, path); res.Header.Get("Location") != platform.String() {
			t.Errorf("%s redirects to %s", path, res.Header.Get("Location"))
		}
	}
}

// TestLearningPage verifies that the page without a learning platform shows the service's brand, says in the reader's language
// that there is nothing to do, and says what an operator does, also if the brand cannot be read.
func TestLearningPage(t *testing.T) {
	t.Parallel()
	brand := domain.Brand{DisplayName: "Acme <IT>", AccentColor: "#ffd400", Logo: aLogo(40, 20, 9), SupportContact: "help@acme.example"}
	for accept, title := range map[string]string{
		"": "Your training isn’t on this page", "de,ja": "Your training isn’t on this page", "es-MX,en;q=0.5": "Su formación no está en esta página",
		"fr": "Votre formation n’est pas sur cette page", "%%": "Your training isn’t on this page",
	} {
		for _, err := range []error{nil, errors.New("down")} {
			r := httptest.NewRequest("GET", "/training", nil)
			r.Header.Set("Accept-Language", accept)
			w := httptest.NewRecorder()
			mail.LearningPages{Log: slog.New(slog.DiscardHandler), Brand: func(context.Context) (domain.Brand, error) {
				if err != nil {
					return domain.Brand{}, err
				}
				return brand, nil
			}}.ServeHTTP(w, r)
			page, branded := w.Body.String(), strings.Contains(w.Body.String(), `src="data:image/png;base64,`) && strings.Contains(w.Body.String(), `alt="Acme &lt;IT&gt;"`) &&
				strings.Contains(w.Body.String(), "help@acme.example") && strings.Contains(w.Body.String(), "#ffd400")
			if w.Code != http.StatusOK || branded != (err == nil) || !strings.Contains(page, "<h1>"+title+"</h1>") || !strings.Contains(page, "--learner-url") ||
				strings.Contains(page, "ZgotmplZ") {
				t.Errorf("%q, %v: got %d:\n%s", accept, err, w.Code, page)
			}
		}
	}
}

// TestLearningURL verifies which URLs can be those of a learning platform.
func TestLearningURL(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://learn.example.test": true, "http://127.0.0.1:9000/lms?x=1": true, "learn.example.test": false, "https://a:b@learn.example.test": false,
		"https://learn.example.test/#top": false, "https://learn.example.test/?a=1#top": false, "javascript:alert(1)": false, "": false,
	} {
		if _, err := mail.LearningURL(text); (err == nil) != want {
			t.Errorf("%q: got %v", text, err)
		}
	}
}
