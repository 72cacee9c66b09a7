package phishing

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/platform/mail"
)

//go:embed pages
var pageFiles embed.FS

var pageTemplates = template.Must(template.ParseFS(pageFiles, "pages/pages.tmpl"))

// textsByLanguage are the texts of the pages by language.
var textsByLanguage = readTexts()

// pageTexts are the texts of the pages in one language.
type pageTexts struct {
	Titles map[string]string // by page
	Bodies map[string]string // of the pages that are a note only

	Account, Password, SignIn                 string
	Simulated, Sender, Subject, Clues, Advice string
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
}

// write renders a page, named by its template or by its note in words.json, in the language of the mail's reader, or
// in English. s may be zero if the page is not about a mail.
func (p *Pages) write(c *gin.Context, status int, name string, s domain.Simulation) {
	language := s.Language
	if _, known := textsByLanguage[language]; !known {
		language = domain.English
	}
	w := textsByLanguage[language]
	shown := page{Lang: language.Tag(), Title: w.Titles[name], Body: w.Bodies[name], Words: w}
	layout := name
	switch {
	case shown.Body != "":
		layout = "note"
	case name == "lesson":
		values := placeholders(s, "", p.db.Now())
		shown.Subject = expand(s.Template.Subject, values, mail.OneLine)
		if from, err := sender(s.Template, values); err == nil {
			shown.From = strings.TrimSpace(from.Name + " <" + from.Address + ">")
		}
		shown.Clues = mail.Clues(language, s.Template.Clues())
	}
	setPrivateHeaders(c)
	var text bytes.Buffer
	if err := pageTemplates.ExecuteTemplate(&text, layout, shown); err != nil {
		p.log.ErrorContext(c.Request.Context(), "a page was not written", "page", name, "error", err)
		c.Status(http.StatusInternalServerError)
		return
	}
	c.Data(status, "text/html; charset=utf-8", text.Bytes())
}
