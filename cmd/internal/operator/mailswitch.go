package operator

import (
	"context"
	"fmt"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// mailKind names a kind of mail that the service sends of itself.
type mailKind struct {
	Client string             `arg:"" help:"The client: its id, as GET /v2/clients shows it or as a UUID, or its name."`
	Kind   domain.MessageType `arg:"" enum:"certificate,phish-reminder,exposure-notice,monthly-report" help:"The kind of mail: certificate, phish-reminder, exposure-notice or monthly-report."`
}

// switchMail switches a kind of mail on or off.
func (k mailKind) switchMail(ctx context.Context, f database.Flags, s cli.Env, command string, on bool) error {
	return f.WithClient(ctx, s, k.Client, func(d *db.DB, client db.ClientName) error {
		err := database.Audited(ctx, d, database.OfClient(command, client.ID, string(k.Kind)), func(ctx context.Context) error {
			return outbox.SwitchMail(ctx, d, client.ID, k.Kind, on)
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(s.Out, "%s (%s): %s is %s\n", client.Name, client.ID, k.Kind, onOrOff(on))
		return nil
	})
}

func onOrOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

type enableMailCmd struct {
	database.Flags
	mailKind
}

// Help says when it counts.
func (enableMailCmd) Help() string {
	return `The switch counts at the moment of sending. What was due while a kind was off is not sent later. All kinds are on unless they were switched off, but for monthly-report.`
}

// Run switches a kind of mail on.
func (c enableMailCmd) Run(ctx context.Context, s cli.Env) error {
	return c.switchMail(ctx, c.Flags, s, "mail enable", true)
}

type disableMailCmd struct {
	database.Flags
	mailKind
}

// Help is that of enabling.
func (disableMailCmd) Help() string { return enableMailCmd{}.Help() }

// Run switches a kind of mail off.
func (c disableMailCmd) Run(ctx context.Context, s cli.Env) error {
	return c.switchMail(ctx, c.Flags, s, "mail disable", false)
}

// switchLine is a switch as the command prints it in JSON.
type switchLine struct {
	Kind domain.MessageType `json:"kind"`
	On   bool               `json:"on"`
}

type mailSwitchesCmd struct {
	database.Flags
	JSON   bool   `name:"json" env:"-" help:"Print JSON, an array of switches."`
	Client string `arg:"" help:"The client: its id, as GET /v2/clients shows it or as a UUID, or its name."`
}

// Run shows which kinds of mail a client gets.
func (c mailSwitchesCmd) Run(ctx context.Context, s cli.Env) error {
	return c.WithClient(ctx, s, c.Client, func(d *db.DB, client db.ClientName) error {
		switches, err := outbox.MailSwitches(ctx, d, client.ID)
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
	})
}
