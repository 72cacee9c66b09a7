package operator

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/db/records"
	"partnerapi/domain"
)

// Admins is the command admins, for the admins of partners and of single clients.
type Admins struct {
	Add    addAdminCmd    `cmd:"" help:"Add an admin to a partner or client without sending an invite or email." example:"admins add ada@northlight.example --name 'Ada Lovelace' --role owner --partner 'Northlight MSP'\nadmins add grace@hillside.example --name 'Grace Hopper' --client 'Hillside Dental'"`
	List   listAdminsCmd  `cmd:"" help:"List admins of partners and clients." example:"admins list --partner 'Northlight MSP'"`
	Remove removeAdminCmd `cmd:"" help:"Remove an admin." example:"admins remove ada@northlight.example --partner 'Northlight MSP'"`
}

// adminScope selects the scope of admins: a partner or a client.
type adminScope struct {
	Partner string `env:"-" help:"The partner's ID, UUID or name."`
	Client  string `env:"-" help:"The client organization's ID, UUID or name."`
}

// filter returns the filter for admins of the scope; of any scope if no flag is given.
func (s adminScope) filter(ctx context.Context, d *db.DB) (f db.AdminFilter, err error) {
	if s.Partner != "" {
		if f.Partner, err = database.FindPartner(ctx, d, s.Partner); err != nil {
			return f, err
		}
	}
	if s.Client != "" {
		client, err := database.FindClient(ctx, d, f.Partner, s.Client)
		f.Client = client.ID
		return f, err
	}
	return f, nil
}

type addAdminCmd struct {
	database.Flags
	Email string           `arg:"" help:"The email address that the admin signs in with."`
	Name  string           `required:"" env:"-" help:"The admin's full name."`
	Role  domain.AdminRole `env:"-" default:"admin" enum:"owner,admin,viewer" help:"The admin's role: owner, admin or viewer."`
	adminScope
	JSON bool `name:"json" env:"-" help:"Print the new admin as JSON."`
}

// Help says what the scope is.
func (addAdminCmd) Help() string {
	return `With --client, the admin can access only that client organization. Without --client, the admin can access the whole partner. You can omit --partner if there is only one partner. A partner's owners and admins receive its emails, such as warnings about failing webhooks. An open invite to the client counts as accepted.`
}

// Run adds an admin, by the rules of import.
func (c addAdminCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		scope, err := c.filter(ctx, d)
		if err == nil && c.Client == "" && c.Partner == "" {
			scope.Partner, err = database.FindPartner(ctx, d, "") // the only one
		}
		if err != nil {
			return err
		}
		id := db.NewID[domain.AdminKind]()
		record := &domain.AdminRecord{ID: domain.RefTo(id), Email: domain.Give(c.Email), Name: domain.Give(c.Name), Role: domain.Give(c.Role)}
		if c.Client != "" {
			record.Client = domain.Give(domain.RefTo(scope.Client))
		} else {
			record.Partner = domain.Give(domain.RefTo(scope.Partner))
		}
		entry := adminEntry("admins add", id, scope.Partner, scope.Client, "email", "name", "role")
		err = database.RunAudited(ctx, d, entry, func(ctx context.Context) error { return addAdmin(ctx, d, record, scope) })
		if err != nil {
			return err
		}
		if !c.JSON {
			_, err = fmt.Fprintln(s.Out, id)
			return err
		}
		added, err := d.AllAdmins(ctx, db.AdminFilter{ID: id})
		if err != nil || len(added) == 0 {
			return err
		}
		return output.JSON(s.Out, adminLineOf(&added[0]))
	})
}

// addAdmin imports the record of a new admin of a scope, and settles what follows from its address.
func addAdmin(ctx context.Context, d *db.DB, record *domain.AdminRecord, scope db.AdminFilter) error {
	if err := checkRecord(d, records.Admins, record); err != nil { // cleans the address
		return err
	}
	err := d.Change(ctx, func(ctx context.Context, ch *db.Change) error {
		if record.Client.Given {
			return ch.AcceptInvites(ctx, scope.Client, record.Email.Value)
		}
		return ch.AdmitPartnerAdmin(ctx, scope.Partner, record.Email.Value)
	})
	if err != nil {
		return err
	}
	return importRecord(ctx, d, records.Admins, record)
}

// adminEntry returns the audit entry of a command that adds or removes an admin. client is zero for an admin of the
// whole partner.
func adminEntry(command string, id domain.AdminID, partner domain.PartnerID, client domain.ClientID, fields ...string) *domain.AuditEntry {
	return &domain.AuditEntry{
		Operation: command, Partner: partner, Client: client, Fields: fields,
		Object: domain.AuditObject{Kind: id.Noun(), ID: id.String()},
	}
}

// adminLine is an admin as commands print it in JSON.
type adminLine struct {
	ID      domain.AdminID   `json:"id"`
	Email   string           `json:"email"`
	Name    string           `json:"name"`
	Role    domain.AdminRole `json:"role"`
	Partner string           `json:"partner"`
	// Client and ClientID are null for an admin of the whole partner.
	Client      *string          `json:"client"`
	ClientID    *domain.ClientID `json:"client_id"`
	LastLoginAt *domain.Time     `json:"last_login_at"`
	CreatedAt   domain.Time      `json:"created_at"`
}

func adminLineOf(a *db.ListedAdmin) adminLine {
	return adminLine{
		a.ID, a.Email, a.Name, a.Role, a.PartnerName, domain.OrNil(a.ClientName), a.Client, domain.MaybeAt(a.LastLoginAt),
		domain.At(a.CreatedAt),
	}
}

type listAdminsCmd struct {
	database.Flags
	adminScope
	JSON bool `name:"json" env:"-" help:"Print the admins as a JSON array."`
}

// Help says which admins are listed.
func (listAdminsCmd) Help() string {
	return `Without flags, the command lists the admins of all partners and clients. With --partner, it lists the admins of a partner and its clients. With --client, it lists only the admins of one client organization.`
}

// Run lists admins.
func (c listAdminsCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		scope, err := c.filter(ctx, d)
		if err != nil {
			return err
		}
		all, err := d.AllAdmins(ctx, scope)
		if err != nil {
			return err
		}
		columns := []any{"EMAIL", "NAME", "ROLE", "PARTNER", "CLIENT", "LAST LOGIN", "ID"}
		return output.List(s.Out, c.JSON, pg.MapRows(all, adminLineOf), columns, func(a adminLine) []any {
			return []any{a.Email, a.Name, a.Role, a.Partner, cmp.Or(domain.OrZero(a.Client), "-"), output.ShortTime(a.LastLoginAt), a.ID}
		})
	})
}

type removeAdminCmd struct {
	database.Flags
	Admin string `arg:"" help:"The admin's ID (as shown by admins list), UUID or email address."`
	adminScope
}

// Help says what the flags are for.
func (removeAdminCmd) Help() string {
	return `If several admins have the email address, use --partner or --client. Emails that are waiting to be sent to the admin are dropped.`
}

// Run removes an admin.
func (c removeAdminCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		admin, err := c.find(ctx, d)
		if err != nil {
			return err
		}
		entry := adminEntry("admins remove", admin.ID, admin.PartnerID, domain.OrZero(admin.Client))
		err = database.RunAudited(ctx, d, entry, func(ctx context.Context) error {
			return d.Change(ctx, func(ctx context.Context, ch *db.Change) error { return ch.DeleteAdmin(ctx, admin.ID) })
		})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(s.Out, "removed %s, %s of %s\n", admin.Email, admin.Role, cmp.Or(admin.ClientName, admin.PartnerName))
		return err
	})
}

// find returns the admin that the argument and the flags name. An unknown or ambiguous one is an error.
func (c removeAdminCmd) find(ctx context.Context, d *db.DB) (db.ListedAdmin, error) {
	f, err := c.filter(ctx, d)
	if err != nil {
		return db.ListedAdmin{}, err
	}
	if f.ID, err = domain.ParseID[domain.AdminKind](c.Admin); err != nil {
		f.ID, _ = domain.ParseUUID[domain.AdminKind](strings.ToLower(c.Admin)) // zero for an address
	}
	f.Email, _ = domain.CleanEmail(c.Admin)
	if f.ID.IsZero() && f.Email == "" {
		return db.ListedAdmin{}, fmt.Errorf("%q is neither the ID nor the email address of an admin; admins list shows both", c.Admin)
	}
	found, err := d.AllAdmins(ctx, f)
	switch {
	case err != nil:
		return db.ListedAdmin{}, err
	case len(found) == 0:
		return db.ListedAdmin{}, fmt.Errorf("there is no admin %q; admins list shows all admins", c.Admin)
	case len(found) > 1:
		ids := pg.MapRows(found, func(a *db.ListedAdmin) string {
			return fmt.Sprintf("%s (%s of %s)", a.ID, a.Role, cmp.Or(a.ClientName, a.PartnerName))
		})
		return db.ListedAdmin{}, fmt.Errorf("%q is the email address of %d admins; specify the ID of one: %s", c.Admin, len(found), strings.Join(ids, " or "))
	}
	return found[0], nil
}
