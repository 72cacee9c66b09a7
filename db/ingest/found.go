package ingest

import (
	"context"
	"slices"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Signals of exposures, and of reported emails and their classifications.

// finding is a signal about an exposure as JSON, with the names that findingSQL uses. A resolution implies that the
// exposure existed. Until there is a signal of the exposure itself, the catalogue describes it.
type finding struct {
	ClientID    string          `json:"client_id"`
	UserID      string          `json:"user_id"`
	BreachName  string          `json:"breach_name"`
	Severity    domain.Severity `json:"severity"`
	DataClasses []string        `json:"data_classes"`
	At          time.Time       `json:"at"`
	Resolved    bool            `json:"resolved"`
}

// findingOf converts a signal about a user's exposure in a breach. If the signal leaves out the severity, it follows
// from the signal's data classes or, without these, from the breach. If it leaves out the data classes, they are the
// breach's.
func findingOf(b *db.BreachRow, user domain.UserKey, s *domain.Signal) finding {
	out := finding{
		ClientID: user.Client.UUID(), UserID: user.User.UUID(), BreachName: b.Name,
		Severity: b.Severity, DataClasses: b.DataClasses, At: s.At, Resolved: s.Type == domain.ExposureResolved,
	}
	if s.DataClasses != nil {
		out.Severity, out.DataClasses = domain.SeverityOf(s.DataClasses, b.Sensitive, b.SpamList), s.DataClasses
	}
	if s.Severity != "" {
		out.Severity = s.Severity
	}
	return out
}

// findingSQL stores the ?findings, with ?now as updated_at. The severity and data classes of an exposure are those of
// the worst finding by ?severities or, of two with the same severity, of that with the lesser list of data classes.
// Until an exposure is found, they are those of its resolution, which are the catalogue's. first_seen_at is the
// earliest time of all signals, and resolved_at the earliest time of the resolutions. So the result does not depend on
// the order of the signals.
//
// It returns the changed exposures of clients with Dark Web Monitoring. Other clients do not see exposures.
const findingSQL = `
	WITH told AS MATERIALIZED (
		SELECT DISTINCT ON (client_id, user_id, breach_name) client_id, user_id, breach_name, severity, data_classes,
			NOT resolved AS found, min(at) OVER w AS first_seen_at, min(at) FILTER (WHERE resolved) OVER w AS resolved_at,
			min(at) FILTER (WHERE NOT resolved) OVER w AS found_at
		FROM json_to_recordset(?findings::json) AS t (client_id uuid, user_id uuid, breach_name text COLLATE "C",
			severity text, data_classes text[], at timestamptz, resolved boolean)
		WINDOW w AS (PARTITION BY client_id, user_id, breach_name)
		ORDER BY client_id, user_id, breach_name, resolved, array_position(?severities::text[], severity), data_classes
	), stored AS (
		INSERT INTO exposures AS e
			(client_id, user_id, breach_name, severity, data_classes, found, first_seen_at, resolved_at, updated_at)
		SELECT client_id, user_id, breach_name, severity, data_classes, found, first_seen_at, resolved_at, ?now::timestamptz
		FROM told
		ON CONFLICT (client_id, user_id, breach_name) DO UPDATE SET
			(severity, data_classes) = (
				SELECT n.severity, n.data_classes
				FROM (VALUES (excluded.found, excluded.severity, excluded.data_classes), (e.found, e.severity, e.data_classes))
					AS n (found, severity, data_classes)
				ORDER BY NOT n.found, array_position(?severities::text[], n.severity), n.data_classes LIMIT 1),
			found = e.found OR excluded.found, first_seen_at = least(e.first_seen_at, excluded.first_seen_at),
			resolved_at = least(e.resolved_at, excluded.resolved_at),
			updated_at = greatest(e.updated_at, excluded.updated_at)
		WHERE (NOT excluded.found, array_position(?severities::text[], excluded.severity), excluded.data_classes)
			< (NOT e.found, array_position(?severities::text[], e.severity), e.data_classes)
			OR excluded.first_seen_at < e.first_seen_at OR excluded.resolved_at < coalesce(e.resolved_at, 'infinity')
		RETURNING client_id, user_id, breach_name, id, resolved_at
	)
	SELECT s.client_id AS client, s.user_id AS "user", s.breach_name, s.id, t.found AND e.found IS NOT TRUE AS announced, t.found_at,
		s.resolved_at IS NULL AS open
	FROM stored AS s JOIN clients AS c ON c.id = s.client_id AND c.dark_web_monitoring
	JOIN told AS t USING (client_id, user_id, breach_name)
	LEFT JOIN exposures AS e USING (client_id, user_id, breach_name) -- the row before this statement`

type exposureChange struct {
	domain.UserKey
	BreachName string
	ID         domain.MessageID
	// Announced is true if this is the first finding of the exposure. Its resolution may have been known before.
	// FoundAt is the earliest time of the new findings.
	Announced bool
	FoundAt   *time.Time
	Open      bool // not resolved
}

// storeFindings stores findings for locked users. The first finding of an exposure causes an event and, unless the
// exposure is resolved, a notice. updated_at of the users is set even if their scores do not change, because the number
// of their exposures is visible.
func storeFindings(ctx context.Context, c *db.Change, list []finding) error {
	if len(list) == 0 {
		return nil
	}
	c.WillLock(db.ExposureLocks)
	rows, err := pg.All[exposureChange](ctx, c, "record exposures",
		pg.SQL(findingSQL, pg.Named{"findings": list, "now": c.At, "severities": domain.SeverityCritical.Values()}))
	for _, row := range rows {
		c.Rescore(row.UserKey)
		c.TouchUsers(row.UserKey)
		if row.Announced {
			c.ObjectEvent(domain.DataExposed, row.UserKey, row.ID.UUID())
		}
		if row.Announced && row.Open {
			c.RequestMail(row.UserKey, *row.FoundAt, db.MailRequest{Type: domain.ExposureNotice, BreachName: row.BreachName})
		}
	}
	return err
}

// lockMessages serializes transactions with reports or classifications of the same messages: the second transaction
// waits, and then sees the rows of the first. It takes an advisory lock for the hash of each message, one of 1,024.
func lockMessages(ctx context.Context, c *db.Change, batch []domain.Signal) error {
	var messages []string
	for i := range batch {
		if m := batch[i].Message; m != "" {
			messages = append(messages, m)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	c.WillLock(db.MessageLocks)
	return pg.Run(ctx, c, "lock messages", pg.SQL(`
		SELECT pg_advisory_xact_lock(hashtext('reported emails'), n) FROM (
			SELECT DISTINCT hashtext(m) & 1023 AS n FROM unnest(?::text[]) AS m ORDER BY 1
		) AS classes`, messages))
}

// reporters returns the users who reported messages, including those of archived clients.
func reporters(ctx context.Context, d *db.DB, messages []string) ([]domain.UserID, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	return pg.All[domain.UserID](ctx, d, "look for reporters",
		pg.SQL("SELECT DISTINCT user_id FROM reported_emails WHERE message_id = ANY(?::text[])", messages))
}

// replaceSimulated returns the batch, in which reports of a simulated email by its recipient are replaced by signals of
// the type PhishingReported (decisions 7.10).
func (t *targets) replaceSimulated(batch []domain.Signal) []domain.Signal {
	batch = slices.Clone(batch)
	for i := range batch {
		s := &batch[i]
		if s.Type != domain.EmailReported {
			continue
		}
		if r, found := t.results[domain.SimulatedMessage(s.Message)]; found && r.User == s.User {
			s.Type, s.Result = domain.PhishingReported, r.ID
		}
	}
	return batch
}

// reportedRow is a report of a real email, as JSON with the columns of reported_emails.
type reportedRow struct {
	ClientID   string    `json:"client_id"`
	ID         string    `json:"id"`
	UserID     string    `json:"user_id"`
	MessageID  string    `json:"message_id"`
	Subject    string    `json:"subject"`
	Sender     string    `json:"sender"`
	ReportedAt time.Time `json:"reported_at"`
}

// reportedRowOf converts the signal of a report by a user.
func reportedRowOf(user domain.UserKey, s *domain.Signal) reportedRow {
	return reportedRow{
		ClientID: user.Client.UUID(), ID: db.NewID[domain.ReportedEmailKind]().UUID(), UserID: user.User.UUID(),
		MessageID: s.Message, Subject: s.Subject, Sender: s.Sender, ReportedAt: s.At,
	}
}

// classifiedRow is a classification, as JSON with the columns of email_classifications. A zero client means all.
type classifiedRow struct {
	MessageID      string                `json:"message_id"`
	ClientID       string                `json:"client_id"`
	Classification domain.EmailClass     `json:"classification"`
	MailboxAction  *domain.MailboxAction `json:"mailbox_action"`
	ClassifiedAt   time.Time             `json:"classified_at"`
}

// classifiedRowOf converts the signal of a classification.
func classifiedRowOf(s *domain.Signal) classifiedRow {
	return classifiedRow{
		MessageID: s.Message, ClientID: s.Client.UUID(), Classification: domain.EmailClass(s.Class),
		MailboxAction: domain.OrNil(s.Action), ClassifiedAt: s.At,
	}
}

// storeClassifiedSQL stores the latest classification of each message and client. Of two at the same time, it stores
// the subject that sorts last.
const storeClassifiedSQL = `
	INSERT INTO email_classifications AS k (message_id, client_id, classification, mailbox_action, classified_at)
	SELECT DISTINCT ON (message_id, client_id) message_id, client_id, classification, mailbox_action, classified_at
	FROM json_populate_recordset(NULL::email_classifications, ?::json)
	ORDER BY message_id, client_id, classified_at DESC, classification DESC, mailbox_action DESC NULLS LAST
	ON CONFLICT (message_id, client_id) DO UPDATE SET (classification, mailbox_action, classified_at) =
		(excluded.classification, excluded.mailbox_action, excluded.classified_at)
	WHERE (excluded.classified_at, excluded.classification, coalesce(excluded.mailbox_action, ''))
		> (k.classified_at, k.classification, coalesce(k.mailbox_action, ''))`

// storeReportedSQL stores, of the ?reports, each user's earliest report of a message, with ?now as updated_at. It
// returns the rows that changed.
const storeReportedSQL = `
	INSERT INTO reported_emails AS e
		(client_id, id, user_id, message_id, subject, sender, classification, reported_at, updated_at)
	SELECT DISTINCT ON (client_id, user_id, message_id)
		client_id, id, user_id, message_id, subject, sender, 'pending', reported_at, ?now::timestamptz
	FROM json_populate_recordset(NULL::reported_emails, ?reports::json)
	ORDER BY client_id, user_id, message_id, reported_at, subject, sender
	ON CONFLICT (client_id, user_id, message_id) DO UPDATE SET
		(subject, sender, reported_at) = (excluded.subject, excluded.sender, excluded.reported_at),
		updated_at = greatest(e.updated_at, excluded.updated_at)
	WHERE (excluded.reported_at, excluded.subject, excluded.sender) < (e.reported_at, e.subject, e.sender)
	RETURNING client_id AS client, user_id AS "user", id, xmax = 0 AS new`

// classifySQL sets the classification of the reports of the ?messages to the latest one for their client or for all
// clients, with ?now as updated_at. It returns the reports that changed, without those of archived clients.
const classifySQL = `
	UPDATE reported_emails AS e SET updated_at = greatest(e.updated_at, ?now::timestamptz),
		(classification, mailbox_action, classified_at) = (k.classification, k.mailbox_action, k.classified_at)
	FROM reported_emails AS r JOIN clients AS c ON c.id = r.client_id AND c.archived_at IS NULL
	CROSS JOIN LATERAL (
		SELECT classification, mailbox_action, classified_at FROM email_classifications
		WHERE message_id = r.message_id AND client_id IN (r.client_id, '00000000-0000-0000-0000-000000000000')
		ORDER BY classified_at DESC, classification DESC, mailbox_action DESC NULLS LAST LIMIT 1
	) AS k
	WHERE r.message_id = ANY(?messages::text[]) AND e.client_id = r.client_id AND e.id = r.id
		AND (k.classified_at, k.classification, coalesce(k.mailbox_action, '')) >
			(coalesce(e.classified_at, '-infinity'), e.classification, coalesce(e.mailbox_action, ''))
	RETURNING e.client_id AS client, e.user_id AS "user", e.id, false AS new`

type storedReport struct {
	domain.UserKey
	ID  domain.ReportedEmailID
	New bool
}

// storeReported stores reports of real emails by locked users, and classifications, and then classifies all reports of
// these messages. The result does not depend on the order of the signals. It takes at most three statements.
func storeReported(ctx context.Context, c *db.Change, reports []reportedRow, classified []classifiedRow) error {
	if len(reports)+len(classified) == 0 {
		return nil
	}
	messages := append(pg.MapRows(classified, func(r *classifiedRow) string { return r.MessageID }),
		pg.MapRows(reports, func(r *reportedRow) string { return r.MessageID })...)
	c.WillLock(db.ReportedLocks)
	if len(classified) > 0 {
		if err := pg.Run(ctx, c, "store classifications", pg.SQL(storeClassifiedSQL, classified)); err != nil {
			return err
		}
	}
	if len(reports) > 0 {
		err := noteReported(ctx, c, "store reported emails", pg.SQL(storeReportedSQL, pg.Named{"reports": reports, "now": c.At}))
		if err != nil {
			return err
		}
	}
	return noteReported(ctx, c, "classify reported emails", pg.SQL(classifySQL, pg.Named{"messages": messages, "now": c.At}))
}

// noteReported runs a statement, with a name, that returns changed reports. It registers the users for a recomputation
// of their scores, and records an event for each new report.
func noteReported(ctx context.Context, c *db.Change, name string, q pg.Query) error {
	rows, err := pg.All[storedReport](ctx, c, name, q)
	for _, r := range rows {
		c.Rescore(r.UserKey)
		if r.New {
			c.ObjectEvent(domain.RealReported, r.UserKey, r.ID.UUID())
		}
	}
	return err
}
