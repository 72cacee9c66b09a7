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

// Mail is the command mail, for failed mails and for the mails that a client's users get.
type Mail struct {
	Failed   failedMailCmd   `cmd:"" help:"List the mails that failed for good, and why." example:"mail failed --since 36h"`
	Retry    retryMailCmd    `cmd:"" help:"Send mails again that failed for good." example:"mail retry --all --since 36h"`
	Enable   switchMailCmd   `cmd:"" help:"Switch on a kind of the service's own mail for a client or partner." example:"mail enable 'Hillside Dental' monthly-report"`
	Disable  switchMailCmd   `cmd:"" help:"Switch off a kind of the service's own mail for a client or partner." example:"mail disable 'Hillside Dental' phish-reminder"`
	Switches mailSwitchesCmd `cmd:"" help:"Show which kinds of the service's own mail a client or partner gets." example:"mail switches 'Hillside Dental'"`
}

type failedMailCmd struct {
	database.Flags
	Since cli.Since `env:"-" placeholder:"TIME" help:"Only those that failed since this time: as 2027-01-31 (UTC), 2027-01-31T12:00:00Z, or 36h ago."`
	Limit int       `env:"-" default:"1000" help:"How many to list at most, the oldest failure first."`
	JSON  bool      `name:"json" env:"-" help:"Print JSON, an array of mails."`
}

// mailLine is a failed mail as the command prints it in JSON.
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

// Run lists mails that failed for good: requested by operations, simulated, or to partners.
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
	IDs   []string  `arg:"" optional:"" name:"id" help:"The ids of mails, as mail failed shows them."`
	All   bool      `env:"-" help:"All mails that failed for good."`
	Since cli.Since `env:"-" placeholder:"TIME" help:"With --all: only those that failed since this time: as 2027-01-31 (UTC), 2027-01-31T12:00:00Z, or 36h ago."`
}

func (retryMailCmd) Help() string {
	return `A mail that was asked for more than three days ago is tried once. One that is no longer wanted, such as a mail to an inactive user, fails again.`
}

// Validate requires either valid ids of mails or --all, not both. --since requires --all.
func (c retryMailCmd) Validate() error {
	switch {
	case c.All == (len(c.IDs) > 0):
		return errors.New("name the ids of mails, or --all of them")
	case !c.Since.IsZero() && !c.All:
		return errors.New("--since goes with --all")
	}
	for _, id := range c.IDs {
		if _, err := uuid.Parse(id); err != nil {
			return fmt.Errorf("%q is not the id of a mail: mail failed shows them", id)
		}
	}
	return nil
}

// retryBatch is the number of mails requeued per transaction.
const retryBatch = 500

// Run requeues failed mails, a batch per transaction. It fails if no mail was requeued.
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
		fmt.Fprintf(s.Out, "%s sent again\n", output.Plural(total, "mail is", "mails are"))
		if total == 0 {
			return errors.New("no such mail failed for good: mail failed lists those that did")
		}
		return nil
	})
}

// switchMailCmd is both mail enable and mail disable, for a kind of mail that the service sends on its own.
type switchMailCmd struct {
	database.Flags
	Client string             `arg:"" help:"The client: its id, as GET /v2/clients shows it or as a UUID, or its name. For a kind of email to partners, the partner: its id, UUID or name."`
	Kind   domain.MessageType `arg:"" enum:"${client_mails},${partner_mails}" help:"The kind of email: one of ${client_mails} for a client, one of ${partner_mails} for a partner."`
}

// Vars are the kinds of emails that can be switched, for the help of commands.
var Vars = kong.Vars{"client_mails": joined(domain.ServiceMails), "partner_mails": joined(domain.PartnerMails)}

func joined(kinds []domain.MessageType) string {
	return strings.Join(pg.MapRows(kinds, func(k *domain.MessageType) string { return string(*k) }), ", ")
}

func (switchMailCmd) Help() string {
	return `The switch counts at the moment of sending. What was due while a kind was off is not sent later. All kinds are on unless they were switched off, but for monthly-report.`
}

// Run switches a kind of mail on or off for a client. If partners get that kind, c.Client names a partner.
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
	JSON    bool   `name:"json" env:"-" help:"Print JSON, an array of switches."`
	Client  string `arg:"" optional:"" help:"The client: its id, as GET /v2/clients shows it or as a UUID, or its name."`
	Partner string `env:"-" help:"Show the switches of this partner instead: its id, UUID or name."`
}

// Validate requires either a client or a partner, not both.
func (c mailSwitchesCmd) Validate() error {
	if (c.Client == "") == (c.Partner == "") {
		return errors.New("name a client, or a partner with --partner")
	}
	return nil
}

// Run lists the kinds of mail that a client's users, or a partner's admins, get.
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
