package dbtest

// WrongPhishingDays counts the rows of phishing_days that differ from a recount
// of the results that they are kept of.
const WrongPhishingDays = `SELECT count(*) FROM (
		SELECT client_id, sent_at::date AS day, count(*) AS sent,
			count(*) FILTER (WHERE status <> 'sent') AS opened,
			count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked,
			count(*) FILTER (WHERE reported) AS reported,
			count(credentials_submitted_at) AS credentials,
			count(attachment_opened_at) AS attachments
		FROM phishing_results WHERE sent_at IS NOT NULL GROUP BY client_id, sent_at::date
	) AS r FULL JOIN phishing_days AS d USING (client_id, day)
	WHERE (r.sent, r.opened, r.clicked, r.reported, r.credentials, r.attachments)
		IS DISTINCT FROM (d.sent, d.opened, d.clicked, d.reported, d.credentials_submitted, d.attachments_opened)`
