package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
)

// Audit is the command audit, which lists changes and who made them.
type Audit struct {
	database.Flags
	Client string    `env:"-" placeholder:"CLIENT" help:"Only changes to the client with this ID, UUID or name. For an archived client, use the ID."`
	Key    string    `env:"-" placeholder:"PREFIX" help:"Only changes by the API key with this prefix, as shown by keys list. For changes by commands, use the value command."`
	Since  cli.Since `env:"-" placeholder:"TIME" help:"Only changes since this time: 2027-01-31 (UTC), 2027-01-31T12:00:00Z, or 36h for 36 hours ago."`
	JSON   bool      `name:"json" env:"-" help:"Print the entries as a JSON array."`
}

func (Audit) Help() string {
	return `Lists all successful API writes and all commands that changed something, oldest first. Each entry contains the actor, the object and the fields that were set, without their values. The actor is an API key and its IP address, or a command and the operating system user who ran it. Entries are kept for 400 days.`
}

// Run prints the audit trail. A client may be archived if it is named by its id, which is not looked up.
func (c Audit) Run(ctx context.Context, s cli.Env) error {
	filter := domain.AuditFilter{Prefix: c.Key, Since: c.Since.Time}
	return c.With(ctx, s, func(d *db.DB) (err error) {
		if c.Client != "" {
			if filter.Client, err = database.ParseClientID(c.Client); err != nil { // it is a name
				client, err := database.FindClient(ctx, d, domain.PartnerID{}, c.Client)
				if err != nil {
					return err
				}
				filter.Client = client.ID
			}
		}
		if c.JSON {
			return printAuditJSON(ctx, d, filter, s.Out)
		}
		return printAudit(ctx, d, filter, s.Out)
	})
}

// printAudit prints the entries that match the filter as a table.
func printAudit(ctx context.Context, d *db.DB, filter domain.AuditFilter, out io.Writer) error {
	t := output.NewTable(out, "AT", "ACTOR", "ADDRESS", "OPERATION", "OBJECT", "FIELDS", "CLIENT", "USER", "METHOD", "PATH", "REQUEST")
	err := d.EachAuditEntry(ctx, filter, func(e domain.AuditEntry) error {
		line := auditLineOf(e)
		t.Row(e.At.UTC().Format(time.RFC3339), actor(e), orDash(line.Address), e.Operation,
			cmp.Or(strings.TrimSpace(e.Object.Kind+" "+e.Object.ID), "-"), cmp.Or(strings.Join(e.Fields, ","), "-"),
			orDash(line.ClientID), orDash(line.UserID), cmp.Or(e.Method, "-"), cmp.Or(e.Path, "-"), cmp.Or(e.RequestID, "-"))
		return nil
	})
	if err != nil {
		return err
	}
	return t.Flush()
}

// actor returns the actor of an entry: a key, or a command and the user who ran it.
func actor(e domain.AuditEntry) string {
	switch {
	case e.SystemUser == "": // a key
		return e.Prefix
	case e.SudoUser == "":
		return e.Prefix + " " + e.SystemUser
	}
	return fmt.Sprintf("%s %s (sudo %s)", e.Prefix, e.SystemUser, e.SudoUser)
}

// orDash returns the text of a value; a dash for nil.
func orDash[T fmt.Stringer](value *T) string {
	if value == nil {
		return "-"
	}
	return (*value).String()
}

// AuditLine is an entry as the command prints it in JSON.
type AuditLine struct {
	At         domain.Time       `json:"at"`
	KeyPrefix  *string           `json:"key_prefix"`  // null for a command
	SystemUser *string           `json:"system_user"` // who ran the command; null for a key
	SudoUser   *string           `json:"sudo_user"`
	Address    *netip.Addr       `json:"address"`
	Operation  string            `json:"operation"`
	Object     *auditObject      `json:"object"`
	Fields     []string          `json:"fields"`
	PartnerID  *domain.PartnerID `json:"partner_id"`
	ClientID   *domain.ClientID  `json:"client_id"`
	UserID     *domain.UserID    `json:"user_id"`
	Method     *string           `json:"method"`
	Path       *string           `json:"path"`
	RequestID  *string           `json:"request_id"`
}

type auditObject struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
}

// auditLineOf converts an entry; what it lacks is nil.
func auditLineOf(e domain.AuditEntry) AuditLine {
	line := AuditLine{
		At: domain.At(e.At), SystemUser: domain.OrNil(e.SystemUser), SudoUser: domain.OrNil(e.SudoUser), Address: domain.OrNil(e.Address),
		Operation: e.Operation, Fields: append([]string{}, e.Fields...), PartnerID: domain.OrNil(e.Partner),
		ClientID: domain.OrNil(e.Client), UserID: domain.OrNil(e.User), Method: domain.OrNil(e.Method), Path: domain.OrNil(e.Path), RequestID: domain.OrNil(e.RequestID),
	}
	if e.Prefix != domain.CommandActor { // a command has no key
		line.KeyPrefix = &e.Prefix
	}
	if e.Object != (domain.AuditObject{}) {
		line.Object = &auditObject{e.Object.Kind, e.Object.ID}
	}
	return line
}

// printAuditJSON prints the entries that match the filter as the array that output.JSON would print, but one by one, as
// there may be many.
func printAuditJSON(ctx context.Context, d *db.DB, filter domain.AuditFilter, out io.Writer) error {
	out = output.ForJSON(out)
	separator := "["
	err := d.EachAuditEntry(ctx, filter, func(e domain.AuditEntry) error {
		text, err := json.MarshalIndent(auditLineOf(e), "  ", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "%s\n  %s", separator, text)
		separator = ","
		return err
	})
	if err != nil {
		return err
	}
	if separator == "[" {
		_, err = fmt.Fprintln(out, "[]")
		return err
	}
	_, err = fmt.Fprint(out, "\n]\n")
	return err
}
