package db

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/mail"
	"strings"
	"sync"
	"text/template"
	"time"

	"partnerapi/domain"
)

// The templates of simulated emails that are part of the service.

//go:embed templates
var templateFiles embed.FS

// templateFrame is the HTML of the service's own templates. Its texts keep the placeholders of templates.
var templateFrame = template.Must(template.ParseFS(templateFiles, "templates/frame.html.tmpl"))

// ownLanguages are the languages of the service's own templates. The index is part of the ids, so another language
// comes last.
var ownLanguages = []domain.Language{domain.English, domain.Spanish, domain.French}

// qrPlaceholder is the placeholder for the URL of a picture of a QR code that leads to the page of an email.
const qrPlaceholder = "{{qr_code}}"

// ownTemplate is one of the service's own templates, in all languages.
type ownTemplate struct {
	Number          byte // part of the ids, so it must never change
	Category        string
	Difficulty      int
	Landing         domain.Landing
	Indicators      []domain.Indicator
	Sender, Address string
	Color           string // of the frame
	Meter           int    // a bar of so many percent; 0 for none
	QR              bool   // a QR code leads to the page
	Words           map[domain.Language]ownWords
}

// ownWords are the texts of one of the service's own templates in a language. The first four are all that each has.
type ownWords struct {
	Name, From, Subject string
	Text                string // paragraphs, with an empty line between them
	Link                string
	Brand               string // at the top of the frame; empty for a letter without a frame
	Heading             string
	Facts               [][2]string // labels and values
	After               string      // paragraphs after the link of a letter
	Small               string      // at the end of the frame
	Cues                []string    // what gives the email away
}

// readOwn returns the embedded templates.
var readOwn = sync.OnceValues(func() (all []ownTemplate, err error) {
	text, err := templateFiles.ReadFile("templates/own.json")
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		err = fmt.Errorf("read the service's own templates: %w", err)
	}
	return all, err
})

// OwnTemplates returns the templates that are part of the service, each in all languages, ordered by language.
func OwnTemplates() ([]domain.Template, error) {
	all, err := readOwn()
	if err != nil {
		return nil, err
	}
	var list []domain.Template
	for n, language := range ownLanguages {
		for i := range all {
			t, err := all[i].in(language, byte(n))
			if err != nil {
				return nil, err
			}
			list = append(list, t)
		}
	}
	return list, nil
}

// TemplateCues returns what gives emails of a template away, in a language. It returns nil for an imported template,
// and for an own one that has only indicators.
func TemplateCues(id domain.TemplateID, language domain.Language) []string {
	all, err := readOwn()
	if err != nil {
		return nil
	}
	for i := range all {
		for n := range ownLanguages {
			if all[i].id(byte(n)) == id {
				return all[i].Words[language].Cues
			}
		}
	}
	return nil
}

// templateEpoch is the creation time of the service's own template number 0.
var templateEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// id returns the id of the template in the language with the number n, a UUID of version 7 that ends with n and
// o.Number.
func (o *ownTemplate) id(n byte) domain.TemplateID {
	return domain.TemplateID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 0x01, 14: n, 15: o.Number}
}

// in returns the template in the language with the number n.
func (o *ownTemplate) in(language domain.Language, n byte) (domain.Template, error) {
	w := o.Words[language]
	markup, err := o.html(language, w)
	from := mail.Address{Name: w.From, Address: o.Sender}
	return domain.Template{
		ID: o.id(n), Name: w.Name, Language: language, Category: o.Category, Subject: w.Subject,
		From: from.Name + " <" + from.Address + ">", CreatedAt: templateEpoch.Add(time.Duration(o.Number) * time.Second),
		TemplateContent: domain.TemplateContent{
			HTML: markup, Text: o.text(w), Indicators: o.Indicators, Difficulty: o.Difficulty, Landing: o.Landing,
		},
	}, err
}

// html returns the HTML of the template.
func (o *ownTemplate) html(language domain.Language, w ownWords) (string, error) {
	data := struct {
		ownWords
		Text                     []string
		After                    [][]string
		Lang, Address, Color, QR string
		Meter                    int
	}{ownWords: w, Text: paragraphs(w.Text), Lang: language.Tag(), Address: o.Address, Color: o.Color, Meter: o.Meter}
	if o.QR {
		data.QR = qrPlaceholder
	}
	for _, part := range paragraphs(w.After) {
		data.After = append(data.After, strings.Split(part, "\n"))
	}
	var b strings.Builder
	if err := templateFrame.Execute(&b, data); err != nil {
		return "", fmt.Errorf("write the template %s: %w", w.Name, err)
	}
	return b.String(), nil
}

// text returns the plain text of the template.
func (o *ownTemplate) text(w ownWords) string {
	parts := paragraphs(w.Text)
	if len(w.Facts) > 0 {
		var lines []string
		for _, fact := range w.Facts {
			lines = append(lines, fact[0]+": "+fact[1])
		}
		parts = append(parts, strings.Join(lines, "\n"))
	}
	parts = append(parts, w.Link+": "+o.Address)
	parts = append(parts, paragraphs(w.After)...)
	parts = append(parts, paragraphs(w.Small)...)
	return strings.Join(parts, "\n\n") + "\n"
}

// paragraphs splits a text at its empty lines; none for an empty text.
func paragraphs(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n\n")
}
