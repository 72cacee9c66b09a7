package db

import (
	"context"

	"partnerapi/domain"
)

// recountSQL counts, as of ?2, the audiences of the policies ?1 of the client ?0
// and who of them has signed. Each policy runs the one branch of its scope: the
// others' conditions on p are constants to them, and stop them before they read
// a row.
//
// The counts are stored unless a writer has the policy in hand or was there
// since they were made, which gave the row another xmin: that one's change they
// may lack. Nobody waits for them.
const recountSQL = `
	WITH counted AS MATERIALIZED (
		SELECT p.id, p.xmin AS seen, c.audience, c.acknowledged,
			coalesce(c.first_signed_at + make_interval(days => p.renewal_period_days), 'infinity') AS holds_until
		FROM policies AS p CROSS JOIN LATERAL (
			SELECT count(*) AS audience, count(s.user_id) AS acknowledged, min(s.signed_at) AS first_signed_at
			FROM (
				SELECT u.id FROM users AS u
				WHERE p.scope_type = 'tenant' AND u.client_id = ?0 AND u.status = 'active'
				UNION ALL
				SELECT u.id FROM users AS u
				WHERE p.scope_type = 'user_container' AND u.client_id = ?0 AND u.status = 'active' AND u.group_id = p.scope_id
				UNION ALL
				SELECT u.id FROM collection_members AS m JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id
				WHERE p.scope_type = 'collection' AND m.client_id = ?0 AND m.collection_id = p.scope_id AND u.status = 'active'
			) AS asked
			LEFT JOIN policy_signatures AS s ON s.client_id = ?0 AND s.policy_id = p.id AND s.version = p.version AND s.user_id = asked.id
				AND s.signed_at > ?2::timestamptz - make_interval(days => p.renewal_period_days)
		) AS c
		WHERE p.client_id = ?0 AND p.id = ANY(?1::uuid[])
	), free AS (
		SELECT p.id FROM policies AS p JOIN counted AS c ON c.id = p.id
		WHERE p.client_id = ?0 AND p.xmin = c.seen FOR NO KEY UPDATE OF p SKIP LOCKED
	), stored AS (
		UPDATE policies AS p SET audience_count = c.audience, acknowledged_count = c.acknowledged, counted_until = c.holds_until
		FROM counted AS c WHERE p.client_id = ?0 AND p.id = c.id AND p.id IN (SELECT id FROM free)
	)
	SELECT id, audience, acknowledged FROM counted`

// recount counts the sign-off of those of a client's policies that are to be
// signed and whose stored counts do not hold, in one statement.
func (d *DB) recount(ctx context.Context, client domain.ClientID, policies []domain.Policy) error {
	at := map[domain.PolicyID]*domain.Policy{}
	var ids []domain.PolicyID
	for i, p := range policies {
		if p.MustSign && p.SignOff == nil {
			at[p.ID] = &policies[i]
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	var rows []struct {
		ID domain.PolicyID
		domain.SignOff
	}
	err := d.conn(ctx).NewRaw(recountSQL, client, uuids(ids), d.Now()).Scan(ctx, &rows)
	for i := range rows {
		at[rows[i].ID].SignOff = &rows[i].SignOff
	}
	return d.bad("count sign-off", err)
}
