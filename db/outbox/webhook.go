package outbox

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Webhook is a subscription, with the database for its methods, which read and write its secrets and deliveries.
type Webhook struct {
	domain.Webhook
	db *db.DB
}

// selectWebhook selects domain.Webhooks from webhooks, alias w.
const selectWebhook = `w.partner_id AS partner, w.id, w.key_id AS key, w.url, w.events, w.client_ids AS clients, w.description,
	w.status, CASE WHEN w.status = 'disabled' THEN w.disabled_reason END AS disabled_reason, w.created_at, w.updated_at, w.last_delivery_at, w.failing_since,
	coalesce(w.authorization_url = w.url, false) AS has_authorization`

// webhookReach returns the condition that the caller may read and change a subscription, alias w: the caller's key
// created it, or reaches all of the subscription's clients (decisions 8.6). These are client_ids or, if that is empty,
// the clients of the key that created it. Archived clients count too. A caller who is limited to one client reaches only
// subscriptions of that one, whichever key created them.
func webhookReach(ctx context.Context) pg.Query {
	caller := domain.CallerFrom(ctx)
	if caller.AllClients {
		return pg.SQL("w.partner_id = ?", caller.Partner)
	}
	own := pg.SQL("w.key_id = ?", caller.Key)
	if !caller.Only.IsZero() {
		own = pg.SQL("false")
	}
	return pg.SQL(`w.partner_id = ?partner AND (?own OR CASE WHEN cardinality(w.client_ids) > 0
		THEN NOT EXISTS (SELECT 1 FROM unnest(w.client_ids) AS c (id) WHERE NOT ?listed)
		ELSE ?coveredKey END)`,
		pg.Named{"partner": caller.Partner, "own": own, "listed": db.Listed(ctx, "c.id"), "coveredKey": db.CoveredKey(ctx, "w.key_id")})
}

// Webhooks reads a page of the subscriptions within the caller's reach, the oldest first.
func Webhooks(ctx context.Context, d *db.DB, w domain.Window) (domain.Slice[domain.Webhook], error) {
	k := pg.ByTime("w.created_at", "w.id", func(h *domain.Webhook) (time.Time, domain.WebhookID) { return h.CreatedAt, h.ID })
	k.Table, k.Select = "webhooks AS w", func(q *bun.SelectQuery) { q.ColumnExpr(selectWebhook) }
	k.OneIndex = true // the plan of the page is kept
	k.Where.Add("?", webhookReach(ctx))
	return pg.CountedPage(ctx, d, k, w)
}

// webhookQuery selects a subscription within the caller's reach.
func webhookQuery(ctx context.Context, id domain.WebhookID) *bun.SelectQuery {
	return pg.From("webhooks AS w").ColumnExpr(selectWebhook).Apply(pg.Where("w.id = ?", id)).Where("?", webhookReach(ctx))
}

// readWebhook reads the subscription that q selects. It returns NotFound if there is no row.
func readWebhook(ctx context.Context, d *db.DB, id domain.WebhookID, q pg.Query) (*Webhook, error) {
	found, err := pg.Find[domain.Webhook](ctx, d, id.Noun(), q)
	if err != nil {
		return nil, err
	}
	return &Webhook{found, d}, nil
}

// FindWebhook returns a subscription. It returns NotFound if it is not within the caller's reach.
func FindWebhook(ctx context.Context, d *db.DB, id domain.WebhookID) (*Webhook, error) {
	return readWebhook(ctx, d, id, pg.Prepared(webhookQuery(ctx, id)))
}

// LockWebhook is FindWebhook for a change: it locks the row.
func LockWebhook(ctx context.Context, c *db.Change, id domain.WebhookID) (*Webhook, error) {
	c.WillLock(db.WebhookLocks)
	return readWebhook(ctx, c.DB, id, webhookQuery(ctx, id).For("NO KEY UPDATE OF w"))
}

// WebhookClients returns the clients among ids that are within both the caller's reach and the key's.
func WebhookClients(ctx context.Context, d *db.DB, key domain.KeyID, ids []domain.ClientID) ([]domain.ClientID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return pg.All[domain.ClientID](ctx, d, "look for a webhook's clients", pg.SQL(`
		SELECT c.id FROM clients AS c WHERE c.id = ANY(?ids::uuid[]) AND ?withinReach AND (
			EXISTS (SELECT 1 FROM api_keys AS o WHERE o.id = ?key AND o.all_clients)
			OR EXISTS (SELECT 1 FROM api_key_clients AS l WHERE l.key_id = ?key AND l.client_id = c.id))`,
		pg.Named{"ids": pg.IDs(ids), "withinReach": db.WithinReach(ctx), "key": key}))
}

// CoversKey reports whether the caller reaches all clients that a key of the same partner reaches.
func CoversKey(ctx context.Context, d *db.DB, key domain.KeyID) (bool, error) {
	caller := domain.CallerFrom(ctx)
	if caller.AllClients || caller.Key == key && caller.Only.IsZero() {
		return true, nil
	}
	return pg.One[bool](ctx, d, "compare two keys", pg.SQL(
		"SELECT ? FROM api_keys AS a WHERE a.id = ?", db.CoveredKey(ctx, "a.id"), key))
}

// InsertWebhook inserts a subscription with its sealed secret, and its sealed authorization, if any. It returns Conflict if the partner has
// domain.MaxWebhooks. It locks the partner, so that concurrent calls cannot exceed the limit.
func InsertWebhook(ctx context.Context, c *db.Change, w domain.Webhook, secret, authorization []byte) error {
	if err := c.LockPartner(ctx, w.Partner); err != nil {
		return err
	}
	n, err := pg.One[int](ctx, c, "count webhooks", pg.SQL("SELECT count(*) FROM webhooks WHERE partner_id = ?", w.Partner))
	if err != nil {
		return err
	}
	if n >= domain.MaxWebhooks {
		return domain.ErrConflict(w.ID.Noun(), "the partner has reached its limit of 20 webhooks; delete one first")
	}
	return pg.Run(ctx, c, "insert a webhook", pg.SQL(`
		INSERT INTO webhooks (partner_id, id, key_id, url, events, client_ids, description, status, created_at, updated_at, secret,
			sealed_authorization, authorization_url)
		VALUES (?partner, ?id, ?key, ?url, ?events::text[], ?clients::uuid[], ?description, ?status, ?createdAt, ?updatedAt, ?secret,
			?authorization::bytea, CASE WHEN ?authorization::bytea IS NOT NULL THEN ?url END)`,
		pg.Named{
			"partner": w.Partner, "id": w.ID, "key": w.Key, "url": w.URL, "events": w.Events, "clients": pg.IDs(w.Clients),
			"description": w.Description, "status": w.Status, "createdAt": w.CreatedAt, "updatedAt": w.UpdatedAt, "secret": secret, "authorization": authorization,
		}))
}

// UpdateWebhook stores the changes of a locked subscription. One that becomes active gets the events that are written from
// now on. If it becomes active or its URL changes, after.FailingSince is cleared. If it becomes
// paused, up to dropDeliveries of its waiting deliveries are dropped, and the others when they are claimed.
//
// authorization is its new sealed authorization. If it is nil, the authorization stays, or is removed unless
// after.HasAuthorization.
func UpdateWebhook(ctx context.Context, c *db.Change, before domain.Webhook, after *domain.Webhook, authorization []byte) error {
	activated := after.Status == domain.WebhookActive && before.Status != domain.WebhookActive
	if activated || after.URL != before.URL {
		after.FailingSince = nil
	}
	if after.Status != domain.WebhookDisabled {
		after.DisabledReason = nil
	}
	err := pg.Run(ctx, c, "update a webhook", pg.SQL(`
		UPDATE webhooks SET key_id = ?key, url = ?url, events = ?events::text[], client_ids = ?clients::uuid[], description = ?description, status = ?status,
			updated_at = greatest(updated_at, ?now), disabled_reason = ?reason::text, resumes_as = CASE WHEN ?reason::text IS NOT NULL THEN resumes_as END,
			active_from = CASE WHEN ?activated::boolean THEN nextval('event_numbers') ELSE active_from END,
			active_since = CASE WHEN ?activated THEN clock_timestamp() ELSE active_since END, -- 1.0 compares times
			failing_since = ?failingSince,
			sealed_authorization = CASE WHEN ?authorized::boolean THEN coalesce(?authorization::bytea, sealed_authorization) END,
			authorization_url = CASE WHEN ?authorized THEN ?url END
		WHERE id = ?id`, pg.Named{
		"id": after.ID, "key": after.Key, "reason": after.DisabledReason, "url": after.URL, "events": after.Events, "clients": pg.IDs(after.Clients),
		"description": after.Description, "status": after.Status, "now": c.At, "activated": activated,
		"failingSince": after.FailingSince, "authorized": after.HasAuthorization, "authorization": authorization,
	}))
	if err == nil && after.Status == domain.WebhookPaused && before.Status != domain.WebhookPaused {
		_, err = drop(ctx, c.DB, []domain.WebhookID{after.ID}, []string{"the subscription was paused"})
	}
	return err
}

// ReplaceWebhookSecret sets a locked subscription's sealed secret. The old one signs too for domain.ReplacedSecretLife.
func ReplaceWebhookSecret(ctx context.Context, c *db.Change, id domain.WebhookID, secret []byte) error {
	return pg.Run(ctx, c, "replace the secret of a webhook", pg.SQL(`
		UPDATE webhooks SET secret = ?secret, replaced_secret = secret, replaced_until = ?replacedUntil, updated_at = greatest(updated_at, ?now)
		WHERE id = ?id`,
		pg.Named{"id": id, "secret": secret, "replacedUntil": c.At.Add(domain.ReplacedSecretLife), "now": c.At}))
}

// DeleteWebhook deletes a locked subscription. DropDeletedWebhooks deletes its deliveries later, as they may be many.
func DeleteWebhook(ctx context.Context, c *db.Change, id domain.WebhookID) error {
	return pg.Run(ctx, c, "delete a webhook", pg.SQL(`
		WITH deleted AS (DELETE FROM webhooks WHERE id = ?0)
		INSERT INTO deleted_webhooks (id) VALUES (?0) ON CONFLICT DO NOTHING`, id))
}
