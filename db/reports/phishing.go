package reports

import (
	"partnerapi/db"
	"partnerapi/domain"
)

// reportedUsers is an SQL FROM item, alias u, with the users of a report about every user (decisions 8.9): the active
// users of the client, ordered by name and key of the email. Rows that are joined LATERAL to each user stay in that
// order without a sort.
var reportedUsers = `(
		SELECT u.id, u.first_name, u.last_name, u.email, ` + db.EmailKey + ` AS email_key, u.department, u.name_key, u.group_id,
			u.next_due_on, u.next_course_id FROM users AS u
		WHERE u.client_id = ?client AND u.status = 'active' ORDER BY u.name_key, ` + db.EmailKey + `
	) AS u`

// person are the columns of a domain.Person.
const person = "u.first_name, u.last_name, u.email, u.department"

// phishingCounts is SQL columns that count the simulated emails of the rows r of phishing_results, with the meanings of
// the columns of phishing_days.
const phishingCounts = `count(*) AS sent, count(*) FILTER (WHERE r.status <> 'sent') AS opened,
			count(*) FILTER (WHERE r.status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked,
			count(*) FILTER (WHERE r.reported) AS reported, count(r.credentials_submitted_at) AS credentials_submitted,
			count(r.attachment_opened_at) AS attachments_opened`

// PhishedMonths counts the simulated emails of a period by the month of sending. Months without emails are omitted.
var PhishedMonths = Statement[domain.PhishedMonth]{"count simulated emails by month", `
	SELECT date_trunc('month', day::timestamp)::date AS month, sum(sent) AS sent, sum(opened) AS opened,
		sum(clicked) AS clicked, sum(reported) AS reported, sum(credentials_submitted) AS credentials_submitted,
		sum(attachments_opened) AS attachments_opened
	FROM phishing_days WHERE client_id = ?client AND day BETWEEN ?firstDay AND ?lastDay GROUP BY 1 ORDER BY 1`}

// PhishedCategories counts the simulated emails of a period by the category of their template.
var PhishedCategories = Statement[domain.PhishedCategory]{"count simulated emails by category", `
	SELECT m.category, ` + phishingCounts + `
	FROM phishing_results AS r JOIN phishing_templates AS m ON m.id = r.template_id
	WHERE r.client_id = ?client AND r.sent_at >= ?since AND r.sent_at < ?until
	GROUP BY m.category ORDER BY m.category COLLATE "C"`}

// repeatClickers selects the users who fell for two or more of the simulated emails of a period.
const repeatClickers = `
	SELECT user_id, count(*) AS clicked,
		max(greatest(clicked_at, credentials_submitted_at, attachment_opened_at)) AS last_clicked_at
	FROM phishing_results AS r
	WHERE client_id = ?client AND sent_at >= ?since AND sent_at < ?until AND ` + db.FellFor + `
	GROUP BY user_id HAVING count(*) > 1`

// RepeatClickers reads the users, including inactive ones, who fell for two or more of the simulated emails of a
// period. Users who fell for the most emails come first.
var RepeatClickers = Statement[domain.RepeatClicker]{"read repeat clickers", `
	WITH repeated AS (` + repeatClickers + `)
	SELECT ` + person + `, u.status, n.sent, c.clicked, c.last_clicked_at
	FROM repeated AS c JOIN users AS u ON u.client_id = ?client AND u.id = c.user_id
	CROSS JOIN LATERAL (
		SELECT count(*) AS sent FROM phishing_results AS r
		WHERE r.client_id = ?client AND r.user_id = c.user_id AND r.sent_at >= ?since AND r.sent_at < ?until
	) AS n
	ORDER BY c.clicked DESC, u.name_key, ` + db.EmailKey}

// RepeatClickerCount counts the rows of RepeatClickers.
var RepeatClickerCount = Statement[int]{"count repeat clickers", "SELECT count(*) FROM (" + repeatClickers + ") AS repeated"}

// PhishedUsers counts the simulated emails of a period for every active user.
var PhishedUsers = Statement[domain.PhishedUser]{"count simulated emails by user", `
	SELECT ` + person + `, n.* FROM ` + reportedUsers + `
	CROSS JOIN LATERAL (
		SELECT ` + phishingCounts + ` FROM phishing_results AS r
		WHERE r.client_id = ?client AND r.user_id = u.id AND r.sent_at >= ?since AND r.sent_at < ?until
	) AS n
	ORDER BY u.name_key, u.email_key`}
