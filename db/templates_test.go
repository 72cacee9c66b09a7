package db_test

import (
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
)

// TestTemplates: the service's own are loaded once and brought up to date;
// imported ones are known by name and language, beside the service's own.
func TestTemplates(t *testing.T) {
	w := newWorld(t)
	own, err := db.OwnTemplates()
	w.Must(err)
	const count = "SELECT count(*) FROM phishing_templates"
	for range 2 {
		w.Must(w.LoadTemplates(t.Context()))
	}
	if n := w.Number(count); n != len(own) {
		t.Fatalf("%d templates, not %d", n, len(own))
	}
	w.Exec("UPDATE phishing_templates SET subject = 'old' WHERE id = $1", own[0].ID)
	w.Must(w.LoadTemplates(t.Context()))
	var subject string
	w.Scan("SELECT subject FROM phishing_templates WHERE id = $1", []any{own[0].ID}, &subject)
	if subject != own[0].Subject {
		t.Errorf("the subject is %q", subject)
	}
	imported := func(subject string, language domain.Language) []domain.Template {
		return []domain.Template{{Name: own[0].Name, Language: language, Category: "general", Subject: subject, From: "a@b.example",
			TemplateContent: domain.TemplateContent{HTML: "h", Text: "t", Difficulty: 1, Landing: domain.LandingLesson, Indicators: []domain.Indicator{domain.Fear}}}}
	}
	for _, c := range []struct {
		list           []domain.Template
		added, changed int
	}{
		{imported("s", domain.English), 1, 0}, {imported("s", domain.English), 0, 0}, {imported("other", domain.English), 0, 1},
		{imported("s", domain.Spanish), 1, 0}, {nil, 0, 0},
	} {
		added, changed, err := w.ImportTemplates(t.Context(), c.list)
		if err != nil || added != c.added || changed != c.changed {
			t.Errorf("%d added, %d changed: %v", added, changed, err)
		}
	}
	w.Must(w.LoadTemplates(t.Context()))
	if n := w.Number(count); n != len(own)+2 {
		t.Errorf("%d templates", n)
	}
}
