package doctor

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// MostEndingKeys is how many keys that end soon are named.
const MostEndingKeys = 20

// EndingKey is an API key that stops working soon.
type EndingKey struct {
	Prefix, Name string
	Partner      string // its name
	ExpiresAt    time.Time
}

// EndingKeys returns the keys that end within domain.KeyEndsSoon, soonest first, up to
// MostEndingKeys. It leaves out those of a demonstration, which each start makes anew,
// and of partners that are in another cell.
func EndingKeys(ctx context.Context, d *db.DB) ([]EndingKey, error) {
	now := d.Now()
	return pg.All[EndingKey](ctx, d, "find keys that end soon", pg.SQL(`
		SELECT k.prefix, k.name, p.name AS partner, k.expires_at FROM api_keys AS k JOIN partners AS p ON p.id = k.partner_id
		WHERE k.revoked_at IS NULL AND NOT k.demo AND k.expires_at > ? AND k.expires_at <= ?
			AND k.partner_id NOT IN (`+away+`)
		ORDER BY k.expires_at, k.id LIMIT ?`, now, now.Add(domain.KeyEndsSoon), MostEndingKeys))
}
