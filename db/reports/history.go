package reports

import "partnerapi/domain"

// history is an SQL FROM item with the active users u of the client and their events e until ?until, and the begin of a
// condition that lacks the time from which events are read. Exposures are events only if ?darkWeb is true.
var history = reportedUsers + `
	CROSS JOIN LATERAL (
		SELECT w.at, w.kind, c.title AS subject, 0 AS version
		FROM assignments AS a JOIN courses AS c ON c.id = a.course_id
		CROSS JOIN LATERAL (VALUES (a.assigned_at, 'course_assigned'), (a.completed_at, 'course_completed')) AS w (at, kind)
		WHERE a.client_id = ?client AND a.user_id = u.id
		UNION ALL
		SELECT w.at, w.kind, m.name, 0
		FROM phishing_results AS r JOIN phishing_templates AS m ON m.id = r.template_id
		CROSS JOIN LATERAL (VALUES (r.sent_at, 'simulation_sent'), (r.opened_at, 'simulation_opened'),
			(r.attachment_opened_at, 'attachment_opened'), (r.clicked_at, 'simulation_clicked'),
			(r.credentials_submitted_at, 'credentials_submitted'), (r.reported_at, 'simulation_reported')) AS w (at, kind)
		WHERE r.client_id = ?client AND r.user_id = u.id AND r.sent_at < ?until
		UNION ALL
		SELECT r.reported_at, 'email_reported', r.subject, 0
		FROM reported_emails AS r WHERE r.client_id = ?client AND r.user_id = u.id
		UNION ALL
		SELECT s.signed_at, 'policy_signed', p.title, s.version
		FROM policy_signatures AS s JOIN policies AS p ON p.client_id = s.client_id AND p.id = s.policy_id
		WHERE s.client_id = ?client AND s.user_id = u.id
		UNION ALL
		SELECT w.at, w.kind, b.title, 0
		FROM exposures AS x JOIN breaches AS b ON b.name = x.breach_name
		CROSS JOIN LATERAL (VALUES (x.first_seen_at, 'exposure_found'), (x.resolved_at, 'exposure_resolved')) AS w (at, kind)
		WHERE x.client_id = ?client AND x.user_id = u.id AND ?darkWeb::boolean
	) AS e
	WHERE e.at >= `

// History reads the events of every active user in a period, ordered by user and then by time. Exposures are omitted
// if the client has no Dark Web Monitoring.
var History = Statement[domain.HistoryEvent]{"read users' history",
	"SELECT " + person + ", e.at, e.kind, e.subject, e.version FROM " + history +
		"?since AND e.at < ?until ORDER BY u.name_key, u.email_key, e.at, e.kind, e.subject, e.version"}

// HistoryCount is the number of events of a kind in a period, and Earlier that in the period before.
type HistoryCount struct {
	Kind            domain.HistoryKind
	Events, Earlier int
}

// HistoryCounts counts the events of History by their kind.
var HistoryCounts = Statement[HistoryCount]{"count users' history", `
	SELECT e.kind, count(*) FILTER (WHERE e.at >= ?since) AS events, count(*) FILTER (WHERE e.at < ?since) AS earlier
	FROM ` + history + "?before AND e.at < ?until GROUP BY e.kind"}
