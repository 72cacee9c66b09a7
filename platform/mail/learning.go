package mail

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	htmltemplate "html/template"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/text/language"

	"partnerapi/domain"
)

// LearningURL parses the URL of a learning platform: http or https with a host, optionally with a query, and without a user
// or a fragment.
func LearningURL(text string) (*url.URL, error) {
	site, _, _ := strings.Cut(text, "?")
	if _, err := PublicURL(site); err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err == nil && u.Fragment != "" {
		err = errors.New("the URL has a fragment (#…): remove it")
	}
	return u, err
}

// LearningPages serve the links of emails to users (domain.LinkPaths) on this service. They redirect to the learning
// platform or, without one, say what an operator puts there.
type LearningPages struct {
	// Platform is the URL of the learning platform; nil if there is none.
	Platform *url.URL
	// Brand reads the service's brand.
	Brand func(context.Context) (domain.Brand, error)
	Log   *slog.Logger
}

// learningBrandWithin bounds the read of the brand.
const learningBrandWithin = 2 * time.Second

// exampleLearningURL is the learning platform that the page shows as an example.
const exampleLearningURL = "https://learn.example.com/start"

// anyID matches an ID, with its prefix as the first group.
var anyID = regexp.MustCompile(`([a-z]+_)[0-9a-z]{26}`)

// learningTemplate is the page without a learning platform.
var learningTemplate = htmltemplate.Must(htmltemplate.ParseFS(textFiles, "words/learning.html.tmpl"))

// learningPage is the data of learningTemplate.
type learningPage struct {
	Lang, Title string
	Body        []string
	Header      header
	Logo        htmltemplate.URL // the file as a data URL
	Example     string
	Links       []learningLink
}

// learningLink is a link with what it leads to.
type learningLink struct{ To, URL string }

// ServeHTTP serves a path of domain.LinkPaths.
func (p LearningPages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Robots-Tag": "noindex", "X-Content-Type-Options": "nosniff",
		"Vary":                    "Accept-Language",
		"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; frame-ancestors 'none'; base-uri 'none'",
	} {
		w.Header().Set(name, value)
	}
	if p.Platform != nil {
		http.Redirect(w, r, domain.ParseMailLink(r.URL.Path).On(p.Platform), http.StatusFound)
		return
	}
	page, err := p.page(r.Context(), acceptedLanguage(r.Header.Get("Accept-Language")))
	var html bytes.Buffer
	if err == nil {
		err = learningTemplate.Execute(&html, page)
	}
	if err != nil {
		p.Log.ErrorContext(r.Context(), "the page for links in emails was not rendered", "error", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Write(html.Bytes()) // an error means that the reader has hung up
}

// page returns the page in a language. If the brand cannot be read, the page has none.
func (p LearningPages) page(ctx context.Context, in domain.Language) (learningPage, error) {
	ctx, cancel := context.WithTimeout(ctx, learningBrandWithin)
	defer cancel()
	brand, err := p.Brand(ctx)
	if err != nil {
		p.Log.ErrorContext(ctx, "the page for links in emails is shown without a brand", "error", err)
	}
	brand.DisplayName = cmp.Or(brand.DisplayName, domain.ServiceName)
	r := renderer{templates: words()[in], values: values{Contact: string(brand.SupportContact)}}
	var parts content
	parts.setBrand(&r, brand)
	page := learningPage{
		Lang: in.Tag(), Title: r.render("learning.title"), Body: r.paragraphs("learning.body"), Header: parts.Header,
		Example: exampleLearningURL,
	}
	if logo := parts.Header.Logo; parts.Header.HasLogo() {
		page.Logo = htmltemplate.URL(domain.LogoURL(logo.Type, logo.Data))
	}
	example, err := url.Parse(exampleLearningURL)
	if err != nil {
		return page, err
	}
	for _, l := range []struct {
		to   string
		link domain.MailLink
	}{
		{"a user’s training", domain.MailLink{}}, {"a course", domain.LinkToCourse(domain.CourseID{15: 1})},
		{"a policy", domain.LinkToPolicy(domain.PolicyID{15: 1})}, {"an invitation", domain.LinkToInvite(domain.InviteID{15: 1})},
	} {
		page.Links = append(page.Links, learningLink{l.to, anyID.ReplaceAllString(l.link.On(example), "${1}…")})
	}
	return page, r.err
}

// acceptedLanguage returns the language of texts that suits a header Accept-Language best; English if none does.
func acceptedLanguage(header string) domain.Language {
	accepted, _, err := language.ParseAcceptLanguage(header)
	if err != nil {
		return domain.English
	}
	_, i, confidence := matcher.Match(accepted...)
	if confidence == language.No {
		return domain.English
	}
	return domain.Language(languages[i])
}

// languages are the languages of texts.
var languages = domain.Language("").Values()

// matcher finds the language that suits best, by its index in languages.
var matcher = newMatcher()

func newMatcher() language.Matcher {
	tags := make([]language.Tag, len(languages))
	for i, name := range languages {
		tags[i] = language.MustParse(domain.Language(name).Tag())
	}
	return language.NewMatcher(tags)
}
