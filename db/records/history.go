package records

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Objects of users that a user and another column identify: rounds of courses, exposures and sent emails.

// historyKey identifies an exposure by its user and breach, or a sent email by its user and id.
type historyKey struct {
	user domain.UserID
	of   any // the name of the breach, or the id of the email
}

// lockHistory locks the existing rows of the records' users in which a column, of an SQL type, has the key of the
// record, and keeps them. The LATERAL join makes PostgreSQL search the key for each record; without statistics it would
// otherwise read the whole table.
func lockHistory[Record, Row, Key any](
	ctx context.Context, b *batch[Record, Row], column, sqlType string, keyOf func(*Record) (domain.UserID, Key),
) error {
	clients, users, keys := make([][16]byte, len(b.list)), make([][16]byte, len(b.list)), make([]Key, len(b.list))
	for i, a := range b.list {
		user, key := keyOf(a.in)
		clients[i], users[i], keys[i] = domain.OrZero(b.found.find(user)).ClientID, user, key
	}
	rows, err := pg.All[Row](ctx, b, "lock "+pg.Table[Row](), pg.SQL(`
		SELECT e.* FROM (
			SELECT DISTINCT * FROM unnest(?clients::uuid[], ?users::uuid[], ?keys::`+sqlType+`[]) AS k (client_id, user_id, key) ORDER BY 1, 2, 3
		) AS l CROSS JOIN LATERAL (?rows) AS e`, pg.Named{
		"clients": clients, "users": users, "keys": keys, "rows": pg.Rows[Row]().
				Where("client_id = l.client_id AND user_id = l.user_id AND " + column + " = l.key").
				OrderExpr(b.kind.order).For("NO KEY UPDATE"),
	}))
	b.keep(rows)
	return err
}
