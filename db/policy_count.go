package db

import (
	"context"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// PolicyCountsSQL counts, as of ?2, the audiences of the policies ?1 of the client ?0
// and who of them has signed. Each policy runs the one branch of its scope: the
// conditions on p of the others are constants to them, and stop them before they
// read a row.
const PolicyCountsSQL = `
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
			LEFT JOIN policy_signatures AS s ON s.client_id = ?0 AND s.policy_id = p.id AND s.version = p.version
				AND s.user_id = asked.id AND s.signed_at > ?2::timestamptz - make_interval(days => p.renewal_period_days)
		) AS c
		WHERE p.client_id = ?0 AND p.id = ANY(?1::uuid[])
	)`

// StorePolicyCountsSQL goes on from countedSQL. It stores the counts, unless a writer holds
// the policy or wrote it since they were made (its xmin is another): they may lack
// that change. As SKIP LOCKED never waits, this is no part of the lock order.
const StorePolicyCountsSQL = `, free AS (
		SELECT p.id FROM policies AS p JOIN counted AS c ON c.id = p.id
		WHERE p.client_id = ?0 AND p.xmin = c.seen FOR NO KEY UPDATE OF p SKIP LOCKED
	), stored AS (
		UPDATE policies AS p SET
			audience_count = c.audience, acknowledged_count = c.acknowledged, counted_until = c.holds_until
		FROM counted AS c WHERE p.client_id = ?0 AND p.id = c.id AND p.id IN (SELECT id FROM free)
	)`

// recount counts the sign-off of those of a client's policies that have to be
// signed and whose stored counts are stale, in one statement. In a snapshot they
// stay stale.
func recount(ctx context.Context, d *DB, client domain.ClientID, policies []domain.Policy) error {
	stale := map[domain.PolicyID]*domain.Policy{}
	var ids []domain.PolicyID
	for i, p := range policies {
		if p.MustSign && p.SignOff == nil {
			stale[p.ID] = &policies[i]
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}

	text := PolicyCountsSQL
	if !d.InSnapshot(ctx) {
		text += StorePolicyCountsSQL
	}
	counts, err := pg.All[policyCount](ctx, d, "count sign-off",
		pg.SQL(text+" SELECT id, audience, acknowledged FROM counted", client, pg.IDs(ids), d.Now()))
	for i := range counts {
		stale[counts[i].ID].SignOff = &counts[i].SignOff
	}
	return err
}

type policyCount struct {
	ID domain.PolicyID
	domain.SignOff
}

// count counts the users of the audience that a filter selects.
func (p *Policy) count(ctx context.Context, f domain.SignFilter) (int, error) {
	counted := []domain.Policy{p.Policy}
	if err := recount(ctx, p.db, p.Client, counted); err != nil {
		return 0, err
	}
	return counted[0].SignOff.Of(f), nil
}
