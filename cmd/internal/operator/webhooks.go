package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/cmd/internal/remote"
	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// Webhooks is the command webhooks, for the webhooks of partners, their deliveries and events.
type Webhooks struct {
	List       listWebhooksCmd   `cmd:"" help:"List the webhooks, without their secrets." example:"webhooks list --partner 'Northlight MSP'"`
	Pause      setWebhookCmd     `cmd:"" help:"Pause a webhook. Waiting deliveries are dropped, and events that occur until you resume the webhook are never delivered." example:"webhooks pause whk_01hrcssyngez2rfxjq1vdbavap"`
	Resume     setWebhookCmd     `cmd:"" help:"Activate a paused or disabled webhook, so that it receives events from now on." example:"webhooks resume whk_01hrcssyngez2rfxjq1vdbavap"`
	Deliveries listDeliveriesCmd `cmd:"" help:"List the deliveries to a webhook, newest first." example:"webhooks deliveries whk_01hrcssyngez2rfxjq1vdbavap --status failed"`
	Listen     remote.Listen     `cmd:"" help:"Follow a service's events and post them to a local URL, as a webhook would." example:"webhooks listen --url https://api.example.com --forward-to http://localhost:3000/hook"`
}

type listWebhooksCmd struct {
	database.Flags
	Partner string `env:"-" help:"Only webhooks of the partner with this ID, UUID or name."`
	JSON    bool   `name:"json" env:"-" help:"Print the webhooks as a JSON array."`
}

// webhookLine is a subscription as the command prints it in JSON.
type webhookLine struct {
	ID             domain.WebhookID       `json:"id"`
	Partner        string                 `json:"partner"`
	KeyPrefix      string                 `json:"key_prefix"`
	URL            string                 `json:"url"`
	Events         []domain.EventType     `json:"events"`
	ClientIDs      []domain.ClientID      `json:"client_ids"`  // the filter of the webhook, within the access of its key
	AllClients     bool                   `json:"all_clients"` // of the partner
	Clients        int                    `json:"clients"`     // the number that it covers; 0 for all
	Description    *string                `json:"description"`
	Status         domain.WebhookStatus   `json:"status"`
	CreatedAt      domain.Time            `json:"created_at"`
	LastDeliveryAt *domain.Time           `json:"last_delivery_at"`
	FailingSince   *domain.Time           `json:"failing_since"`
	DisabledReason *domain.DisabledReason `json:"disabled_reason"`
	KeyExpiresAt   *domain.Time           `json:"key_expires_at"`
	KeyRevokedAt   *domain.Time           `json:"key_revoked_at"`
}

// Run lists the subscriptions.
func (c listWebhooksCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) (err error) {
		var partner domain.PartnerID
		if c.Partner != "" {
			if partner, err = database.FindPartner(ctx, d, c.Partner); err != nil {
				return err
			}
		}
		list, err := outbox.AllWebhooks(ctx, d, partner)
		if err != nil {
			return err
		}
		lines := pg.MapRows(list, func(h *outbox.ListedWebhook) webhookLine {
			return webhookLine{
				ID: h.ID, Partner: h.PartnerName, KeyPrefix: h.KeyPrefix, URL: h.URL, Events: h.Events, ClientIDs: h.Clients, AllClients: h.AllClients, Clients: h.Covered,
				Description: h.Description, Status: h.Status, CreatedAt: domain.At(h.CreatedAt),
				LastDeliveryAt: domain.MaybeAt(h.LastDeliveryAt), FailingSince: domain.MaybeAt(h.FailingSince),
				DisabledReason: h.DisabledReason, KeyExpiresAt: domain.MaybeAt(h.KeyExpiresAt), KeyRevokedAt: domain.MaybeAt(h.KeyRevokedAt),
			}
		})
		columns := []any{"ID", "PARTNER", "KEY", "KEY ENDS", "STATUS", "CLIENTS", "EVENTS", "LAST DELIVERY", "FAILING SINCE", "URL"}
		return output.List(s.Out, c.JSON, lines, columns, webhookLine.row)
	})
}

// row returns the cells of the table.
func (h webhookLine) row() []any {
	clients := any("all")
	if !h.AllClients {
		clients = h.Clients
	}
	status, ends := string(h.Status), output.ShortTime(h.KeyExpiresAt)
	if h.DisabledReason != nil {
		status += " (" + string(*h.DisabledReason) + ")"
	}
	if h.KeyRevokedAt != nil {
		ends = "revoked " + output.ShortTime(h.KeyRevokedAt)
	}
	return []any{
		h.ID, h.Partner, h.KeyPrefix, ends, status, clients, len(h.Events), output.ShortTime(h.LastDeliveryAt), output.ShortTime(h.FailingSince), h.URL,
	}
}

// webhookArg is the subscription argument of a command.
type webhookArg struct {
	database.Flags
	ID domain.WebhookID `arg:"" help:"The webhook's ID, as shown by webhooks list."`
}

// setWebhookCmd is both webhooks pause and webhooks resume.
type setWebhookCmd struct{ webhookArg }

// Run sets the subscription's status, and prints the previous one.
func (c setWebhookCmd) Run(ctx context.Context, s cli.Env, line *kong.Context) error {
	status := domain.WebhookActive
	if line.Selected().Name == "pause" {
		status = domain.WebhookPaused
	}
	return c.With(ctx, s, func(d *db.DB) error {
		object := domain.AuditObject{Kind: c.ID.Noun(), ID: c.ID.String()}
		entry := &domain.AuditEntry{Operation: line.Selected().Path(), Object: object, Fields: []string{"status"}}
		var previous domain.Webhook
		err := database.RunAudited(ctx, d, entry, func(ctx context.Context) (err error) {
			previous, err = outbox.SetWebhookStatus(ctx, d, c.ID, status)
			entry.Partner = previous.Partner
			return err
		})
		if err != nil {
			return explainNotFound(err, c.ID)
		}
		_, err = fmt.Fprintf(s.Out, "%s is %s; it was %s\n", c.ID, status, previous.Status)
		return err
	})
}

// explainNotFound returns an error for operators if err is NotFound, the error of a missing subscription; otherwise
// err.
func explainNotFound(err error, id domain.WebhookID) error {
	if domain.IsCode(err, domain.NotFound) {
		return fmt.Errorf("there is no webhook %s; webhooks list shows all webhooks", id)
	}
	return err
}

type listDeliveriesCmd struct {
	webhookArg
	Status string `env:"-" placeholder:"STATUS" help:"Only deliveries with this status: waiting, succeeded, failed or dropped."`
	Limit  int    `env:"-" default:"100" help:"Maximum number of deliveries to list."`
	JSON   bool   `name:"json" env:"-" help:"Print the deliveries with their attempts as a JSON array."`
}

// Validate rejects an invalid status or limit.
func (c listDeliveriesCmd) Validate() error {
	if c.Limit < 1 || c.Limit > 10_000 {
		return errors.New("--limit must be between 1 and 10000")
	}
	if c.Status != "" && !rule.EnumHas(domain.DeliveryStatus(""), c.Status) {
		return fmt.Errorf("--status: %q is not one of %s", c.Status, strings.Join(domain.DeliveryStatus("").Values(), ", "))
	}
	return nil
}

// deliveryLine is a delivery as the command prints it in JSON.
type deliveryLine struct {
	ID        domain.DeliveryID     `json:"id"`
	EventID   domain.EventID        `json:"event_id"`
	Type      domain.EventType      `json:"type"`
	Status    domain.DeliveryStatus `json:"status"`
	Reason    *string               `json:"reason"`
	CreatedAt domain.Time           `json:"created_at"`
	DueAt     *domain.Time          `json:"due_at"`
	Tries     []domain.DeliveryTry  `json:"tries"`
}

// Run lists deliveries.
func (c listDeliveriesCmd) Run(ctx context.Context, s cli.Env) error {
	return c.With(ctx, s, func(d *db.DB) error {
		list, err := outbox.DeliveriesTo(ctx, d, c.ID, domain.DeliveryStatus(c.Status), c.Limit)
		if err != nil {
			return explainNotFound(err, c.ID)
		}
		lines := pg.MapRows(list, func(e *outbox.DueDelivery) deliveryLine {
			return deliveryLine{e.ID, e.Event, e.Type, e.Status, e.Reason, domain.At(e.CreatedAt), domain.MaybeAt(e.DueAt), e.Tries}
		})
		columns := []any{"CREATED", "EVENT", "TYPE", "STATUS", "ATTEMPTS", "NEXT", "LAST RESPONSE", "ID"}
		return output.List(s.Out, c.JSON, lines, columns, deliveryLine.row)
	})
}

// row returns the cells of the table.
func (e deliveryLine) row() []any {
	last := "-"
	if n := len(e.Tries); n > 0 {
		last = answerOf(e.Tries[n-1])
	}
	if e.Reason != nil { // it was dropped
		last = *e.Reason
	}
	return []any{
		e.CreatedAt.Time.UTC().Format(time.RFC3339), e.EventID, e.Type, e.Status, len(e.Tries), output.ShortTime(e.DueAt), last, e.ID,
	}
}

// maxAnswerShown is the maximum number of characters of a response in the table.
const maxAnswerShown = 60

// answerOf formats the status and the shortened response of a try in one line; "no answer" if it has neither.
func answerOf(t domain.DeliveryTry) string {
	text := []rune(strings.Join(strings.Fields(t.Response), " "))
	if len(text) > maxAnswerShown {
		text = append(text[:maxAnswerShown-1], '…')
	}
	if t.StatusCode == 0 {
		return cmp.Or(string(text), "no response")
	}
	return strings.TrimSpace(fmt.Sprint(t.StatusCode, " ", string(text)))
}
