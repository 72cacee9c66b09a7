package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/phishing"
)

// Templates is the command templates, for templates of simulated phishing mails.
type Templates struct {
	Import importTemplatesCmd `cmd:"" help:"Import templates in the form that CISA publishes them in."`
	Enable enableTemplatesCmd `cmd:"" help:"Choose the categories of templates that a client is sent."`
}

type importTemplatesCmd struct {
	database.Flags
	File     string          `arg:"" type:"existingfile" help:"A JSON list of templates, each with name, subject, from_address, html, text, deception_score and indicators."`
	Language domain.Language `required:"" enum:"en,es,fr-ca" env:"-" help:"The language that the templates are in: en, es or fr-ca."`
	Category string          `required:"" env:"-" help:"The category that clients enable them by."`
}

// Run imports the templates that can be. An entry that is wrong, or that holds a
// placeholder that is not known, is reported and makes the command fail in the
// end; the others are imported all the same.
func (c importTemplatesCmd) Run(ctx context.Context, s cli.Env) error {
	if strings.TrimSpace(c.Category) == "" {
		return errors.New("--category is empty")
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	templates, faults, err := readTemplates(text, c.Language, c.Category)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	for _, fault := range faults {
		fmt.Fprintln(s.Err, "partnerapi:", fault)
	}
	return c.With(ctx, s, func(d *db.DB) error {
		var added, changed int
		err = database.Audited(ctx, d, &domain.AuditEntry{Operation: "templates import"}, func(ctx context.Context) error {
			added, changed, err = d.ImportTemplates(ctx, templates)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "%d added, %d changed, %d unchanged; %d left out\n", added, changed, len(templates)-added-changed,
			len(faults))
		if len(faults) > 0 {
			return fmt.Errorf("%d of the entries of %s were not imported", len(faults), c.File)
		}
		return nil
	})
}

// templateEntry is a template as CISA publishes it. An indicator is above 0
// where the mail has it.
type templateEntry struct {
	Name           string                    `json:"name"`
	Subject        string                    `json:"subject"`
	FromAddress    string                    `json:"from_address"`
	HTML           string                    `json:"html"`
	Text           string                    `json:"text"`
	DeceptionScore int                       `json:"deception_score"`
	Indicators     map[string]map[string]int `json:"indicators"`
}

func (e templateEntry) name() string { return strings.TrimSpace(e.Name) }

// readTemplates reads a file: the templates that can be imported, and what is
// wrong with the other entries. Only a file that is no JSON list is an error.
func readTemplates(
	text []byte, language domain.Language, category string,
) (templates []domain.Template, faults []error, err error) {
	faults, err = eachEntry(text, "templates", func(e templateEntry) error {
		t, err := e.template()
		if err != nil {
			return err
		}
		t.Language, t.Category = language, category
		templates = append(templates, t)
		return nil
	})
	return templates, faults, err
}

// The most characters that a template's name and subject may have.
const (
	longestName    = 200
	longestSubject = 500
)

// template checks the entry and puts it into the service's terms.
func (e templateEntry) template() (domain.Template, error) {
	t := domain.Template{Name: e.name(), TemplateContent: domain.TemplateContent{
		Difficulty: e.DeceptionScore, Landing: domain.LandingLesson,
	}}
	unknown := map[string]bool{}
	for _, part := range []struct {
		name string
		from string
		to   *string
	}{
		{"subject", e.Subject, &t.Subject}, {"from_address", e.FromAddress, &t.From}, {"html", e.HTML, &t.HTML},
		{"text", e.Text, &t.Text},
	} {
		if strings.TrimSpace(part.from) == "" {
			return t, errors.New("needs a " + part.name)
		}
		if strings.ContainsRune(part.from+e.Name, 0) {
			return t, errors.New("holds a NUL character")
		}
		*part.to = translatePlaceholders(part.from, unknown)
	}
	t.Subject, t.From = strings.Join(strings.Fields(t.Subject), " "), strings.TrimSpace(t.From)
	switch {
	case t.Name == "":
		return t, errors.New("needs a name")
	case utf8.RuneCountInString(t.Name) > longestName:
		return t, fmt.Errorf("has a name of more than %d characters", longestName)
	case utf8.RuneCountInString(t.Subject) > longestSubject:
		return t, fmt.Errorf("has a subject of more than %d characters", longestSubject)
	case e.DeceptionScore < 1 || e.DeceptionScore > 6:
		return t, fmt.Errorf("deception_score %d is not from 1 to 6", e.DeceptionScore)
	case len(unknown) > 0:
		return t, fmt.Errorf("holds placeholders that are not known: %s",
			strings.Join(slices.Sorted(maps.Keys(unknown)), ", "))
	}
	var err error
	if t.Indicators, err = e.indicators(); err != nil {
		return t, err
	}
	return t, phishing.Check(t)
}

func (e templateEntry) indicators() ([]domain.Indicator, error) {
	list := []domain.Indicator{}
	for _, group := range e.Indicators {
		for name, strength := range group {
			i := domain.Indicator(name)
			if !i.Known() {
				return nil, fmt.Errorf("the indicator %q is not known", name)
			}
			if strength > 0 {
				list = append(list, i)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

var braces = regexp.MustCompile(`(?s)\{\{(.*?)\}\}`)

// knownPlaceholders are CISA's and what takes their place: one of the service's
// own, or an invented value for what is drawn at random there.
var knownPlaceholders = map[string]string{
	"url": "{{link}}", "target['email']": "{{email}}", "target['first_name']": "{{first_name}}",
	"target['last_name']": "{{last_name}}",
	"customer['name']":    "{{company}}", "customer['identifier']": "{{company}}",
	"time.current_year_long()": "{{year}}", "time.current_date_long()": "{{date}}",
	"time.current_date_short()": "{{date}}",
	"time.current_month_long()": "{{month}}", "time.current_month_short()": "{{month}}",
	"fake.first_name": "Jordan", "fake.first_name_male": "Marcus", "fake.first_name_female": "Elena",
	"fake.name_female": "Elena Brandt",
	"fake.last_name":   "Whitlock", "fake.user_name": "jwhitlock", "fake.job": "Coordinator",
	"fake.company":     "Northfield Services",
	"fake.domain_name": "northfield.example", "fake.city": "Fairview", "fake.address": "12 Elm Street, Fairview",
	"fake.phone_number":  "555-0142",
	"fake.random_number": "40721", "fake.random_digit": "7", "fake.random_lowercase_letter": "k",
	"fake.password": "Xk7-maple-40",
}

// translatePlaceholders puts the service's placeholders into a text, and adds
// those that it does not know to unknown. The service's own stay.
func translatePlaceholders(text string, unknown map[string]bool) string {
	if strings.Contains(braces.ReplaceAllString(text, ""), "{{") {
		unknown["{{ without its }}"] = true
	}
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimSpace(found[2 : len(found)-2])
		if to, ok := knownPlaceholders[name]; ok {
			return to
		}
		if !slices.Contains(phishing.Placeholders, name) {
			unknown[name] = true
		}
		return "{{" + name + "}}"
	})
}
