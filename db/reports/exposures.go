package reports

import "partnerapi/domain"

// exposureTally is SQL columns that count the exposures e: those found and those resolved from ?since until ?until, and
// all unresolved and all resolved ones.
const exposureTally = `count(*) FILTER (WHERE e.first_seen_at >= ?since AND e.first_seen_at < ?until) AS found,
			count(*) FILTER (WHERE e.resolved_at >= ?since AND e.resolved_at < ?until) AS resolved_within,
			count(*) - count(e.resolved_at) AS unresolved, count(e.resolved_at) AS resolved`

// activeExposures is an SQL FROM item with the exposures e of the active users u of the client.
const activeExposures = `exposures AS e JOIN users AS u
		ON u.client_id = e.client_id AND u.id = e.user_id AND u.client_id = ?client AND u.status = 'active'`

// ExposuresBySeverity counts the exposures of active users by severity. Severities without exposures are omitted.
var ExposuresBySeverity = Statement[domain.SeverityExposures]{"count exposures by severity",
	"SELECT e.severity, " + exposureTally + " FROM " + activeExposures + " GROUP BY e.severity"}

// ExposureMonths counts the exposures of active users that were found, and those that were resolved, by month. Months
// without either are omitted.
var ExposureMonths = Statement[domain.ExposureMonth]{"count exposures by month", `
	SELECT date_trunc('month', w.at)::date AS month, count(*) FILTER (WHERE NOT w.done) AS found,
		count(*) FILTER (WHERE w.done) AS resolved
	FROM ` + activeExposures + `
	CROSS JOIN LATERAL (VALUES (e.first_seen_at, false), (e.resolved_at, true)) AS w (at, done)
	WHERE w.at >= ?since AND w.at < ?until GROUP BY 1 ORDER BY 1`}

// ExposuresByBreach counts the exposures of active users by breach, in descending order of the unresolved ones.
var ExposuresByBreach = Statement[domain.BreachExposures]{"count exposures by breach", `
	SELECT b.title, b.domain, b.breach_on, b.severity, b.data_classes,
		n.found, n.resolved_within, n.unresolved, n.resolved
	FROM (SELECT e.breach_name, ` + exposureTally + ` FROM ` + activeExposures + ` GROUP BY e.breach_name) AS n
	JOIN breaches AS b ON b.name = n.breach_name
	ORDER BY n.unresolved DESC, b.title COLLATE "C", b.name`}

// ExposuresByUser counts the exposures of each active user who has any.
var ExposuresByUser = Statement[domain.UserExposures]{"count exposures by user", `
	SELECT ` + person + `, n.* FROM ` + reportedUsers + `
	CROSS JOIN LATERAL (
		SELECT (array_agg(e.severity ORDER BY array_position(ARRAY['critical', 'high', 'medium', 'low'], e.severity))
			FILTER (WHERE e.resolved_at IS NULL))[1] AS highest, ` + exposureTally + `
		FROM exposures AS e WHERE e.client_id = ?client AND e.user_id = u.id HAVING count(*) > 0
	) AS n
	ORDER BY u.name_key, u.email_key`}
