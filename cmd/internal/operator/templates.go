package operator

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/mail"
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
	"partnerapi/platform/transfer"
)

// Templates is the command templates, for templates of simulated phishing emails.
type Templates struct {
	Import importTemplatesCmd `cmd:"" help:"Import templates in CISA or GoPhish format." example:"templates import --language en --category invoices templates.json"`
	Enable enableTemplatesCmd `cmd:"" help:"Choose the categories from which the service picks templates for a client." example:"templates enable 'Hillside Dental' invoices"`
}

type importTemplatesCmd struct {
	database.Flags
	File       string          `arg:"" type:"existingfile" help:"JSON array of templates, either as published by CISA (each with name, subject, from_address, html, text, deception_score and indicators) or as exported by GoPhish (GET /api/templates/)."`
	Language   domain.Language `required:"" enum:"en,es,fr-ca" env:"-" help:"The language of the templates: en, es or fr-ca."`
	Category   string          `required:"" env:"-" help:"The category of the templates, for use with templates enable."`
	From       string          `env:"-" placeholder:"SENDER" help:"The sender for templates that have none, such as GoPhish templates: name@example.com or Name <name@example.com>."`
	Difficulty int             `default:"3" env:"-" help:"Difficulty of templates without a deception_score, from 1 to 6."`
}

func (importTemplatesCmd) Help() string {
	return "For each template, prints the links that will lead to the tracked page, and warns about images " +
		"and other content that emails would load from elsewhere. If a template is invalid, it is skipped and printed, and " +
		"the exit status is 1."
}

// Run imports the valid templates. Invalid entries are reported, and the command then fails at its end.
func (c importTemplatesCmd) Run(ctx context.Context, s cli.Env) error {
	if strings.TrimSpace(c.Category) == "" {
		return errors.New("--category must not be empty")
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	file, err := c.readTemplates(text)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	faults := file.faults
	for _, note := range file.notes {
		fmt.Fprintln(s.Out, note)
	}
	for _, warning := range file.warnings {
		fmt.Fprintln(s.Err, "partnerapi: warning:", warning)
	}
	err = importEntries(ctx, s, c.Flags, "templates import", file.templates, faults, (*db.DB).ImportTemplates,
		fmt.Sprintf("%d skipped", len(faults)))
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("%d entries of %s were not imported", len(faults), c.File)
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

// templateEntry is a template in CISA's or GoPhish's format. An indicator is above 0 if the email shows it.
//
// GoPhish's is documented at https://docs.getgophish.com/api-documentation/templates. It has neither a score nor
// indicators, may have one of html and text only, and a sender (envelope_sender) only in its later versions.
type templateEntry struct {
	Name           string                    `json:"name"`
	Subject        string                    `json:"subject"`
	FromAddress    string                    `json:"from_address"`
	EnvelopeSender string                    `json:"envelope_sender"`
	HTML           string                    `json:"html"`
	Text           string                    `json:"text"`
	DeceptionScore *int                      `json:"deception_score"`
	Indicators     map[string]map[string]int `json:"indicators"`
	Attachments    []json.RawMessage         `json:"attachments"`
}

func (e templateEntry) name() string { return strings.TrimSpace(e.Name) }

// templateFile is the content of a file: the valid templates with what is to be said of them, and the faults of the
// other entries.
type templateFile struct {
	templates       []domain.Template
	notes, warnings []string
	faults          []error
}

// readTemplates parses a file. It fails only if the file is not a JSON list.
func (c importTemplatesCmd) readTemplates(text []byte) (file templateFile, err error) {
	file.faults, err = eachEntry(text, "templates", func(e templateEntry) error {
		t, err := c.toTemplate(e)
		if err != nil {
			return err
		}
		found, err := phishing.Inspect(t)
		if err != nil {
			return err
		}
		file.templates = append(file.templates, t)
		file.describe(t.Name, len(e.Attachments), found)
		return nil
	})
	return file, err
}

// describe adds what is to be said of a template.
func (f *templateFile) describe(name string, attachments int, found phishing.Findings) {
	name = domain.Visible(name)
	if found.Replaced != nil {
		f.notes = append(f.notes, fmt.Sprintf("%s: links that will lead to the tracked page: %s", name, listed(found.Replaced)))
	}
	if found.Removed != nil {
		f.notes = append(f.notes, fmt.Sprintf("%s: removed: %s", name, listed(found.Removed)))
	}
	if found.Remote != nil {
		f.warnings = append(f.warnings, fmt.Sprintf("%s: emails load content from other servers, whose owners can see who "+
			"opens the emails: %s", name, listed(found.Remote)))
	}
	if attachments > 0 {
		f.warnings = append(f.warnings, fmt.Sprintf("%s: attachments are not imported: %d", name, attachments))
	}
}

// listed returns texts from outside as a list that a terminal can show, each cut to 120 characters.
func listed(texts []string) string {
	shown := make([]string, len(texts))
	for i, text := range texts {
		if shown[i] = domain.Cut(text, 120); shown[i] != text {
			shown[i] += "…"
		}
		shown[i] = domain.Visible(shown[i])
	}
	return strings.Join(shown, ", ")
}

// The most characters that a template's name and subject may have.
const (
	longestName    = 200
	longestSubject = 500
)

// withDefaults returns the entry with what it lacks: the flags' sender and score, a text or an HTML made of the other
// one, and the indicators that every simulated email has.
func (c importTemplatesCmd) withDefaults(e templateEntry) templateEntry {
	for _, from := range []string{e.EnvelopeSender, c.From} {
		if strings.TrimSpace(e.FromAddress) == "" {
			e.FromAddress = from
		}
	}
	if e.DeceptionScore == nil {
		e.DeceptionScore = &c.Difficulty
	}
	switch {
	case strings.TrimSpace(e.HTML) == "":
		e.HTML = phishing.TextToHTML(e.Text)
	case strings.TrimSpace(e.Text) == "":
		e.Text = phishing.HTMLToText(e.HTML)
	}
	if e.Indicators == nil {
		e.Indicators = map[string]map[string]int{"": {string(domain.FromOutside): 1, string(domain.ForeignLink): 1}}
	}
	return e
}

// senderName returns the name of a sender or, without one, the address, which is what GoPhish's {{.From}} is.
func senderName(from string) string {
	address, err := mail.ParseAddress(from)
	if err != nil {
		return from
	}
	return cmp.Or(address.Name, address.Address)
}

// toTemplate checks an entry, and converts it to a template with the service's placeholders in place of others.
func (c importTemplatesCmd) toTemplate(e templateEntry) (domain.Template, error) {
	e = c.withDefaults(e)
	t := domain.Template{Name: e.name(), Language: c.Language, Category: c.Category, TemplateContent: domain.TemplateContent{
		Difficulty: *e.DeceptionScore, Landing: domain.LandingLesson,
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
			return t, errors.New(cmp.Or(missing[part.name], part.name+" is required"))
		}
		if strings.ContainsRune(part.from+e.Name, 0) {
			return t, errors.New("the template contains a NUL character")
		}
		*part.to = translatePlaceholders(part.from, senderName(e.FromAddress), unknown)
	}
	t.Subject, t.From = strings.Join(strings.Fields(t.Subject), " "), strings.TrimSpace(t.From)
	switch {
	case t.Name == "":
		return t, errors.New("name is required")
	case utf8.RuneCountInString(t.Name) > longestName:
		return t, fmt.Errorf("name must be at most %d characters", longestName)
	case utf8.RuneCountInString(t.Subject) > longestSubject:
		return t, fmt.Errorf("subject must be at most %d characters", longestSubject)
	case t.Difficulty < 1 || t.Difficulty > 6:
		return t, fmt.Errorf("deception_score must be between 1 and 6: %d", t.Difficulty)
	case len(unknown) > 0:
		return t, fmt.Errorf("the template contains unknown placeholders: %s",
			strings.Join(slices.Sorted(maps.Keys(unknown)), ", "))
	}
	var err error
	t.Indicators, err = e.shownIndicators()
	return t, err
}

// missing are the errors for parts of a template that a flag or another part can replace, by the part's name.
var missing = map[string]string{
	"from_address": "from_address is required; for templates without a sender, set --from",
	"html":         "html or text is required",
}

// shownIndicators returns the indicators that the email shows, sorted. An unknown indicator is an error.
func (e templateEntry) shownIndicators() ([]domain.Indicator, error) {
	list := []domain.Indicator{}
	for _, group := range e.Indicators {
		for name, strength := range group {
			i := domain.Indicator(name)
			if !i.Known() {
				return nil, fmt.Errorf("the indicator %q is unknown", name)
			}
			if strength > 0 { // the email shows it
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

	// GoPhish's: https://docs.getgophish.com/user-guide/template-reference. {{.Tracker}} is the picture that records the
	// opening, which every simulated email has. {{.From}} is the sender's name: see translatePlaceholders.
	".FirstName": "{{first_name}}", ".LastName": "{{last_name}}", ".Email": "{{email}}", ".Position": "{{job_title}}",
	".URL": "{{link}}", ".Tracker": "", ".TrackingURL": "{{link}}/open.gif",
}

// fromPlaceholder is GoPhish's placeholder for the sender's name.
const fromPlaceholder = ".From"

// translatePlaceholders replaces the placeholders of CISA and GoPhish by the service's, and keeps the service's. from
// is the sender's name. It adds other placeholders, and braces without an end, to unknown.
func translatePlaceholders(text, from string, unknown map[string]bool) string {
	if strings.Contains(braces.ReplaceAllString(text, ""), "{{") {
		unknown["{{ without its }}"] = true
	}
	return braces.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimSpace(found[2 : len(found)-2])
		if to, ok := knownPlaceholders[name]; ok {
			return to
		}
		if name == fromPlaceholder {
			return translatePlaceholders(strings.ReplaceAll(from, "{{"+fromPlaceholder+"}}", ""), "", unknown)
		}
		if !slices.Contains(phishing.Placeholders, name) {
			unknown[name] = true
		}
		return "{{" + name + "}}"
	})
}

// byteOrderMark is what some editors write at the start of a text in UTF-8.
const byteOrderMark = "\uFEFF"

// entry is an entry of a file, with a unique name.
type entry interface{ name() string }

// eachEntry parses a JSON list and calls take for its entries, in order. It returns the faults of the entries that are
// malformed, that have the name of an earlier valid entry, or for which take fails. If the text is not a JSON list, it
// returns an error, in which what names the entries.
func eachEntry[E entry](text []byte, what string, take func(E) error) (faults []error, err error) {
	var entries []json.RawMessage
	if err := transfer.CheckText(text); err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("the file is not a JSON array of %s: %w", what, err)
	}
	numbers := map[string]int{}
	for i, raw := range entries {
		var e E
		err := json.Unmarshal(raw, &e)
		if first := numbers[e.name()]; err == nil && first > 0 {
			err = fmt.Errorf("entry %d has the same name", first)
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
	Client     string   `arg:"" help:"The client's ID, UUID or name."`
	Categories []string `arg:"" help:"Categories for simulations that specify no template, separated by spaces, or all."`
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
				return fmt.Errorf("there is no category %q; use one of %s%s", category, strings.Join(known, ", "),
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
		_, err = fmt.Fprintf(s.Out, "%s (%s) receives templates in the categories %s\n", client.Name, client.ID, strings.Join(chosen, ", "))
		return err
	})
}
