package doctor

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// MostEndingKeys is the greatest number of keys that EndingKeys returns.
const MostEndingKeys = 20

// EndingKey is an API key that will expire soon.
type EndingKey struct {
	Prefix, Name string
	Partner      string // the partner's name
	ExpiresAt    time.Time
	// Webhooks are the subscriptions that end with the key.
	Webhooks []domain.WebhookID `bun:"webhooks,array"`
}

// KeyEnds are the ends of keys that an operator should know.
type KeyEnds struct {
	Soon    []EndingKey
	Keyless []outbox.KeylessWebhook
}

// HasDemo reports whether the demonstration filled the database: whether it has keys that only a demonstration accepts.
func HasDemo(ctx context.Context, d *db.DB) (bool, error) {
	return pg.One[bool](ctx, d, "look for keys of the demonstration", pg.SQL("SELECT EXISTS (SELECT FROM api_keys WHERE demo)"))
}

// ReadKeyEnds returns the keys that end soon (EndingKeys), and the webhooks whose key has ended.
func ReadKeyEnds(ctx context.Context, d *db.DB) (ends KeyEnds, err error) {
	if ends.Soon, err = EndingKeys(ctx, d); err != nil {
		return ends, err
	}
	ends.Keyless, err = outbox.KeylessWebhooks(ctx, d)
	return ends, err
}

// EndingKeys returns the first MostEndingKeys keys that expire within domain.KeyEndsSoon, sorted by that time. It
// leaves out revoked and expired keys, keys of a demonstration, which each start replaces, and keys of partners that
// another cell serves.
func EndingKeys(ctx context.Context, d *db.DB) ([]EndingKey, error) {
	now := d.Now()
	return pg.All[EndingKey](ctx, d, "find keys that end soon", pg.SQL(`
		SELECT k.prefix, k.name, p.name AS partner, k.expires_at, ARRAY(
				SELECT w.id FROM webhooks AS w WHERE w.partner_id = k.partner_id AND w.key_id = k.id AND w.status <> 'disabled'
				ORDER BY w.created_at, w.id) AS webhooks
		FROM api_keys AS k JOIN partners AS p ON p.id = k.partner_id
		WHERE k.revoked_at IS NULL AND NOT k.demo AND k.expires_at > ?now AND k.expires_at <= ?soon
			AND k.partner_id NOT IN (`+partnersElsewhere+`)
		ORDER BY k.expires_at, k.id LIMIT ?mostEndingKeys`,
		pg.Named{"now": now, "soon": now.Add(domain.KeyEndsSoon), "mostEndingKeys": MostEndingKeys}))
}
