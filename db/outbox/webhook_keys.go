package outbox

import (
	"context"
	"strconv"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// A subscription has the access of its key, and ends with it (decisions 8.4).

// keyEnd is the SQL expression of why a key, alias k, is not valid at the time ?now, as a domain.DisabledReason;
// NULL if it is valid.
const keyEnd = "CASE WHEN k.revoked_at IS NOT NULL THEN 'key_revoked' WHEN k.expires_at <= ?now THEN 'key_expired' END"

// keyEndings is the condition that the key, alias k, of a subscription, alias w, has ended and the subscription is not
// disabled, or that the subscription was disabled because of an expiry that has not come. An expiry counts only by a
// clock that is ?trusted, because what waits for the subscription is dropped with it. Partners whose work is suspended
// are omitted.
const keyEndings = "(" + keyEnd + " IS NOT NULL AND (k.revoked_at IS NOT NULL OR ?trusted) AND w.status <> 'disabled'" +
	" OR " + keyEnd + " IS NULL AND w.status = 'disabled' AND w.disabled_reason = 'key_expired')" +
	" AND w.partner_id NOT IN (" + db.SuspendedPartners + ")"

// FollowedKeys is the result of FollowKeys.
type FollowedKeys struct {
	// Disabled are the subscriptions whose key ended, and Resumed those whose key has not expired after all.
	Disabled, Resumed []domain.WebhookID
}

// FollowKeys disables the subscriptions whose key was revoked or has expired, and requests an email to the owners and
// admins about each (decisions 8.4). It is background work, for all partners. The next claims drop the waiting
// deliveries of these subscriptions.
//
// The expiry of a key may lie ahead again: the clock was wrong, or the key has a new expiry. A subscription that was
// disabled for it then has its former status again. What happened meanwhile is not delivered.
func FollowKeys(ctx context.Context, d *db.DB) (followed FollowedKeys, err error) {
	now := d.Now()
	trusted, err := d.ClockTrusted(ctx, now)
	if err != nil {
		return followed, err
	}
	found, err := pg.One[bool](ctx, d, "look for webhooks whose key ended", pg.Prepared(pg.SQL(
		"SELECT EXISTS (SELECT FROM webhooks AS w JOIN api_keys AS k ON k.id = w.key_id WHERE "+keyEndings+")",
		pg.Named{"now": now, "trusted": trusted})))
	if err != nil || !found {
		return followed, err
	}
	err = d.Change(ctx, func(ctx context.Context, c *db.Change) error {
		followed, err = followKeys(ctx, c, trusted)
		return err
	})
	return followed, err
}

// endedWebhook is a subscription that followKeys disabled or, without a Reason, resumed.
type endedWebhook struct {
	domain.WebhookKeyEnd
	Partner domain.PartnerID
	Key     domain.KeyID
}

// followKeys is FollowKeys within a change. trusted reports whether the clock is trusted.
func followKeys(ctx context.Context, c *db.Change, trusted bool) (followed FollowedKeys, err error) {
	c.WillLock(db.WebhookLocks)
	rows, err := pg.All[endedWebhook](ctx, c, "disable webhooks whose key ended", pg.SQL(`
		WITH judged AS MATERIALIZED (
			SELECT w.partner_id, w.id, w.key_id, w.url, w.status, k.prefix, `+keyEnd+` AS reason,
				coalesce(k.revoked_at, k.expires_at, ?now) AS at
			FROM webhooks AS w JOIN api_keys AS k ON k.id = w.key_id
			WHERE `+keyEndings+` ORDER BY w.id FOR NO KEY UPDATE OF w
		), followed AS (
			UPDATE webhooks AS w SET
				status = CASE WHEN j.reason IS NULL THEN coalesce(w.resumes_as, ?active) ELSE ?disabled END,
				disabled_reason = j.reason, resumes_as = CASE WHEN j.reason IS NOT NULL THEN w.status END,
				active_from = CASE WHEN j.reason IS NULL THEN nextval('event_numbers') ELSE w.active_from END,
				active_since = CASE WHEN j.reason IS NULL THEN clock_timestamp() ELSE w.active_since END,
				failing_since = CASE WHEN j.reason IS NOT NULL THEN w.failing_since END,
				updated_at = greatest(w.updated_at, ?now)
			FROM judged AS j WHERE w.id = j.id
		)
		SELECT partner_id AS partner, id, key_id AS key, url, prefix, coalesce(reason, '') AS reason, at FROM judged`,
		pg.Named{"now": c.At, "trusted": trusted, "active": domain.WebhookActive, "disabled": domain.WebhookDisabled}))
	var mails []domain.PartnerMail
	for _, w := range rows {
		if w.Reason == "" {
			followed.Resumed = append(followed.Resumed, w.ID)
			continue
		}
		followed.Disabled = append(followed.Disabled, w.ID)
		mails = append(mails, domain.PartnerMail{
			Partner: w.Partner, Kind: domain.WebhookDisabledMail, Notice: w.Mail(),
			// The same end is mailed once, also if the clock makes it come twice.
			Cause: w.ID.UUID() + " " + string(w.Reason) + " " + w.Key.UUID() + " " + strconv.FormatInt(w.At.Unix(), 10),
		})
	}
	if err == nil {
		_, err = MailPartners(ctx, c, mails)
	}
	return followed, err
}

// KeyEnd returns why the subscription's key is no longer valid: domain.DisabledKeyRevoked or DisabledKeyExpired. It
// returns "" if the key is valid.
func (h *Webhook) KeyEnd(ctx context.Context) (domain.DisabledReason, error) {
	return pg.One[domain.DisabledReason](ctx, h.db, "look at the key of a webhook", pg.SQL(
		"SELECT coalesce("+keyEnd+", '') FROM api_keys AS k WHERE k.id = ?key", pg.Named{"now": h.db.Now(), "key": h.Key}))
}

// ErrKeyEnded returns the Conflict of what a subscription cannot do after its key has ended.
func ErrKeyEnded(id domain.WebhookID, end domain.DisabledReason) error {
	how := "was revoked"
	if end == domain.DisabledKeyExpired {
		how = "has expired"
	}
	return domain.ErrConflict(id.Noun(), "the API key of this webhook "+how+`; to use another key, PATCH the webhook with {"status": "active"} `+
		"and a valid key that has at least the same access")
}

// TakeOver sets the subscription's Key to the caller's, which has at least its access, and Clients so that it keeps the
// access that it had. It changes no row. tooMany is true if that access is of more clients than Clients may have, or of
// none: then Clients is unchanged, and the caller has to name them.
func (h *Webhook) TakeOver(ctx context.Context) (tooMany bool, err error) {
	caller := domain.CallerFrom(ctx)
	had, err := pg.One[struct {
		Wide, Same bool
		Clients    []domain.ClientID `bun:"clients,array"`
	}](ctx, h.db, "read what a webhook has access to", pg.SQL(`
		SELECT k.all_clients AS wide, NOT ?callerWide AND NOT EXISTS (
				SELECT FROM api_key_clients AS n WHERE n.key_id = ?caller AND NOT EXISTS (
					SELECT FROM api_key_clients AS l WHERE l.key_id = k.id AND l.client_id = n.client_id)) AS same,
			ARRAY(SELECT l.client_id FROM api_key_clients AS l
				WHERE l.key_id = k.id AND (?clients::uuid[] = '{}' OR l.client_id = ANY(?clients::uuid[])) ORDER BY l.client_id LIMIT ?most) AS clients
		FROM api_keys AS k WHERE k.id = ?holder`,
		pg.Named{
			"holder":     h.Key,
			"caller":     caller.Key,
			"callerWide": caller.AllClients || !caller.Only.IsZero(), // the key itself may have access to more
			"clients":    pg.IDs(h.Clients),
			"most":       domain.MaxWebhookClients + 1,
		}))
	if err != nil {
		return false, err
	}
	h.Key = caller.Key
	if had.Wide || had.Same && len(h.Clients) == 0 { // the new key's access is no wider
		return false, nil
	}
	if n := len(had.Clients); n == 0 || n > domain.MaxWebhookClients {
		return true, nil
	}
	h.Clients = had.Clients
	return false, nil
}

// MostKeylessWebhooks is the greatest number of subscriptions that KeylessWebhooks returns.
const MostKeylessWebhooks = 20

// KeylessWebhook is a subscription whose key has ended.
type KeylessWebhook struct {
	ID      domain.WebhookID
	Partner string // the partner's name
	// KeyPrefix is the prefix of the key, and Reason why it ended at EndedAt.
	KeyPrefix string
	Reason    domain.DisabledReason
	EndedAt   time.Time
}

// KeylessWebhooks lists for an operator the first MostKeylessWebhooks subscriptions whose key has ended, the latest end
// first. They are disabled for that, or will be with the next FollowKeys. Those that are disabled for another reason
// are omitted.
func KeylessWebhooks(ctx context.Context, d *db.DB) ([]KeylessWebhook, error) {
	return pg.All[KeylessWebhook](ctx, d, "list webhooks whose key ended", pg.SQL(`
		SELECT w.id, p.name AS partner, k.prefix AS key_prefix, `+keyEnd+` AS reason, coalesce(k.revoked_at, k.expires_at) AS ended_at
		FROM webhooks AS w JOIN api_keys AS k ON k.id = w.key_id JOIN partners AS p ON p.id = w.partner_id
		WHERE `+keyEnd+` IS NOT NULL AND (w.status <> 'disabled' OR w.disabled_reason IN ('key_revoked', 'key_expired'))
			AND w.partner_id NOT IN (`+db.SuspendedPartners+`)
		ORDER BY ended_at DESC, w.id LIMIT ?most`, pg.Named{"now": d.Now(), "most": MostKeylessWebhooks}))
}

// EndingWebhooks lists for an operator the subscriptions that end with a key: those that are not disabled.
func EndingWebhooks(ctx context.Context, d *db.DB, key domain.KeyID) ([]domain.Webhook, error) {
	return pg.All[domain.Webhook](ctx, d, "list the webhooks of a key", pg.From("webhooks AS w").ColumnExpr(selectWebhook).
		Apply(pg.Where("w.key_id = ? AND w.status <> ?", key, domain.WebhookDisabled)).OrderExpr("w.created_at, w.id"))
}
