package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
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

// lockPolicies locks policies that are not archived, of clients that are not
// either, and returns whose they are.
func (c *Change) lockPolicies(
	ctx context.Context, ids []domain.PolicyID,
) (map[domain.PolicyID]domain.ClientID, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	c.Lock(PolicyLocks)
	rows, err := pg.All[lockedPolicy](ctx, c, "lock policies", pg.SQL(`
		SELECT p.id, p.client_id FROM policies AS p JOIN clients AS c ON c.id = p.client_id AND c.archived_at IS NULL
		WHERE p.id = ANY(?::uuid[]) AND p.archived_at IS NULL
		ORDER BY p.client_id, p.id FOR NO KEY UPDATE OF p`, pg.IDs(ids)))
	owners := make(map[domain.PolicyID]domain.ClientID, len(rows))
	for _, r := range rows {
		owners[r.ID] = r.ClientID
	}
	return owners, err
}

type lockedPolicy struct {
	ID       domain.PolicyID
	ClientID domain.ClientID
}

// showsSQL is the condition that a signature, alias s, is one of the current
// version of a policy, alias p, that has to be signed, and is valid at ?0.
const showsSQL = `p.client_id = s.client_id AND p.id = s.policy_id AND p.version = s.version
	AND p.requires_acknowledgment AND p.archived_at IS NULL
	AND s.signed_at > ?0::timestamptz - make_interval(days => p.renewal_period_days)`

// signSQL records as of ?0 the signatures of the arrays ?1 to ?5 of clients,
// users, policies, versions and times, and returns those that show.
const signSQL = `
	WITH signed AS (
		INSERT INTO policy_signatures AS s (client_id, policy_id, version, user_id, signed_at, recorded_at)
		SELECT client_id, policy_id, version, user_id, max(at), ?0::timestamptz
		FROM unnest(?1::uuid[], ?2::uuid[], ?3::uuid[], ?4::integer[], ?5::timestamptz[])
			AS t (client_id, user_id, policy_id, version, at)
		GROUP BY client_id, policy_id, version, user_id
		ON CONFLICT (client_id, policy_id, version, user_id)
			DO UPDATE SET signed_at = excluded.signed_at, recorded_at = excluded.recorded_at
			WHERE s.signed_at < excluded.signed_at
		RETURNING client_id, policy_id, version, user_id, signed_at
	), shown AS (
		SELECT s.* FROM signed AS s JOIN policies AS p ON ` + showsSQL + `
	), changed AS (
		UPDATE policies AS p SET updated_at = greatest(p.updated_at, ?0::timestamptz), counted_until = '-infinity'
		FROM (SELECT DISTINCT client_id, policy_id FROM shown) AS s
		WHERE p.client_id = s.client_id AND p.id = s.policy_id
	)
	SELECT client_id, user_id, policy_id FROM shown`

// sign records signatures, the latest of each user and version. One that shows is
// an event; that of an earlier version is kept and shows nowhere; that of a later
// one waits for publish. Users and policies are locked.
func (c *Change) sign(ctx context.Context, list []signature) error {
	if len(list) == 0 {
		return nil
	}
	keys, policies := make([]domain.UserKey, len(list)), make([]domain.PolicyID, len(list))
	versions, times := make([]int, len(list)), make([]time.Time, len(list))
	for i, s := range list {
		keys[i], policies[i], versions[i], times[i] = s.user, s.policy, s.version, s.at
	}
	clients, users := keyLists(keys)

	shown, err := pg.All[shownSignature](ctx, c, "sign policies",
		pg.SQL(signSQL, c.At, clients, users, pg.IDs(policies), versions, times))
	c.signatureEvents(shown)
	return err
}

type shownSignature struct {
	ClientID domain.ClientID
	UserID   domain.UserID
	PolicyID domain.PolicyID
}

func (c *Change) signatureEvents(shown []shownSignature) {
	for _, s := range shown {
		c.ObjectEvent(domain.PolicyAgreed, domain.UserKey{Client: s.ClientID, User: s.UserID}, s.PolicyID.UUID())
	}
}

// publish adds one to a locked policy's version for each of its publications:
// sign-off starts anew, with those who had signed the new version before.
func (c *Change) publish(ctx context.Context, list []publication) error {
	if len(list) == 0 {
		return nil
	}
	clients, policies := make([]domain.ClientID, len(list)), make([]domain.PolicyID, len(list))
	times := make([]time.Time, len(list))
	for i, p := range list {
		clients[i], policies[i], times[i] = p.client, p.policy, p.at
	}

	shown, err := pg.All[shownSignature](ctx, c, "publish policies", pg.SQL(`
		WITH published AS (
			UPDATE policies AS p SET version = p.version + t.versions, reviewed_at = greatest(p.reviewed_at, t.at),
				published_at = greatest(p.updated_at, ?0::timestamptz), updated_at = greatest(p.updated_at, ?0::timestamptz),
				counted_until = '-infinity'
			FROM (
				SELECT client_id, id, count(*) AS versions, max(at) AS at
				FROM unnest(?1::uuid[], ?2::uuid[], ?3::timestamptz[]) AS t (client_id, id, at) GROUP BY client_id, id
			) AS t WHERE p.client_id = t.client_id AND p.id = t.id RETURNING p.*
		)
		SELECT s.client_id, s.user_id, s.policy_id
		FROM published AS p JOIN policy_signatures AS s ON `+showsSQL, c.At, pg.IDs(clients), pg.IDs(policies), times))
	c.signatureEvents(shown)
	return err
}
