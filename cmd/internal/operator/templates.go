package operator

import (
	"context"
	"encoding/json"
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
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/phishing"
)

// Templates is the command templates, for templates of simulated phishing mails.
type Templates struct {
	Import importTemplatesCmd `cmd:"" help:"Import templates in the format that CISA publishes." example:"templates import --language en --category invoices templates.json"`
	Enable enableTemplatesCmd `cmd:"" help:"Choose the categories of templates that a client is sent." example:"templates enable 'Hillside Dental' invoices"`
}

type importTemplatesCmd struct {
	database.Flags
	File     string          `arg:"" type:"existingfile" help:"A JSON list of templates, each with name, subject, from_address, html, text, deception_score and indicators."`
	Language domain.Language `required:"" enum:"en,es,fr-ca" env:"-" help:"The language that the templates are in: en, es or fr-ca."`
	Category string          `required:"" env:"-" help:"The category that clients enable them by."`
}

// Run imports the valid templates. Invalid entries are reported, and the command then fails at its end.
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
	err = importEntries(ctx, s, c.Flags, "templates import", templates, faults, (*db.DB).ImportTemplates,
		fmt.Sprintf("%d left out", len(faults)))
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("%d of the entries of %s were not imported", len(faults), c.File)
	}
	return err
}

// importEntries imports the valid entries of a file by store, with an audit entry of the operation. It prints the
// faults of the invalid entries, and how many valid ones were added, changed and unchanged, followed by note.
func importEntries[E any](
	ctx context.Context, s cli.Env, f database.Flags, operation string, valid []E, faults []error,
	store func(*db.DB, context.Context, []E) (added, changed int, err error), note string,
) error {
	for _, fault := range faults {
		fmt.Fprintln(s.Err, "partnerapi:", fault)
	}
	return f.With(ctx, s, func(d *db.DB) error {
		var added, changed int
		err := database.RunAudited(ctx, d, &domain.AuditEntry{Operation: operation}, func(ctx context.Context) (err error) {
			added, changed, err = store(d, ctx, valid)
			return err
		})
		if err == nil {
			_, err = fmt.Fprintf(s.Out, "%d added, %d changed, %d unchanged; %s\n", added, changed, len(valid)-added-changed, note)
		}
		return err
	})
}

// templateEntry is a template in CISA's format. An indicator is above 0 if the mail shows it.
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

// readTemplates parses a file into the valid templates and the faults of the other entries. It fails only if the
// file is not a JSON list.
func readTemplates(
	text []byte, language domain.Language, category string,
) (templates []domain.Template, faults []error, err error) {
	faults, err = eachEntry(text, "templates", func(e templateEntry) error {
		t, err := e.toTemplate()
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

// toTemplate checks the entry, and converts it to a template with the service's placeholders in place of CISA's.
func (e templateEntry) toTemplate() (domain.Template, error) {
	t := domain.Template{Name: e.name(), TemplateContent: domain.TemplateContent{
		Difficulty: e.DeceptionScore, Landing: domain.LandingLesson,
	}}
	unknown := map[string]bool{}
	for _, part := range []struct {
		name, from string
		to         *string
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
	if t.Indicators, err = e.shownIndicators(); err != nil {
		return t, err
	}
	return t, phishing.Check(t)
}

// shownIndicators returns the indicators that the mail shows, sorted. An unknown indicator is an error.
func (e templateEntry) shownIndicators() ([]domain.Indicator, error) {
	list := []domain.Indicator{}
	for _, group := range e.Indicators {
		for name, strength := range group {
			i := domain.Indicator(name)
			if !i.Known() {
				return nil, fmt.Errorf("the indicator %q is not known", name)
			}
			if strength > 0 { // the mail shows it
				list = append(list, i)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

var braces = regexp.MustCompile(`(?s)\{\{(.*?)\}\}`)

// knownPlaceholders maps CISA's placeholders to the service's, or to a fixed value if CISA's has a random one.
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

// translatePlaceholders replaces CISA's placeholders by the service's, and keeps the service's. It adds other placeholders,
// and braces without an end, to unknown.
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

// entry is an entry of a file, with a unique name.
type entry interface{ name() string }

// eachEntry parses a JSON list and calls take for its entries, in order. It returns the faults of the entries that are
// malformed, that have the name of an earlier valid entry, or for which take fails. If the text is not a JSON list, it
// returns an error, in which what names the entries.
func eachEntry[E entry](text []byte, what string, take func(E) error) (faults []error, err error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("not a JSON list of %s: %w", what, err)
	}
	numbers := map[string]int{}
	for i, raw := range entries {
		var e E
		err := json.Unmarshal(raw, &e)
		if first := numbers[e.name()]; err == nil && first > 0 {
			err = fmt.Errorf("has the name of entry %d", first)
		}
		if err == nil {
			err = take(e)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("entry %d (%.80q): %w", i+1, e.name(), err))
			continue
		}
		numbers[e.name()] = i + 1
	}
	return faults, nil
}

type enableTemplatesCmd struct {
	database.Flags
	Client     string   `arg:"" help:"The client: its id, UUID or name."`
	Categories []string `arg:"" help:"The categories whose templates it may be sent, one after the other; or all."`
}

// Run sets the categories from which a client's sends draw if they name no template (decisions 7.5). An unknown
// category is an error that lists the existing ones.
func (c enableTemplatesCmd) Run(ctx context.Context, s cli.Env) error {
	return c.WithClient(ctx, s, c.Client, func(d *db.DB, client db.ClientName) error {
		known, err := d.TemplateCategories(ctx)
		if err != nil {
			return err
		}
		chosen := slices.Compact(slices.Sorted(slices.Values(c.Categories)))
		if slices.Equal(chosen, []string{"all"}) {
			chosen = nil // which stands for all
		}
		for _, category := range chosen {
			if !slices.Contains(known, category) {
				return fmt.Errorf("no template is of category %q; there are %s%s", category, strings.Join(known, ", "),
					output.DidYouMean(category, known))
			}
		}

		err = database.RunAudited(ctx, d, database.ClientEntry("templates enable", client.ID, "categories"), func(ctx context.Context) error {
			return d.EnableCategories(ctx, client.ID, chosen)
		})
		if err != nil {
			return err
		}
		if chosen == nil {
			chosen = known
		}
		_, err = fmt.Fprintf(s.Out, "%s (%s) is sent templates of %s\n", client.Name, client.ID, strings.Join(chosen, ", "))
		return err
	})
}
