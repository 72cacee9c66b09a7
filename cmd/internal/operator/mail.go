package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// Mail is the command mail, for failed mails and for the mails that a client's users get.
type Mail struct {
	Failed   failedMailCmd   `cmd:"" help:"List the mails that failed for good, and why."`
	Retry    retryMailCmd    `cmd:"" help:"Send mails again that failed for good."`
	Enable   enableMailCmd   `cmd:"" help:"Switch on a kind of the service's own mail for a client or partner."`
	Disable  disableMailCmd  `cmd:"" help:"Switch off a kind of the service's own mail for a client or partner."`
	Switches mailSwitchesCmd `cmd:"" help:"Show which kinds of the service's own mail a client or partner gets."`
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

// Run lists failed mails: those requested by operations, and simulations.
func (c failedMailCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		mails, err := outbox.FailedMails(ctx, d, c.Since.Time, c.Limit)
		if err != nil {
			return err
		}

		lines := make([]mailLine, len(mails))
		for i, m := range mails {
			lines[i] = mailLine{m.ID, m.Type, m.To, m.Client, domain.At(m.FailedAt), m.Failure}
		}
		return output.List(s.Out, c.JSON, lines, []any{"FAILED", "TYPE", "TO", "CLIENT", "ID", "FAILURE"}, func(m mailLine) []any {
			client := "-" // of a mail to a partner
			if m.ClientID != nil {
				client = m.ClientID.String()
			}
			return []any{m.FailedAt.Time.UTC().Format(time.RFC3339), m.Type, m.To, client, m.ID, m.Failure}
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

// Run requeues failed mails, one batch per transaction. It fails if there are none.
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

// mailKind is the command line of a switch: a kind of mail that the service sends on its own, and whose.
type mailKind struct {
	database.Flags
	Client string             `arg:"" help:"The client: its id, as GET /v2/clients shows it or as a UUID, or its name. For webhook-failing and webhook-disabled the partner: its id, UUID or name."`
	Kind   domain.MessageType `arg:"" enum:"certificate,phish-reminder,exposure-notice,monthly-report,webhook-failing,webhook-disabled" help:"The kind of mail: certificate, phish-reminder, exposure-notice or monthly-report for a client, webhook-failing or webhook-disabled for a partner."`
}

// switchMail switches a kind of mail on or off for a client or, if it is a kind of mails to partners, for a partner.
func (k mailKind) switchMail(ctx context.Context, s cli.Env, command string, on bool) error {
	if slices.Contains(domain.PartnerMails, k.Kind) {
		return k.switchPartnerMail(ctx, s, command, on)
	}
	return k.WithClient(ctx, s, k.Client, func(d *db.DB, client db.ClientName) error {
		err := database.Audited(ctx, d, database.ClientEntry(command, client.ID, string(k.Kind)), func(ctx context.Context) error {
			return outbox.SwitchMail(ctx, d, client.ID, k.Kind, on)
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "%s (%s): %s is %s\n", client.Name, client.ID, k.Kind, onOrOff(on))
		return nil
	})
}

// switchPartnerMail switches a kind of mail on or off for a partner.
func (k mailKind) switchPartnerMail(ctx context.Context, s cli.Env, command string, on bool) error {
	return k.With(ctx, s, func(d *db.DB) error {
		partner, err := database.FindPartner(ctx, d, k.Client)
		if err != nil {
			return err
		}
		err = database.Audited(ctx, d, database.PartnerEntry(command, partner, string(k.Kind)), func(ctx context.Context) error {
			return outbox.SwitchPartnerMail(ctx, d, partner, k.Kind, on)
		})
		if err == nil {
			fmt.Fprintf(s.Out, "%s (%s): %s is %s\n", k.Client, partner, k.Kind, onOrOff(on))
		}
		return err
	})
}

// onOrOff returns the word for a switch.
func onOrOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

type enableMailCmd struct{ mailKind }

func (enableMailCmd) Help() string {
	return `The switch counts at the moment of sending. What was due while a kind was off is not sent later. All kinds are on unless they were switched off, but for monthly-report.`
}

// Run switches a kind of mail on.
func (c enableMailCmd) Run(ctx context.Context, s cli.Env) error {
	return c.switchMail(ctx, s, "mail enable", true)
}

type disableMailCmd struct{ mailKind }

func (disableMailCmd) Help() string { return enableMailCmd{}.Help() }

// Run switches a kind of mail off.
func (c disableMailCmd) Run(ctx context.Context, s cli.Env) error {
	return c.switchMail(ctx, s, "mail disable", false)
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
	return c.With(ctx, s, func(d *db.DB) error {
		partner, err := database.FindPartner(ctx, d, c.Partner)
		if err != nil {
			return err
		}
		switches, err := outbox.PartnerMailSwitches(ctx, d, partner)
		return c.print(s, switches, err)
	})
}

// print prints switches, unless they could not be read.
func (c mailSwitchesCmd) print(s cli.Env, switches []domain.MailSwitch, err error) error {
	if err != nil {
		return err
	}
	lines := make([]switchLine, len(switches))
	for i, m := range switches {
		lines[i] = switchLine{m.Type, m.On}
	}
	return output.List(s.Out, c.JSON, lines, []any{"KIND", "STATE"}, func(m switchLine) []any {
		return []any{m.Kind, onOrOff(m.On)}
	})
}
