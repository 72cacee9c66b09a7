package db

import (
	"context"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"

	"partnerapi/domain"
)

// signature is that a user signed a version of a policy of the same client.
type signature struct {
	user    domain.UserKey
	policy  domain.PolicyID
	version int
	at      time.Time
}

// publication is that a policy got a new version.
type publication struct {
	client domain.ClientID
	policy domain.PolicyID
	at     time.Time
}

// lockPolicies locks policies of any clients that are not archived, and says
// what they are.
func (d *DB) lockPolicies(ctx context.Context, ids []domain.PolicyID) (map[domain.PolicyID]policyState, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	var rows []policyState
	err := d.conn(ctx).NewRaw(`
		SELECT p.id, p.client_id, p.archived_at IS NOT NULL AS archived
		FROM policies AS p JOIN clients AS c ON c.id = p.client_id AND c.archived_at IS NULL
		WHERE p.id = ANY(?::uuid[]) ORDER BY p.client_id, p.id FOR NO KEY UPDATE OF p`, uuids(ids)).Scan(ctx, &rows)
	states := make(map[domain.PolicyID]policyState, len(rows))
	for _, r := range rows {
		states[r.ID] = r
	}
	return states, d.bad("lock policies", err)
}

// shownSQL is the condition that a signature, alias s, is one of the current
// version of a policy, alias p, that has to be signed, and is valid at ?0.
const shownSQL = `p.client_id = s.client_id AND p.id = s.policy_id AND p.version = s.version AND p.requires_acknowledgment
	AND p.archived_at IS NULL AND s.signed_at > ?0::timestamptz - make_interval(days => p.renewal_period_days)`

// signSQL records as of ?0 the signatures of the arrays ?1 to ?5 of clients,
// users, policies, versions and times.
const signSQL = `
	WITH signed AS (
		INSERT INTO policy_signatures AS s (client_id, policy_id, version, user_id, signed_at, recorded_at)
		SELECT client_id, policy_id, version, user_id, max(at), ?0
		FROM unnest(?1::uuid[], ?2::uuid[], ?3::uuid[], ?4::integer[], ?5::timestamptz[]) AS t (client_id, user_id, policy_id, version, at)
		GROUP BY client_id, policy_id, version, user_id
		ON CONFLICT (client_id, policy_id, version, user_id) DO UPDATE SET signed_at = excluded.signed_at, recorded_at = excluded.recorded_at
		WHERE s.signed_at < excluded.signed_at
		RETURNING client_id, policy_id, version, user_id, signed_at
	), shown AS (
		SELECT s.* FROM signed AS s JOIN policies AS p ON ` + shownSQL + `
	), touched AS (
		UPDATE policies AS p SET updated_at = greatest(p.updated_at, ?0), counted_until = '-infinity' FROM (SELECT DISTINCT client_id, policy_id FROM shown) AS s
		WHERE p.client_id = s.client_id AND p.id = s.policy_id
	)
	INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
	SELECT client_id, uuid_v7(?0), ?6, user_id, policy_id, ?0 FROM shown`

// sign records signatures, the latest of each user and version. One that shows
// is an event; that of an earlier version is kept and shows nowhere; that of a
// later one waits for publish. Users and policies are locked.
func (d *DB) sign(ctx context.Context, list []signature) error {
	if len(list) == 0 {
		return nil
	}
	keys, policies := make([]domain.UserKey, len(list)), make([]domain.PolicyID, len(list))
	versions, times := make([]int, len(list)), make([]string, len(list))
	for i, s := range list {
		keys[i], policies[i], versions[i], times[i] = s.user, s.policy, s.version, timeKey(s.at)
	}
	clients, users := legacyKeyLists(keys)
	_, err := d.conn(ctx).NewRaw(signSQL, d.Now(), uuids(clients), uuids(users), uuids(policies),
		pgdialect.Array(versions), pgdialect.Array(times), domain.PolicyAgreed).Exec(ctx)
	return d.bad("sign policies", err)
}

// publish counts a policy's version on by one for each of its publications:
// sign-off starts anew, with those who had signed the new version before.
func (d *DB) publish(ctx context.Context, list []publication) error {
	if len(list) == 0 {
		return nil
	}
	clients, policies, times := make([]domain.ClientID, len(list)), make([]domain.PolicyID, len(list)), make([]string, len(list))
	for i, p := range list {
		clients[i], policies[i], times[i] = p.client, p.policy, timeKey(p.at)
	}
	_, err := d.conn(ctx).NewRaw(`
		WITH published AS (
			UPDATE policies AS p SET version = p.version + t.versions, published_at = greatest(p.updated_at, ?0),
				reviewed_at = greatest(p.reviewed_at, t.at), updated_at = greatest(p.updated_at, ?0), counted_until = '-infinity'
			FROM (
				SELECT client_id, id, count(*) AS versions, max(at) AS at
				FROM unnest(?1::uuid[], ?2::uuid[], ?3::timestamptz[]) AS t (client_id, id, at) GROUP BY client_id, id
			) AS t WHERE p.client_id = t.client_id AND p.id = t.id RETURNING p.*
		)
		INSERT INTO events (client_id, id, type, user_id, object_id, created_at)
		SELECT s.client_id, uuid_v7(?0), ?4, s.user_id, s.policy_id, ?0
		FROM published AS p JOIN policy_signatures AS s ON `+shownSQL,
		d.Now(), uuids(clients), uuids(policies), pgdialect.Array(times), domain.PolicyAgreed).Exec(ctx)
	return d.bad("publish policies", err)
}
