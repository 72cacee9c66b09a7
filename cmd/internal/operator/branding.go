package operator

import (
	"bufio"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/config"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/platform/mail"
	"partnerapi/platform/phishing"
)

// Branding is the command branding, for the brands of partners, clients and the service.
type Branding struct {
	Set     setBrandingCmd     `cmd:"" help:"Set brand fields for a partner, a client or the service." example:"branding set 'Northlight MSP' --display-name 'Northlight Security' --accent-color '#0b6e4f' --support-contact help@northlight.example\nbranding set 'Northlight MSP' --client 'Hillside Dental' --display-name 'Hillside Dental IT'"`
	Show    showBrandingCmd    `cmd:"" help:"Show a brand, including inherited fields and the source of each value." example:"branding show 'Northlight MSP' --client 'Hillside Dental'\nbranding show --service --json"`
	Preview previewBrandingCmd `cmd:"" help:"Write sample files with a brand: an email, the page shown after a click on a simulation, and a report page." example:"branding preview 'Northlight MSP' --client 'Hillside Dental' --out ."`
	Clear   clearBrandingCmd   `cmd:"" help:"Remove the brand of a partner, a client or the service, so that all its fields are inherited." example:"branding clear 'Northlight MSP' --client 'Hillside Dental'"`
}

// brandOwnerCmd is a command for the brand of a partner, a client or the service.
type brandOwnerCmd struct {
	database.Flags
	Partner string `arg:"" optional:"" help:"The partner's ID, UUID or name."`
	Client  string `env:"-" help:"ID, UUID or name of one of the partner's clients. The client's brand overrides the partner's."`
	Service bool   `env:"-" help:"The service's own brand, from which partners inherit fields."`
}

// Validate requires either a partner or --service. --client requires a partner.
func (c brandOwnerCmd) Validate() error {
	switch {
	case c.Service == (c.Partner != ""):
		return errors.New("specify either a partner or --service")
	case c.Service && c.Client != "":
		return errors.New("--client requires a partner")
	}
	return nil
}

// brandOwner is whose brand a command is about, with its name and the entry of the audit trail for a change.
type brandOwner struct {
	domain.BrandOwner
	name  string
	entry *domain.AuditEntry
}

// withOwner opens the database and runs work with the owner of the brand.
func (c brandOwnerCmd) withOwner(
	ctx context.Context, s cli.Env, command string, work func(context.Context, *db.DB, brandOwner) error,
) error {
	return c.With(ctx, s, func(d *db.DB) error {
		if c.Service {
			entry := &domain.AuditEntry{Operation: command, Object: domain.AuditObject{Kind: domain.BrandID{}.Noun(), ID: "service"}}
			return work(ctx, d, brandOwner{name: "the service", entry: entry})
		}
		partner, err := database.FindPartner(ctx, d, c.Partner)
		if err != nil {
			return err
		}
		if c.Client == "" {
			return work(ctx, d, brandOwner{domain.BrandOwner{Partner: partner}, c.Partner, database.PartnerEntry(command, partner)})
		}
		client, err := database.FindClient(ctx, d, partner, c.Client)
		if err != nil {
			return err
		}
		return work(ctx, d, brandOwner{domain.BrandOwner{Client: client.ID}, client.Name, database.ClientEntry(command, client.ID)})
	})
}

type setBrandingCmd struct {
	brandOwnerCmd
	config.MailDomainsFlag
	DisplayName    *string `env:"-" placeholder:"NAME" help:"The display name, at most 200 characters."`
	Logo           *string `env:"-" placeholder:"FILE" help:"The logo: a PNG or JPEG file of at most 256 kB and 2,000 pixels per side."`
	AccentColor    *string `env:"-" placeholder:"#RRGGBB" help:"The color of buttons. Button text is black or white, whichever has more contrast."`
	SenderName     *string `env:"-" placeholder:"NAME" help:"The sender's name in emails."`
	SenderEmail    *string `env:"-" placeholder:"ADDRESS" help:"The sender's address in emails. The address must have a domain from --mail-domains."`
	ReplyTo        *string `env:"-" placeholder:"ADDRESS" help:"The address that receives replies to emails."`
	SupportContact *string `env:"-" placeholder:"CONTACT" help:"The contact for help: an email address, a phone number or an https URL."`
	PostalLine     *string `env:"-" placeholder:"TEXT" help:"The postal address, on one line, for the footer of emails."`
}

func (setBrandingCmd) Help() string {
	return `Changes only the given fields. An empty value, such as --logo=, clears a field. A client then inherits the field from its partner, and a partner inherits it from the service. Emails and reports generated afterward use the new values.`
}

// flags returns the values of the fields by their names; nil for a field that is not given.
func (c setBrandingCmd) flags() map[string]*string {
	return map[string]*string{
		"display_name": c.DisplayName, "logo": c.Logo, "accent_color": c.AccentColor, "sender_name": c.SenderName,
		"sender_email": c.SenderEmail, "reply_to": c.ReplyTo, "support_contact": c.SupportContact, "postal_line": c.PostalLine,
	}
}

// Validate requires a field, and names the flag of an invalid domain.
func (c setBrandingCmd) Validate() error {
	if err := c.brandOwnerCmd.Validate(); err != nil {
		return err
	}
	for _, value := range c.flags() {
		if value != nil {
			_, err := c.Domains()
			return err
		}
	}
	return errors.New("specify a field to set, such as --display-name")
}

// Run sets the fields by the rules of an import.
func (c setBrandingCmd) Run(ctx context.Context, s cli.Env) error {
	record, fields, err := c.record()
	if err != nil {
		return namingFlags(err, fields)
	}
	domains, err := c.Domains()
	if err != nil {
		return err
	}
	return c.withOwner(ctx, s, "branding set", func(ctx context.Context, d *db.DB, of brandOwner) error {
		if of.Client.IsZero() {
			record.Partner = domain.Give(domain.RefTo(of.Partner)) // zero for the service
		} else {
			record.Client = domain.Give(domain.RefTo(of.Client))
		}
		of.entry.Fields = fields
		err := database.RunAudited(ctx, d, of.entry, func(ctx context.Context) error {
			return namingFlags(importRecord(records.WithMailDomains(ctx, domains), d, records.Brands, record), fields)
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "set %s in the brand of %s\n", strings.Join(fields, ", "), of.name)
		return err
	})
}

// record returns the record of the given fields, without an owner, and their names, sorted. It reads their values as
// an import reads a line.
func (c setBrandingCmd) record() (record *domain.BrandRecord, fields []string, err error) {
	line := map[string]*string{}
	for name, value := range c.flags() {
		if value == nil {
			continue
		}
		fields = append(fields, name)
		if line[name] = domain.OrNil(*value); *value != "" && name == "logo" {
			if line[name], err = readLogo(*value); err != nil {
				return nil, nil, err
			}
		}
	}
	slices.Sort(fields)
	text, err := json.Marshal(line)
	if err != nil {
		return nil, nil, err
	}
	record = new(domain.BrandRecord)
	var faults rule.Faults
	rule.Reader{}.Read(text, record, &faults)
	return record, fields, faultsError(&faults)
}

// namingFlags returns an error about fields with the names of their flags, as --sender-email for sender_email. It returns
// another error, or nil, as it is.
func namingFlags(err error, fields []string) error {
	if err == nil {
		return nil
	}
	faults, found := strings.Split(err.Error(), "; "), false
	for i, fault := range faults {
		if field, message, ok := strings.Cut(fault, " "); ok && slices.Contains(fields, field) {
			faults[i], found = "--"+strings.ReplaceAll(field, "_", "-")+" "+message, true
		}
	}
	if !found {
		return err
	}
	return errors.New(strings.Join(faults, "; "))
}

// readLogo returns the content of a file in base64. It reads no more than a logo may have, and a byte.
func readLogo(name string) (*string, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("--logo: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(file, domain.MaxLogoBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("--logo: %w", err)
	}
	return new(base64.StdEncoding.EncodeToString(content)), nil
}

type showBrandingCmd struct {
	brandOwnerCmd
	JSON bool `name:"json" env:"-" help:"Print the fields as a JSON array, with the logo in base64."`
}

// brandLine is a field of a brand as the command prints it in JSON. Value is null if no brand has one.
type brandLine struct {
	Field string             `json:"field"`
	Value *string            `json:"value"`
	From  domain.BrandSource `json:"from"`
}

// Run lists the fields.
func (c showBrandingCmd) Run(ctx context.Context, s cli.Env) error {
	return c.withOwner(ctx, s, "", func(ctx context.Context, d *db.DB, of brandOwner) error {
		brand, err := d.Brand(ctx, of.BrandOwner)
		if err != nil {
			return err
		}
		text, err := json.Marshal(brand.Brand)
		if err != nil {
			return err
		}
		var values map[string]string // the logo in base64
		if err := json.Unmarshal(text, &values); err != nil {
			return fmt.Errorf("list a brand: %w", err)
		}
		var lines []brandLine
		for _, name := range domain.BrandFields() {
			lines = append(lines, brandLine{name, domain.OrNil(values[name]), brand.Sources[name]})
		}
		return output.List(s.Out, c.JSON, lines, []any{"FIELD", "FROM", "VALUE"}, func(l brandLine) []any {
			return []any{l.Field, l.From, brandText(l, brand.Brand)}
		})
	})
}

// brandText returns a field's value for people: of a logo its type and size, and of a color the color of text on it.
func brandText(l brandLine, b domain.Brand) string {
	switch {
	case l.Value == nil:
		return "-"
	case l.Field == "accent_color":
		return *l.Value + ", text " + b.AccentColor.TextColor()
	case l.Field != "logo":
		return *l.Value
	}
	mediaType, size, err := domain.LogoType(b.Logo)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, %d × %d pixels, %d bytes", mediaType, size.X, size.Y, len(b.Logo))
}

type previewBrandingCmd struct {
	brandOwnerCmd
	config.FontFlag
	Out string `env:"-" type:"existingdir" placeholder:"DIR" required:"" help:"The folder for the files: brand-email.html, brand-page.html and brand-report.pdf."`
}

// Run writes the files, with invented content.
func (c previewBrandingCmd) Run(ctx context.Context, s cli.Env) error {
	renderer, err := c.Renderer()
	if err != nil {
		return err
	}
	return c.withOwner(ctx, s, "", func(ctx context.Context, d *db.DB, of brandOwner) error {
		brand, err := d.Brand(ctx, of.BrandOwner)
		if err != nil {
			return err
		}
		now, client := d.Now(), "Example Client"
		if !of.Client.IsZero() {
			client = of.name
		}
		for _, file := range []struct {
			name  string
			write func(*bufio.Writer) error
		}{
			{"brand-email.html", func(w *bufio.Writer) error { return previewEmail(w, client, brand, now) }},
			{"brand-page.html", func(w *bufio.Writer) error { return previewLesson(w, client, brand.Brand, now) }},
			{"brand-report.pdf", func(w *bufio.Writer) error { return renderer.WriteSample(ctx, w, client, brand, now) }},
		} {
			path := filepath.Join(c.Out, file.name)
			if _, err := output.WriteFile(path, file.write); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			fmt.Fprintln(s.Out, path)
		}
		return nil
	})
}

// previewEmail writes the HTML of a welcome email with a brand.
func previewEmail(w io.Writer, client string, brand domain.ResolvedBrand, now time.Time) error {
	composer, err := mail.NewComposer("https://training.example.com", "")
	if err != nil {
		return err
	}
	m, err := composer.Compose(domain.Mail{
		Type: domain.WelcomeMail, To: "ada@example.com", Name: "Ada", Language: domain.English,
		ClientName: client, PartnerName: cmp.Or(brand.PartnerName, "Example Partner"), Brand: brand.Brand,
	}, now)
	if err == nil {
		_, err = io.WriteString(w, m.Preview())
	}
	return err
}

// previewLesson writes the page after a click on the first of the service's own simulations.
func previewLesson(w io.Writer, client string, brand domain.Brand, now time.Time) error {
	templates, err := db.OwnTemplates()
	if err != nil {
		return err
	}
	s := domain.Simulation{Template: templates[0], Email: "ada@example.com", FirstName: "Ada", ClientName: client, Language: domain.English}
	return phishing.WriteLesson(w, s, brand, now)
}

type clearBrandingCmd struct{ brandOwnerCmd }

// Run removes the brand. It fails if there is none.
func (c clearBrandingCmd) Run(ctx context.Context, s cli.Env) error {
	return c.withOwner(ctx, s, "branding clear", func(ctx context.Context, d *db.DB, of brandOwner) error {
		err := database.RunAudited(ctx, d, of.entry, func(ctx context.Context) error {
			return d.RetryChange(ctx, func(ctx context.Context, ch *db.Change) error { return ch.ClearBrand(ctx, of.BrandOwner) })
		})
		if domain.IsCode(err, domain.NotFound) {
			return fmt.Errorf("%s has no brand to clear; branding show lists the fields that it inherits", of.name)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "cleared the brand of %s\n", of.name)
		return err
	})
}
