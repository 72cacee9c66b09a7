package phishing

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/mail"
)

//go:embed pages
var pageFiles embed.FS

var pageTemplates = template.Must(template.ParseFS(pageFiles, "pages/pages.tmpl"))

// textsByLanguage are the texts of the pages and of the links to them, by language.
var textsByLanguage = readTexts()

// pageTexts are the texts of the pages in one language.
type pageTexts struct {
	Titles map[string]string // by page
	Bodies map[string]string // by page, of pages that consist of a note

	Account, Password, SignIn                 string
	Simulated, Sender, Subject, Clues         string
	Next, NextPassword, NextReport, NextLearn string // the heading of what to do, and the steps
	Training                                  string // of the link to the reader's training
	Contact                                   string // before the brand's contact

	Report     string // of the link to the page that reports an email, and of its button
	ReportNote string
}

// readTexts parses the embedded texts. It panics on an error, as template.Must does.
func readTexts() (all map[domain.Language]pageTexts) {
	text, err := pageFiles.ReadFile("pages/words.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		panic(err)
	}
	return all
}

// page is the data of a page template.
type page struct {
	Lang, Title   string
	Body          string // of a note
	Words         pageTexts
	From, Subject string
	Clues         []string
	AskedPassword bool // the page had a sign-in form
	Brand         pageBrand
}

// write renders a page with a status, in the language of the simulation's reader, or in English. name is the name of a
// template, or of a note in words.json. s may be zero for a note; the page "lesson" shows its sender, subject and
// clues.
func (p *Pages) write(c *gin.Context, status int, name string, s domain.Simulation) {
	language := s.Language
	if _, ok := textsByLanguage[language]; !ok {
		language = domain.English
	}
	w := textsByLanguage[language]
	data := page{Lang: language.Tag(), Title: w.Titles[name], Body: w.Bodies[name], Words: w}
	layout := name
	switch {
	case data.Body != "":
		layout = "note"
	case name == "lesson":
		data.explain(s, language, p.db.Now())
		data.Brand = newPageBrand(p.brandOf(c.Request.Context(), s.Client))
	}
	setPrivateHeaders(c)
	var text bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&text, layout, data); err != nil {
		p.log.ErrorContext(c.Request.Context(), "a page was not rendered", "page", name, "error", err)
		c.Status(http.StatusInternalServerError)
		return
	}
	c.Data(status, "text/html; charset=utf-8", text.Bytes())
}

// explain sets what a lesson says of a simulation: its sender, its subject and its clues.
func (d *page) explain(s domain.Simulation, language domain.Language, now time.Time) {
	values := placeholders(s, "" /* no link */, now)
	d.Subject = expand(s.Template.Subject, values, mail.OneLine)
	if from, err := sender(s.Template, values); err == nil { // else the page shows none
		d.From = strings.TrimSpace(from.Name + " <" + from.Address + ">")
	}
	if d.Clues = db.TemplateCues(s.Template.ID, language); d.Clues == nil {
		d.Clues = mail.Clues(language, s.Template.Clues())
	}
	d.AskedPassword = s.Template.Landing == domain.LandingForm
}
