package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/uuid"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Mail is the command mail, for failed emails and for the emails that a client's users get.
type Mail struct {
	Failed    failedMailCmd   `cmd:"" help:"List permanently failed emails with the reason for each failure." example:"mail failed --since 36h"`
	Retry     retryMailCmd    `cmd:"" help:"Resend permanently failed emails." example:"mail retry --all --since 36h"`
	Enable    switchMailCmd   `cmd:"" help:"Turn on a kind of automatic email, or the report link in simulations, for a client or partner." example:"mail enable 'Hillside Dental' monthly-report"`
	Disable   switchMailCmd   `cmd:"" help:"Turn off a kind of automatic email, or the report link in simulations, for a client or partner." example:"mail disable 'Hillside Dental' phish-reminder"`
	Switches  mailSwitchesCmd `cmd:"" help:"Show which kinds of automatic emails a client or partner receives." example:"mail switches 'Hillside Dental'"`
	Allowlist allowlistCmd    `cmd:"" help:"Print what a client's email filters must let through, with instructions." example:"mail allowlist 'Hillside Dental' --mail-source-ips 198.51.100.25"`
}

type failedMailCmd struct {
	database.Flags
	Since cli.Since `env:"-" placeholder:"TIME" help:"Only emails that failed since this time: 2027-01-31 (UTC), 2027-01-31T12:00:00Z, or 36h for 36 hours ago."`
	Limit int       `env:"-" default:"1000" help:"Maximum number of emails to list, oldest failure first."`
	JSON  bool      `name:"json" env:"-" help:"Print the emails as a JSON array."`
}

// mailLine is a failed email as the command prints it in JSON.
type mailLine struct {
	ID       string             `json:"id"`
	Type     domain.MessageType `json:"type"`
	To       string             `json:"to"`
	ClientID *domain.ClientID   `json:"client_id"`
	FailedAt domain.Time        `json:"failed_at"`
	Failure  string             `json:"failure"`
}

// Validate rejects an invalid limit.
func (c failedMailCmd) Validate() error {
	if c.Limit < 1 || c.Limit > 1_000_000 {
		return errors.New("--limit must be between 1 and 1000000")
	}
	return nil
}

// Run lists emails that failed for good: requested by operations, simulated, or to partners.
func (c failedMailCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		mails, err := outbox.FailedMails(ctx, d, c.Since.Time, c.Limit)
		if err != nil {
			return err
		}

		lines := pg.MapRows(mails, func(m *outbox.FailedMail) mailLine {
			return mailLine{m.ID, m.Type, m.To, m.Client, domain.At(m.FailedAt), m.Failure}
		})
		return output.List(s.Out, c.JSON, lines, []any{"FAILED", "TYPE", "TO", "CLIENT", "ID", "FAILURE"}, func(m mailLine) []any {
			return []any{m.FailedAt.Time.UTC().Format(time.RFC3339), m.Type, m.To, orDash(m.ClientID), m.ID, m.Failure}
		})
	})
}

type retryMailCmd struct {
	database.Flags
	IDs   []string  `arg:"" optional:"" name:"id" help:"IDs of emails, as shown by mail failed."`
	All   bool      `env:"-" help:"Resend all permanently failed emails."`
	Since cli.Since `env:"-" placeholder:"TIME" help:"With --all, only emails that failed since this time: 2027-01-31 (UTC), 2027-01-31T12:00:00Z, or 36h for 36 hours ago."`
}

func (retryMailCmd) Help() string {
	return `An email requested more than three days ago is attempted only once. An email that is no longer wanted, such as an email to an inactive user, fails again.`
}

// Validate requires either valid ids of emails or --all, not both. --since requires --all.
func (c retryMailCmd) Validate() error {
	switch {
	case c.All == (len(c.IDs) > 0):
		return errors.New("specify either the IDs of emails or --all")
	case !c.Since.IsZero() && !c.All:
		return errors.New("--since requires --all")
	}
	for _, id := range c.IDs {
		if _, err := uuid.Parse(id); err != nil {
			return fmt.Errorf("%q is not the ID of an email; mail failed shows the IDs", id)
		}
	}
	return nil
}

// retryBatch is the number of emails requeued per transaction.
const retryBatch = 500

// Run requeues failed emails, a batch per transaction. It fails if no email was requeued.
func (c retryMailCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		entry := domain.AuditEntry{Operation: "mail retry"}
		if len(c.IDs) == 1 {
			entry.Object = domain.AuditObject{Kind: "mail", ID: c.IDs[0]}
		}
		ctx = db.WithEntry(ctx, database.AsCommand(entry))
		total := 0
		for {
			mails, err := outbox.RetryMails(ctx, d, c.Since.Time, c.IDs, retryBatch)
			if err != nil {
				return err
			}
			total += len(mails)
			if len(mails) < retryBatch {
				break
			}
		}
		fmt.Fprintf(s.Out, "%s will be sent again\n", output.Plural(total, "email", "emails"))
		if total == 0 {
			return errors.New("none of these emails failed permanently; mail failed lists the emails that did")
		}
		return nil
	})
}

// switchMailCmd is both mail enable and mail disable, for a kind of email that the service sends on its own.
type switchMailCmd struct {
	database.Flags
	Client string             `arg:"" help:"ID, UUID or name of the client or, for a kind of email to partners, the partner."`
	Kind   domain.MessageType `arg:"" enum:"${client_mails},${partner_mails}" help:"Kind of automatic email. For a client: ${client_mails} (report-link is the report link in simulations). For a partner: ${partner_mails}."`
}

// Vars are the kinds of emails that can be switched, for the help of commands.
var Vars = kong.Vars{"client_mails": joined(domain.ClientSwitches), "partner_mails": joined(domain.PartnerMails)}

func joined(kinds []domain.MessageType) string {
	return strings.Join(pg.MapRows(kinds, func(k *domain.MessageType) string { return string(*k) }), ", ")
}

func (switchMailCmd) Help() string {
	return `The switch applies when an email is due to be sent. Emails that were due while a kind was off are not sent later. All kinds are on by default except monthly-report and report-link.

report-link is the "Report this message" link in simulated emails. The link reveals that an email is a simulation, so it is off for new clients. For clients that existed before version 1.1, report-link is on. Without the link, users report simulations with the report button of their email program (signal email_reported).`
}

// Run switches a kind of email on or off for a client. If partners get that kind, c.Client names a partner.
func (c switchMailCmd) Run(ctx context.Context, s cli.Env, line *kong.Context) error {
	command, on := line.Selected().Path(), line.Selected().Name == "enable"
	if slices.Contains(domain.PartnerMails, c.Kind) {
		return c.WithPartner(ctx, s, c.Client, func(d *db.DB, partner domain.PartnerID) error {
			entry := database.PartnerEntry(command, partner, string(c.Kind))
			return c.set(ctx, s, d, entry, c.Client, on, func(ctx context.Context) error {
				return outbox.SwitchPartnerMail(ctx, d, partner, c.Kind, on)
			})
		})
	}
	return c.WithClient(ctx, s, c.Client, func(d *db.DB, client db.ClientName) error {
		entry := database.ClientEntry(command, client.ID, string(c.Kind))
		return c.set(ctx, s, d, entry, client.Name, on, func(ctx context.Context) error {
			return outbox.SwitchMail(ctx, d, client.ID, c.Kind, on)
		})
	})
}

// set runs store, which sets the switch c.Kind of e.Object, in one transaction with the audit entry e. It then prints
// name, the id of e.Object, and the state of the switch.
func (c switchMailCmd) set(
	ctx context.Context, s cli.Env, d *db.DB, e *domain.AuditEntry, name string, on bool, store func(context.Context) error,
) error {
	if err := database.RunAudited(ctx, d, e, store); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.Out, "%s (%s): %s is %s\n", name, e.Object.ID, c.Kind, onOrOff(on))
	return err
}

// onOrOff returns the word for the state of a switch.
func onOrOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// switchLine is a switch as the command prints it in JSON.
type switchLine struct {
	Kind domain.MessageType `json:"kind"`
	On   bool               `json:"on"`
}

type mailSwitchesCmd struct {
	database.Flags
	JSON    bool   `name:"json" env:"-" help:"Print the switches as a JSON array."`
	Client  string `arg:"" optional:"" help:"The client's ID, UUID or name."`
	Partner string `env:"-" help:"ID, UUID or name of a partner to show instead of a client."`
}

// Validate requires either a client or a partner, not both.
func (c mailSwitchesCmd) Validate() error {
	if (c.Client == "") == (c.Partner == "") {
		return errors.New("specify either a client or --partner")
	}
	return nil
}

// Run lists the kinds of email that a client's users, or a partner's admins, get.
func (c mailSwitchesCmd) Run(ctx context.Context, s cli.Env) error {
	if c.Partner == "" {
		return c.WithClient(ctx, s, c.Client, func(d *db.DB, client db.ClientName) error {
			switches, err := outbox.MailSwitches(ctx, d, client.ID)
			return c.print(s, switches, err)
		})
	}
	return c.WithPartner(ctx, s, c.Partner, func(d *db.DB, partner domain.PartnerID) error {
		switches, err := outbox.PartnerMailSwitches(ctx, d, partner)
		return c.print(s, switches, err)
	})
}

// print prints switches, unless err is not nil: the error of reading them.
func (c mailSwitchesCmd) print(s cli.Env, switches []domain.MailSwitch, err error) error {
	if err != nil {
		return err
	}
	lines := pg.MapRows(switches, func(m *domain.MailSwitch) switchLine { return switchLine{m.Type, m.On} })
	return output.List(s.Out, c.JSON, lines, []any{"KIND", "STATE"}, func(m switchLine) []any {
		return []any{m.Kind, onOrOff(m.On)}
	})
}
