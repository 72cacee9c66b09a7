package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Policies, and the counts of their signatures.

// Policy is a policy within the caller's reach.
type Policy struct {
	domain.Policy
	db *DB
}

// PolicyRow is a row of policies.
type PolicyRow struct {
	bun.BaseModel `bun:"table:policies,alias:p"`

	domain.Policy
	ScopeID           [16]byte // of a client, a group or a collection
	AudienceCount     int
	AcknowledgedCount int

	Counted   bool      `bun:",scanonly"` // the two counts are not stale
	ChangedAt time.Time `bun:",scanonly"`
}

func (r *PolicyRow) policy() domain.Policy {
	p := r.Policy
	p.Scope, p.UpdatedAt = domain.ScopeOf(r.ScopeType, r.ScopeID), r.ChangedAt
	if p.MustSign && r.Counted { // not Counted: the stored counts are stale
		p.SignOff = &domain.SignOff{Audience: r.AudienceCount, Acknowledged: r.AcknowledgedCount}
	}
	return p
}

// changedAt returns the SQL expression of the time of the last change of a policy, alias p: the last write or, if it
// was later, the last expiry of a sign-off of the current version, which happens without a write.
func changedAt(now time.Time) pg.Query {
	return pg.SQL(`greatest(p.updated_at, (
		SELECT max(l.signed_at) + make_interval(days => p.renewal_period_days) FROM policy_signatures AS l
		WHERE l.client_id = p.client_id AND l.policy_id = p.id AND l.version = p.version AND p.requires_acknowledgment
			AND l.signed_at <= ?::timestamptz - make_interval(days => p.renewal_period_days)))`, now)
}

// selectPolicies adds to q the columns of PolicyRow, alias p.
func (t *Tenant) selectPolicies(q *bun.SelectQuery) {
	now := t.db.Now()
	q.ColumnExpr(pg.Columns[PolicyRow]()).ColumnExpr("? AS counted", PolicyCountsHold(now)).
		ColumnExpr("? AS changed_at", changedAt(now))
}

// Policies reads a page of the client's policies with their counts, without archived ones, in the order of creation. It
// recounts stale counts. If since is not nil, it selects only policies that changed at or after since.
func (t *Tenant) Policies(ctx context.Context, since *time.Time, w domain.Window) (domain.Slice[domain.Policy], error) {
	k := pg.ByTime("p.created_at", "p.id", func(r *PolicyRow) (time.Time, domain.PolicyID) { return r.CreatedAt, r.ID })
	k.Select = t.selectPolicies
	k.Where.Add("p.client_id = ? AND p.archived_at IS NULL", t.ID)
	delta, err := pg.DeltaOf(ctx, t.db.DB, since, &w)
	if err != nil {
		return domain.Slice[domain.Policy]{}, err
	}
	k.Where.Changed(delta, "?", changedAt(t.db.Now()))

	rows, err := pg.CountedPage(ctx, t.db, k, w)
	if err != nil {
		return domain.Slice[domain.Policy]{}, err
	}
	slice := pg.Map(rows, (*PolicyRow).policy)
	return slice, recount(ctx, t.db, t.ID, slice.Rows)
}

// Policy reads one of the client's policies. Its SignOff is nil if the stored counts are stale. It returns NotFound if
// the client has no such policy, or if it is archived.
func (t *Tenant) Policy(ctx context.Context, id domain.PolicyID) (*Policy, error) {
	return t.policy(ctx, id, pg.Prepared(t.policyByID(id)))
}

// LockPolicy locks and reads one of the client's policies. It returns NotFound if the client has no such policy, or if
// it is archived. Its SignOff is nil if the stored counts are stale.
func (c *Change) LockPolicy(ctx context.Context, t *Tenant, id domain.PolicyID) (*Policy, error) {
	c.WillLock(PolicyLocks)
	return t.policy(ctx, id, t.policyByID(id).For("NO KEY UPDATE OF p"))
}

// policyByID selects one of the client's policies that are not archived.
func (t *Tenant) policyByID(id domain.PolicyID) *bun.SelectQuery {
	q := pg.From("policies AS p").Apply(pg.Where("p.client_id = ? AND p.id = ? AND p.archived_at IS NULL", t.ID, id))
	t.selectPolicies(q)
	return q
}

// policy returns the policy that q selects, or NotFound.
func (t *Tenant) policy(ctx context.Context, id domain.PolicyID, q pg.Query) (*Policy, error) {
	row, err := pg.Find[PolicyRow](ctx, t.db, id.Noun(), q)
	if err != nil {
		return nil, err
	}
	return &Policy{row.policy(), t.db}, nil
}

// audience returns the condition that a user, alias u, is active and in the policy's audience.
func (p *Policy) audience() pg.Query {
	const active = "u.client_id = ? AND u.status = 'active'"
	switch p.ScopeType {
	case domain.GroupScope:
		return pg.SQL(active+" AND u.group_id = ?", p.Client, p.Scope.UUID)
	case domain.CollectionScope:
		return pg.SQL(active+` AND EXISTS (SELECT 1 FROM collection_members AS m
			WHERE m.client_id = u.client_id AND m.collection_id = ? AND m.user_id = u.id)`, p.Client, p.Scope.UUID)
	}
	return pg.SQL(active, p.Client)
}

// signature returns the condition that a signature, alias s, is the valid one of a user, alias u: of the current
// version, and not expired.
func (p *Policy) signature() pg.Query {
	return pg.SQL(`s.client_id = u.client_id AND s.policy_id = ?id AND s.version = ?version AND s.user_id = u.id
		AND s.signed_at > ?signedSince`,
		pg.Named{"id": p.ID, "version": p.Version, "signedSince": p.SignedSince(p.db.Now())})
}

// signOffChanged returns the SQL expression of the time at which a user, alias u, or the user's sign-off last changed.
// A sign-off changes when it is recorded, when it expires, and when a new version is published.
func (p *Policy) signOffChanged() pg.Query {
	return pg.SQL(`greatest(u.updated_at, ?publishedAt::timestamptz, (
		SELECT greatest(coalesce(s.recorded_at, s.signed_at),
			CASE WHEN s.signed_at <= ?lastExpired THEN s.signed_at + make_interval(days => ?renewalDays::integer) END)
		FROM policy_signatures AS s
		WHERE s.client_id = ?client AND s.policy_id = ?id AND s.version = ?version AND s.user_id = u.id))`,
		pg.Named{
			"publishedAt": p.PublishedAt, "id": p.ID, "version": p.Version, "client": p.Client,
			"lastExpired": p.SignedSince(p.db.Now()), "renewalDays": p.RenewalDays,
		})
}

// policyUserRow is a user of a policy's audience.
type policyUserRow struct {
	domain.PolicyUser
	CreatedAt time.Time
}

func (r *policyUserRow) policyUser() domain.PolicyUser { return r.PolicyUser }

// Users reads a page of the active users of the policy's audience that match the filter, in the order of creation. If
// since is not nil, it selects only users who changed, or whose sign-off changed, at or after since.
func (p *Policy) Users(
	ctx context.Context, f domain.SignFilter, since *time.Time, w domain.Window,
) (domain.Slice[domain.PolicyUser], error) {
	delta, err := pg.DeltaOf(ctx, p.db.DB, since, &w)
	if err == nil && delta != nil { // p may be a version that was replaced before the horizon
		p, err = (&Tenant{Client: domain.Client{ID: p.Client}, db: p.db}).Policy(ctx, p.ID)
	}
	if err != nil {
		return domain.Slice[domain.PolicyUser]{}, err
	}
	signature := p.signature()
	k := pg.ByTime("u.created_at", "u.id", func(r *policyUserRow) (time.Time, domain.UserID) { return r.CreatedAt, r.User })
	k.Where = pg.Conditions{p.audience()}
	k.Table, k.Select = "users AS u", func(q *bun.SelectQuery) {
		q.ColumnExpr(`u.id AS "user", u.email, `+FullName+" AS name, s.signed_at AS acknowledged_at, u.created_at").
			ColumnExpr("? AS updated_at", p.signOffChanged()).
			Join("LEFT JOIN policy_signatures AS s ON (?)", signature)
	}
	switch f {
	case domain.Signed:
		k.Where.Add("EXISTS (SELECT 1 FROM policy_signatures AS s WHERE ?)", signature)
	case domain.Unsigned:
		k.Where.Add("NOT EXISTS (SELECT 1 FROM policy_signatures AS s WHERE ?)", signature)
	}
	if delta != nil {
		k.Where.Changed(delta, "?", p.signOffChanged())
	}
	if since != nil || !p.MustSign { // the stored counts do not apply
		rows, err := pg.CountedPage(ctx, p.db, k, w)
		return pg.Map(rows, (*policyUserRow).policyUser), err
	}

	rows, err := pg.Page(ctx, p.db, k, w)
	if err == nil && w.Total {
		rows.Total, err = p.count(ctx, f)
	}
	return pg.Map(rows, (*policyUserRow).policyUser), err
}

// Remind emails a reminder to every active user of the locked policy's audience without a valid signature, and returns
// their number. It emails no one if the policy need not be signed. It returns RateLimited, until the next day (UTC), if
// it was called for the policy today.
func (p *Policy) Remind(ctx context.Context, c *Change) (int, error) {
	today := domain.DateOf(c.At)
	remindedToday := p.RemindedOn != nil && p.RemindedOn.DaysUntil(today) <= 0 // < 0 if the clock was set back
	if remindedToday {
		return 0, &domain.Error{
			Code: domain.RateLimited, Object: p.ID.Noun(), RetryAfter: domain.UntilTomorrow(c.At),
			Message: "the reminders for this policy were already sent today; the next can be sent tomorrow (UTC)",
		}
	}
	mails, err := pg.All[domain.MessageID](ctx, c, "request reminders", pg.SQL(`
		WITH reminded AS (
			UPDATE policies SET reminded_on = ?today::date WHERE client_id = ?client AND id = ?id
		)
		INSERT INTO mail_requests (client_id, id, type, user_id, policy_id, created_at)
		SELECT u.client_id, uuid_v7(?now), ?kind::text, u.id, ?id, ?now
		FROM users AS u
		WHERE ?mustSign::boolean AND ?audience AND NOT EXISTS (SELECT 1 FROM policy_signatures AS s WHERE ?signature)
		RETURNING id`, pg.Named{
		"client": p.Client, "id": p.ID, "now": c.At, "today": today, "mustSign": p.MustSign, "kind": domain.PolicyReminder,
		"audience": p.audience(), "signature": p.signature(),
	}))
	c.SendMails(p.Client, mails...)
	return len(mails), err
}

// PolicyCountsHold returns the condition that the stored counts of a policy are not stale: no signature has expired
// since they were counted, and the clock has not been set back before that time. 1.0 stores no counted_at.
func PolicyCountsHold(now time.Time) pg.Query {
	return pg.SQL("(counted_until > ?0 AND coalesce(counted_at, '-infinity') <= ?1)", now, domain.Ahead(now))
}

// PolicyCountsSQL counts, as of ?now, the audiences of ?policies of ?client and their valid signatures. For each
// policy, only the branch of its scope reads rows: the conditions on p.scope_type are constant in the others. The
// client's active users are read once (active) for all policies for the whole client or a large collection. Large
// collections have their own branch because PostgreSQL underestimates the number of their members.
const PolicyCountsSQL = `
	WITH active AS MATERIALIZED (
		SELECT id FROM users WHERE client_id = ?client AND status = 'active'
	), counted AS MATERIALIZED (
		SELECT p.id, p.xmin AS seen, c.audience, c.acknowledged,
			coalesce(c.first_signed_at + make_interval(days => p.renewal_period_days), 'infinity') AS holds_until
		FROM policies AS p LEFT JOIN collections AS k ON k.client_id = ?client AND k.id = p.scope_id CROSS JOIN LATERAL (
			SELECT count(*) AS audience, count(s.user_id) AS acknowledged, min(s.signed_at) AS first_signed_at
			FROM (
				SELECT u.id FROM active AS u WHERE p.scope_type = 'tenant'
				UNION ALL
				SELECT u.id FROM users AS u
				WHERE p.scope_type = 'user_container' AND u.client_id = ?client AND u.status = 'active' AND u.group_id = p.scope_id
				UNION ALL
				SELECT u.id FROM collection_members AS m JOIN active AS u ON u.id = m.user_id
				WHERE p.scope_type = 'collection' AND k.member_count > 1000 AND m.client_id = ?client AND m.collection_id = p.scope_id
				UNION ALL
				SELECT u.id FROM collection_members AS m JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id
				WHERE p.scope_type = 'collection' AND k.member_count <= 1000 AND u.status = 'active'
					AND m.client_id = ?client AND m.collection_id = p.scope_id
			) AS audience
			LEFT JOIN policy_signatures AS s ON s.client_id = ?client AND s.policy_id = p.id AND s.version = p.version
				AND s.user_id = audience.id AND s.signed_at > ?now::timestamptz - make_interval(days => p.renewal_period_days)
		) AS c
		WHERE p.client_id = ?client AND p.id = ANY(?policies::uuid[])
	)`

// StorePolicyCountsSQL is appended to PolicyCountsSQL and stores the counts. It skips a policy that another transaction
// has locked, or has written after the count (its xmin differs), because the counts may lack that change. SKIP LOCKED
// never waits, so the lock order does not matter.
const StorePolicyCountsSQL = `, free AS (
		SELECT p.id FROM policies AS p JOIN counted AS c ON c.id = p.id
		WHERE p.client_id = ?client AND p.xmin = c.seen FOR NO KEY UPDATE OF p SKIP LOCKED
	), stored AS (
		UPDATE policies AS p SET
			audience_count = c.audience, acknowledged_count = c.acknowledged, counted_until = c.holds_until,
			counted_at = ?now
		FROM counted AS c WHERE p.client_id = ?client AND p.id = c.id AND p.id IN (SELECT id FROM free)
	)`

// recount counts, in one statement, the sign-off of a client's policies with stale counts (MustSign without SignOff),
// and sets their SignOff. Outside of a snapshot it also stores the counts.
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

	statement := PolicyCountsSQL
	if !d.InSnapshot(ctx) {
		statement += StorePolicyCountsSQL
	}
	type count struct {
		ID domain.PolicyID
		domain.SignOff
	}
	counts, err := pg.All[count](ctx, d, "count sign-off",
		pg.SQL(
			statement+" SELECT id, audience, acknowledged FROM counted",
			pg.Named{"client": client, "policies": pg.IDs(ids), "now": d.Now()}))
	for i := range counts {
		stale[counts[i].ID].SignOff = &counts[i].SignOff
	}
	return err
}

// count returns the number of users of the audience that match a filter, from the stored counts, which it first renews
// if they are stale. The policy must be MustSign: others have no counts.
func (p *Policy) count(ctx context.Context, f domain.SignFilter) (int, error) {
	counted := []domain.Policy{p.Policy}
	if err := recount(ctx, p.db, p.Client, counted); err != nil {
		return 0, err
	}
	return counted[0].SignOff.Of(f), nil
}
