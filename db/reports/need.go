package reports

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// mostInNeed is the maximum number of rows of UsersInNeed and OverdueUsers, so that a page has room for them.
const mostInNeed = 10

// UsersInNeed reads the active users who need attention: those who are of high risk, have overdue courses, fell for two
// or more of the simulated emails of the period, or have unresolved critical exposures. Those with the lowest scores come
// first, at most mostInNeed. Exposures count only with Dark Web Monitoring.
var UsersInNeed = Statement[domain.UserInNeed]{"read users who need attention", `
	SELECT ` + person + `, u.score, coalesce(o.overdue, 0) AS overdue, coalesce(f.clicked, 0) AS clicked,
		coalesce(x.critical, 0) AS critical, count(*) OVER () AS users,
		count(*) FILTER (WHERE u.score < ?highRiskBelow) OVER () AS high_risk,
		count(*) FILTER (WHERE o.overdue > 0) OVER () AS with_overdue,
		count(*) FILTER (WHERE f.clicked > 1) OVER () AS repeat_clickers,
		count(*) FILTER (WHERE x.critical > 0) OVER () AS with_critical,
		(sum(x.critical) OVER ())::bigint AS all_critical
	FROM users AS u
	LEFT JOIN (
		SELECT user_id, count(*) AS overdue FROM assignments
		WHERE client_id = ?client AND completed_at IS NULL AND due_on < ?today::date GROUP BY user_id
	) AS o ON o.user_id = u.id
	LEFT JOIN (` + repeatClickers + `) AS f ON f.user_id = u.id
	LEFT JOIN (
		SELECT user_id, count(*) AS critical FROM exposures
		WHERE client_id = ?client AND resolved_at IS NULL AND severity = 'critical' AND ?darkWeb::boolean GROUP BY user_id
	) AS x ON x.user_id = u.id
	WHERE u.client_id = ?client AND u.status = 'active'
		AND (u.score < ?highRiskBelow OR o.overdue > 0 OR f.clicked > 1 OR x.critical > 0)
	ORDER BY u.score, u.name_key, ` + db.EmailKey + ` LIMIT ?most`}

// OverdueUsers reads the active users with overdue courses, at most mostInNeed. Those with the most come first, then
// those whose oldest is due first.
var OverdueUsers = Statement[domain.OverdueUser]{"read users with overdue courses", `
	WITH overdue AS (
		SELECT a.user_id, count(*) AS overdue, min(a.due_on) AS oldest_due_on
		FROM assignments AS a JOIN users AS u ON u.client_id = a.client_id AND u.id = a.user_id
		WHERE a.client_id = ?client AND a.completed_at IS NULL AND a.due_on < ?today::date AND u.status = 'active'
		GROUP BY a.user_id
	), chosen AS (
		SELECT u.*, o.overdue, o.oldest_due_on FROM overdue AS o JOIN users AS u ON u.client_id = ?client AND u.id = o.user_id
		ORDER BY o.overdue DESC, o.oldest_due_on, u.name_key, ` + db.EmailKey + ` LIMIT ?most
	)
	SELECT ` + person + `, u.overdue, u.oldest_due_on, (
		SELECT array_agg(c.title ORDER BY a.due_on, c.title COLLATE "C", c.id) FROM assignments AS a
		JOIN courses AS c ON c.id = a.course_id
		WHERE a.client_id = ?client AND a.user_id = u.id AND a.completed_at IS NULL AND a.due_on < ?today::date
	) AS titles
	FROM chosen AS u ORDER BY u.overdue DESC, u.oldest_due_on, u.name_key, ` + db.EmailKey}
