package reports

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Scores are the client's average scores on the days of a period on which they
// were computed, oldest first.
var Scores = Statement[domain.AverageOn]{"read average scores", `
	SELECT day AS date, average_score FROM risk_history WHERE client_id = @client AND day BETWEEN @firstDay AND @lastDay ORDER BY day`}

// SignatureCount counts the signatures that active users gave in a period, also of
// policies or versions that are gone.
var SignatureCount = Statement[int]{"count signatures", `
	SELECT count(*) FROM policy_signatures AS s JOIN users AS u ON u.client_id = s.client_id AND u.id = s.user_id
	WHERE s.client_id = @client AND u.status = 'active' AND s.signed_at >= @since AND s.signed_at < @until`}

// RefreshPeers makes what HealthOfPeers reads at most domain.SummaryAge old, and
// evaluates the client's own frameworks. It reads clients that the caller may not
// reach.
func RefreshPeers(ctx context.Context, t *db.Tenant) error {
	if err := t.EvaluateStale(ctx); err != nil {
		return err
	}
	peers, err := t.FreshPeers(ctx)
	if err != nil {
		return err
	}
	for _, peer := range peers {
		if err := peer.EvaluateStale(ctx); err != nil {
			return err
		}
		if _, err := EveryPolicy(ctx, peer); err != nil { // counts what is stale
			return err
		}
	}
	return nil
}

// healthSQL is the health of the clients, alias c, that the condition @which selects: the
// figures that reads of clients show, with the mails that were sent from the day @from to
// the day @to, and the counts of policies that hold @now.
const healthSQL = `
	SELECT c.average_score::float8 AS average_score, 100.0 * c.high_risk_users / nullif(c.users_active, 0) AS high_risk,
		c.on_track_rate AS on_track, coalesce(m.sent, 0)::float8 / nullif(c.users_active, 0) AS mails_per_user,
		c.click_rate_90d AS click_rate, c.report_rate_90d AS report_rate,
		CASE WHEN c.dark_web_monitoring THEN 100.0 * e.unresolved / nullif(c.users_active, 0) END AS exposures_per100,
		100.0 * s.signed / nullif(s.asked, 0) AS signed, 100.0 * f.met / nullif(f.total, 0) AS frameworks_met
	FROM clients AS c
	CROSS JOIN LATERAL (
		SELECT sum(sent) AS sent FROM phishing_days WHERE client_id = c.id AND day BETWEEN @from AND @to
	) AS m
	CROSS JOIN LATERAL (
		SELECT count(*) AS unresolved FROM exposures AS x JOIN users AS u ON u.client_id = x.client_id AND u.id = x.user_id
		WHERE x.client_id = c.id AND x.resolved_at IS NULL AND u.status = 'active' AND c.dark_web_monitoring
	) AS e
	CROSS JOIN LATERAL (
		SELECT sum(audience_count) AS asked, sum(acknowledged_count) AS signed FROM policies
		WHERE client_id = c.id AND archived_at IS NULL AND requires_acknowledgment AND counted_until > @now
	) AS s
	CROSS JOIN LATERAL (
		SELECT sum(met) AS met, sum(total) AS total FROM framework_assignments WHERE client_id = c.id
	) AS f
	WHERE @which`

// PeerHealth is the average over other clients, and how many they are.
type PeerHealth struct {
	Clients int
	domain.Health
}

// HealthOfPeers is the unweighted average over the partner's other clients with active
// users, whatever the caller reaches. The averages are empty if there are too few such
// clients (decisions 8.10); one is empty if too few have what it measures: monitoring,
// policies that ask for signatures, frameworks.
func HealthOfPeers(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (PeerHealth, error) {
	row, err := pg.One[PeerHealth](ctx, t.DB(), "compare clients", pg.SQL(`
		SELECT count(*) AS clients, avg(h.average_score)::float8 AS average_score, avg(h.high_risk)::float8 AS high_risk,
			avg(h.on_track)::float8 AS on_track, avg(h.mails_per_user)::float8 AS mails_per_user,
			avg(h.click_rate)::float8 AS click_rate, avg(h.report_rate)::float8 AS report_rate,
			CASE WHEN count(h.exposures_per100) >= @least THEN avg(h.exposures_per100)::float8 END AS exposures_per100,
			CASE WHEN count(h.signed) >= @least THEN avg(h.signed)::float8 END AS signed,
			CASE WHEN count(h.frameworks_met) >= @least THEN avg(h.frameworks_met)::float8 END AS frameworks_met
		FROM (`+healthSQL+`) AS h`, pg.Named{
		"which": t.Peers(), "from": p.Start, "to": p.End, "now": t.DB().Now(), "least": domain.LeastPeers,
	}))
	if err != nil || row.Clients < domain.LeastPeers {
		row.Health = domain.Health{}
	}
	return row, err
}
