package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// Partners is the command partners, which creates, lists, renames, archives and restores partners.
type Partners struct {
	Create  createPartnerCmd  `cmd:"" help:"Create a partner." example:"partners create 'Tidewater MSP'"`
	List    listPartnersCmd   `cmd:"" help:"List all partners, including archived ones." example:"partners list --json"`
	Rename  renamePartnerCmd  `cmd:"" help:"Rename a partner." example:"partners rename 'Northwind IT' 'Northwind Security'"`
	Archive archivePartnerCmd `cmd:"" help:"Archive a partner and its clients, and revoke its API keys. Nothing is deleted." example:"partners archive --dry-run 'Northwind Security'\npartners archive 'Northwind Security'"`
	Restore restorePartnerCmd `cmd:"" help:"Restore an archived partner, but not its API keys." example:"partners restore 'Northwind Security'"`
}

type createPartnerCmd struct {
	database.Flags
	Name string `arg:"" help:"The partner's name."`
	JSON bool   `name:"json" env:"-" help:"Print the partner's ID and name as JSON."`
}

// Validate rejects an invalid name.
func (c createPartnerCmd) Validate() error { return checkName("the partner's name", c.Name) }

// maxName is how many characters a name may have (decisions 2.5).
const maxName = 200

// checkName returns an error if a name is blank, has more than maxName characters, or has a control character. what
// names it in the error.
func checkName(what, name string) error {
	if n := utf8.RuneCountInString(name); strings.TrimSpace(name) == "" || n > maxName ||
		strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("%s must have 1 to %d characters, contain no control characters and "+
			"not be blank", what, maxName)
	}
	return nil
}

// Run creates a partner.
func (c createPartnerCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) (err error) {
		var id domain.PartnerID
		entry := &domain.AuditEntry{Operation: "partners create", Fields: []string{"name"}}
		err = database.RunAudited(ctx, d, entry, func(ctx context.Context) error {
			id, err = d.InsertPartner(ctx, c.Name)
			entry.Partner, entry.Object = id, domain.AuditObject{Kind: id.Noun(), ID: id.String()}
			return err
		})
		if err != nil {
			return err
		}
		if c.JSON {
			return output.JSON(s.Out, createdPartner{id, c.Name})
		}
		_, err = fmt.Fprintln(s.Out, id)
		return err
	})
}

// createdPartner is a new partner as the command prints it in JSON.
type createdPartner struct {
	ID   domain.PartnerID `json:"id"`
	Name string           `json:"name"`
}

type listPartnersCmd struct {
	database.Flags
	JSON bool `name:"json" env:"-" help:"Print the partners as a JSON array."`
}

// partnerLine is a partner as the command prints it in JSON.
type partnerLine struct {
	ID        domain.PartnerID `json:"id"`
	Name      string           `json:"name"`
	Clients   int              `json:"clients"`
	CreatedAt domain.Time      `json:"created_at"`
	// ArchivedAt is null unless the partner is archived.
	ArchivedAt *domain.Time `json:"archived_at"`
}

// Run lists the partners.
func (c listPartnersCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		all, err := d.Partners(ctx)
		if err != nil {
			return err
		}
		lines := pg.MapRows(all, func(p *db.PartnerSummary) partnerLine {
			return partnerLine{p.ID, p.Name, p.Clients, domain.At(p.CreatedAt), domain.MaybeAt(p.ArchivedAt)}
		})
		columns := []any{"NAME", "CLIENTS", "CREATED", "ARCHIVED", "ID"}
		return output.List(s.Out, c.JSON, lines, columns, func(p partnerLine) []any {
			return []any{p.Name, p.Clients, p.CreatedAt.Time.Format(time.DateOnly), output.ShortTime(p.ArchivedAt), p.ID}
		})
	})
}

type renamePartnerCmd struct {
	database.Flags
	Partner string `arg:"" help:"The partner's ID, UUID or name."`
	Name    string `arg:"" help:"The new name."`
}

// Validate rejects an invalid name.
func (c renamePartnerCmd) Validate() error { return checkName("the partner's name", c.Name) }

// Run renames a partner.
func (c renamePartnerCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		partner, err := database.FindPartner(ctx, d, c.Partner)
		if err != nil {
			return err
		}
		if other, err := database.FindPartner(ctx, d, strings.TrimSpace(c.Name)); err == nil && other != partner {
			return fmt.Errorf("the partner %s already has the name %q", other, strings.TrimSpace(c.Name))
		}
		record := &domain.PartnerRecord{ID: domain.RefTo(partner), Name: domain.Give(c.Name)}
		err = database.RunAudited(ctx, d, database.PartnerEntry("partners rename", partner, "name"), func(ctx context.Context) error {
			return importRecord(ctx, d, records.Partners, record)
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "renamed %s to %s\n", partner, record.Name.Value)
		return err
	})
}

// checkRecord puts the texts of a record into the form in which they are stored, and returns an error if it is invalid.
func checkRecord(d *db.DB, kind records.Kind, record any) error {
	var faults rule.Faults
	if err := rule.Of(kind.Type()).Check(record, d.Now(), &faults); err != nil {
		return err
	}
	return faultsError(&faults)
}

// faultsError returns an error that names the fields at fault; nil without faults.
func faultsError(faults *rule.Faults) error {
	var texts []string
	for _, f := range faults.List() {
		texts = append(texts, f.Field+" "+f.Message)
	}
	if len(texts) > 0 {
		return errors.New(strings.Join(texts, "; "))
	}
	return nil
}

// importRecord creates or changes an object as import does with a record of its kind, by the same rules. It returns an
// error if the record is invalid or refused.
func importRecord(ctx context.Context, d *db.DB, kind records.Kind, record any) error {
	if err := checkRecord(d, kind, record); err != nil {
		return err
	}
	results, err := kind.Import(ctx, d, []any{record})
	if err == nil && results[0].Refusal != "" {
		err = errors.New(results[0].Refusal)
	}
	return err
}

// changePartnerCmd is a command that archives or restores a partner.
type changePartnerCmd struct {
	database.Flags
	Partner string `arg:"" help:"The partner's ID, UUID or name."`
	DryRun  bool   `env:"-" help:"Print what would change, without changing anything."`
}

// run runs apply, which changes the partner and returns a message about it, with an audit entry of a command.
func (c changePartnerCmd) run(
	ctx context.Context, s cli.Env, command string, apply func(context.Context, *db.Change, domain.PartnerID) (string, error),
) error {
	return c.With(ctx, s, func(d *db.DB) error {
		partner, err := database.FindPartner(ctx, d, c.Partner)
		if err != nil {
			return err
		}
		message := ""
		work := func(ctx context.Context) error {
			return d.RetryChange(ctx, func(ctx context.Context, ch *db.Change) (err error) {
				message, err = apply(ctx, ch, partner)
				return err
			})
		}
		if c.DryRun {
			err, message = d.DryRun(ctx, work), "dry run: "+message
		} else {
			err = database.RunAudited(ctx, d, database.PartnerEntry(command, partner, "archived_at"), work)
		}
		if err == nil {
			_, err = fmt.Fprintln(s.Out, message)
		}
		return err
	})
}

type archivePartnerCmd struct{ changePartnerCmd }

// Help says what archiving means.
func (archivePartnerCmd) Help() string {
	return `The partner's API keys stop working within 30 seconds, and its webhooks stop with the keys. The API, reports, directory syncs, simulations and emails treat its client organizations as archived. The partner's admins receive no more emails. The partner keeps its name and remains in partners list. keys create rejects the partner, and import rejects its clients unless they are archived.`
}

// Run archives a partner.
func (c archivePartnerCmd) Run(ctx context.Context, s cli.Env) error {
	return c.run(ctx, s, "partners archive", func(ctx context.Context, ch *db.Change, partner domain.PartnerID) (string, error) {
		done, err := ch.ArchivePartner(ctx, partner)
		return fmt.Sprintf("archived %s and %s, and revoked %s; %s with the keys. Running services apply the change within 30 seconds.", partner,
			output.Plural(done.Clients, "client", "clients"), output.Plural(done.Keys, "API key", "API keys"),
			output.Plural(done.Webhooks, "webhook ends", "webhooks end")), err
	})
}

type restorePartnerCmd struct{ changePartnerCmd }

// Help says what comes back.
func (restorePartnerCmd) Help() string {
	return `Restores the client organizations that were archived with the partner, but not clients archived earlier. The API keys stay revoked; create new ones.`
}

// Run restores an archived partner.
func (c restorePartnerCmd) Run(ctx context.Context, s cli.Env) error {
	return c.run(ctx, s, "partners restore", func(ctx context.Context, ch *db.Change, partner domain.PartnerID) (string, error) {
		clients, err := ch.RestorePartner(ctx, partner)
		return fmt.Sprintf("restored %s with %s. Its API keys stay revoked; to create new ones, run keys create.", partner,
			output.Plural(clients, "client", "clients")), err
	})
}
