package reports

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Scores reads the client's average scores by day, the oldest first, without days on which none was computed.
var Scores = Statement[domain.AverageOn]{"read average scores", `
	SELECT day AS date, average_score FROM risk_history WHERE client_id = ?client AND day BETWEEN ?firstDay AND ?lastDay ORDER BY day`}

// SignatureCount counts the signatures of active users in a period, also those of archived policies and old versions.
var SignatureCount = Statement[int]{"count signatures", `
	SELECT count(*) FROM policy_signatures AS s JOIN users AS u ON u.client_id = s.client_id AND u.id = s.user_id
	WHERE s.client_id = ?client AND u.status = 'active' AND s.signed_at >= ?since AND s.signed_at < ?until`}

// RefreshPeers refreshes the data that HealthOfPeers reads: summaries and evaluations that are older than
// domain.SummaryAge, and stale counts of policies. It also evaluates the client's own frameworks. It does not check the
// caller's reach.
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
		if _, err := EveryPolicy(ctx, peer); err != nil { // renews stale counts
			return err
		}
	}
	return nil
}

// healthSQL selects the health of the clients, alias c, that match the condition ?which. The figures are the same as in
// reads of these clients; emails are counted from the day ?from to the day ?to, and counts of policies must be valid
// ?now.
const healthSQL = `
	SELECT c.average_score::float8 AS average_score, 100.0 * c.high_risk_users / nullif(c.users_active, 0) AS high_risk,
		c.on_track_rate AS on_track, coalesce(m.sent, 0)::float8 / nullif(c.users_active, 0) AS mails_per_user,
		c.click_rate_90d AS click_rate, c.report_rate_90d AS report_rate,
		CASE WHEN c.dark_web_monitoring THEN 100.0 * e.unresolved / nullif(c.users_active, 0) END AS exposures_per100,
		100.0 * s.signed / nullif(s.asked, 0) AS signed, 100.0 * f.met / nullif(f.total, 0) AS frameworks_met
	FROM clients AS c
	CROSS JOIN LATERAL (
		SELECT sum(sent) AS sent FROM phishing_days WHERE client_id = c.id AND day BETWEEN ?from AND ?to
	) AS m
	CROSS JOIN LATERAL (
		SELECT count(*) AS unresolved FROM exposures AS x JOIN users AS u ON u.client_id = x.client_id AND u.id = x.user_id
		WHERE x.client_id = c.id AND x.resolved_at IS NULL AND u.status = 'active' AND c.dark_web_monitoring
	) AS e
	CROSS JOIN LATERAL (
		SELECT sum(audience_count) AS asked, sum(acknowledged_count) AS signed FROM policies
		WHERE client_id = c.id AND archived_at IS NULL AND requires_acknowledgment AND ?countsHold
	) AS s
	CROSS JOIN LATERAL (
		SELECT sum(met) AS met, sum(total) AS total FROM framework_assignments WHERE client_id = c.id
	) AS f
	WHERE ?which`

// PeerHealth is the average health of other clients, and their number.
type PeerHealth struct {
	Clients int
	domain.Health
}

// HealthOfPeers returns the unweighted average over the partner's other clients with active users (Tenant.Peers). It
// does not check the caller's reach. All averages are empty if there are fewer than domain.LeastPeers such clients
// (decisions 8.10). An average is also empty if too few of them have the data: monitoring, policies to sign, or
// frameworks.
func HealthOfPeers(ctx context.Context, t *db.Tenant, p domain.ReportPeriod) (PeerHealth, error) {
	row, err := pg.One[PeerHealth](ctx, t.DB(), "compare clients", pg.SQL(`
		SELECT count(*) AS clients, avg(h.average_score)::float8 AS average_score, avg(h.high_risk)::float8 AS high_risk,
			avg(h.on_track)::float8 AS on_track, avg(h.mails_per_user)::float8 AS mails_per_user,
			avg(h.click_rate)::float8 AS click_rate, avg(h.report_rate)::float8 AS report_rate,
			CASE WHEN count(h.exposures_per100) >= ?least THEN avg(h.exposures_per100)::float8 END AS exposures_per100,
			CASE WHEN count(h.signed) >= ?least THEN avg(h.signed)::float8 END AS signed,
			CASE WHEN count(h.frameworks_met) >= ?least THEN avg(h.frameworks_met)::float8 END AS frameworks_met
		FROM (`+healthSQL+`) AS h`, pg.Named{
		"which": t.Peers(), "from": p.Start, "to": p.End, "countsHold": db.PolicyCountsHold(t.DB().Now()), "least": domain.LeastPeers,
	}))
	if err != nil || row.Clients < domain.LeastPeers {
		row.Health = domain.Health{}
	}
	return row, err
}
