package db

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// lockMessages keeps reports and classifications of the same messages from passing
// each other unseen: whoever comes second waits, and then sees what the first one
// wrote. The locks are advisory ones, of at most 1,024 classes of messages.
func (c *Change) lockMessages(ctx context.Context, batch []domain.Signal) error {
	var messages []string
	for i := range batch {
		if m := batch[i].Message; m != "" {
			messages = append(messages, m)
		}
	}
	if len(messages) == 0 {
		return nil
	}
	c.Lock(MessageLocks)
	_, err := pg.Exec(ctx, c, "lock messages", pg.SQL(`
		SELECT pg_advisory_xact_lock(hashtext('reported emails'), n) FROM (
			SELECT DISTINCT hashtext(m) & 1023 AS n FROM unnest(?::text[]) AS m ORDER BY 1
		) AS classes`, messages))
	return err
}

// reporters are the users who reported messages; those of archived clients too.
func (d *DB) reporters(ctx context.Context, messages []string) ([]domain.UserID, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	return pg.All[domain.UserID](ctx, d, "look for reporters",
		pg.SQL("SELECT DISTINCT user_id FROM reported_emails WHERE message_id = ANY(?::text[])", messages))
}

// simulated turns the reports of simulated mails that were sent to the reporter
// into what they are (decisions 7.10).
func (n *named) simulated(batch []domain.Signal) []domain.Signal {
	batch = slices.Clone(batch)
	for i := range batch {
		s := &batch[i]
		if s.Type != domain.EmailReported {
			continue
		}
		if r, found := n.results[domain.SimulatedMessage(s.Message)]; found && r.User == s.User {
			s.Type, s.Result = domain.PhishingReported, r.ID
		}
	}
	return batch
}

// reportedRow is a report of a real mail, by the columns of reported_emails.
type reportedRow struct {
	ClientID   string    `json:"client_id"`
	ID         string    `json:"id"`
	UserID     string    `json:"user_id"`
	MessageID  string    `json:"message_id"`
	Subject    string    `json:"subject"`
	Sender     string    `json:"sender"`
	ReportedAt time.Time `json:"reported_at"`
}

func reportedRowOf(user domain.UserKey, s *domain.Signal) reportedRow {
	return reportedRow{
		ClientID: user.Client.UUID(), ID: NewID[domain.ReportedEmailKind]().UUID(), UserID: user.User.UUID(),
		MessageID: s.Message, Subject: s.Subject, Sender: s.Sender, ReportedAt: s.At,
	}
}

// classifiedRow is a classification, by the columns of email_classifications.
type classifiedRow struct {
	MessageID      string                `json:"message_id"`
	ClientID       string                `json:"client_id"`
	Classification domain.EmailClass     `json:"classification"`
	MailboxAction  *domain.MailboxAction `json:"mailbox_action"`
	ClassifiedAt   time.Time             `json:"classified_at"`
}

func classifiedRowOf(s *domain.Signal) classifiedRow {
	row := classifiedRow{
		MessageID: s.Message, ClientID: s.Client.UUID(), Classification: s.Classification.Class, ClassifiedAt: s.At,
	}
	if s.Classification.Action != "" {
		row.MailboxAction = &s.Classification.Action
	}
	return row
}

// storeClassifiedSQL stores the classifications ?0: of those of one message and
// client the latest, and of two of one moment the greater one.
const storeClassifiedSQL = `
	INSERT INTO email_classifications AS k (message_id, client_id, classification, mailbox_action, classified_at)
	SELECT DISTINCT ON (message_id, client_id) message_id, client_id, classification, mailbox_action, classified_at
	FROM json_populate_recordset(NULL::email_classifications, ?::json)
	ORDER BY message_id, client_id, classified_at DESC, classification DESC, mailbox_action DESC NULLS LAST
	ON CONFLICT (message_id, client_id) DO UPDATE SET (classification, mailbox_action, classified_at) =
		(excluded.classification, excluded.mailbox_action, excluded.classified_at)
	WHERE (excluded.classified_at, excluded.classification, coalesce(excluded.mailbox_action, ''))
		> (k.classified_at, k.classification, coalesce(k.mailbox_action, ''))`

// storeReportedSQL stores the reports ?0 as of the time ?1, each user's earliest of
// a message, and returns those that changed.
const storeReportedSQL = `
	INSERT INTO reported_emails AS e
		(client_id, id, user_id, message_id, subject, sender, classification, reported_at, updated_at)
	SELECT DISTINCT ON (client_id, user_id, message_id)
		client_id, id, user_id, message_id, subject, sender, 'pending', reported_at, ?1::timestamptz
	FROM json_populate_recordset(NULL::reported_emails, ?0::json)
	ORDER BY client_id, user_id, message_id, reported_at, subject, sender
	ON CONFLICT (client_id, user_id, message_id) DO UPDATE SET
		(subject, sender, reported_at) = (excluded.subject, excluded.sender, excluded.reported_at),
		updated_at = greatest(e.updated_at, excluded.updated_at)
	WHERE (excluded.reported_at, excluded.subject, excluded.sender) < (e.reported_at, e.subject, e.sender)
	RETURNING client_id, user_id, id, xmax = 0 AS new`

// classifySQL gives the reports of the messages ?0 the latest classification that
// concerns them, as of the time ?1, and returns those that changed.
const classifySQL = `
	UPDATE reported_emails AS e SET updated_at = greatest(e.updated_at, ?1::timestamptz),
		(classification, mailbox_action, classified_at) = (k.classification, k.mailbox_action, k.classified_at)
	FROM reported_emails AS r JOIN clients AS c ON c.id = r.client_id AND c.archived_at IS NULL
	CROSS JOIN LATERAL (
		SELECT classification, mailbox_action, classified_at FROM email_classifications
		WHERE message_id = r.message_id AND client_id IN (r.client_id, '00000000-0000-0000-0000-000000000000')
		ORDER BY classified_at DESC, classification DESC, mailbox_action DESC NULLS LAST LIMIT 1
	) AS k
	WHERE r.message_id = ANY(?0::text[]) AND e.client_id = r.client_id AND e.id = r.id
		AND (k.classified_at, k.classification, coalesce(k.mailbox_action, '')) >
			(coalesce(e.classified_at, '-infinity'), e.classification, coalesce(e.mailbox_action, ''))
	RETURNING e.client_id, e.user_id, e.id, false AS new`

type storedReport struct {
	ClientID domain.ClientID
	UserID   domain.UserID
	ID       domain.ReportedEmailID
	New      bool
}

// takeReported stores reports of real mails by locked users, and classifications.
// What is stored in the end does not depend on the order in which they come. It
// takes three statements for any number of them.
func (c *Change) takeReported(ctx context.Context, reports []reportedRow, classified []classifiedRow) error {
	if len(reports)+len(classified) == 0 {
		return nil
	}
	var messages []string
	for i := range classified {
		messages = append(messages, classified[i].MessageID)
	}
	for i := range reports {
		messages = append(messages, reports[i].MessageID)
	}
	known, err := json.Marshal(classified)
	if err != nil {
		return err
	}
	given, err := json.Marshal(reports)
	if err != nil {
		return err
	}

	c.Lock(ReportedLocks)
	if len(classified) > 0 {
		if _, err := pg.Exec(ctx, c, "store classifications", pg.SQL(storeClassifiedSQL, string(known))); err != nil {
			return err
		}
	}
	if len(reports) > 0 {
		err := c.noteReported(ctx, "store reported mails", pg.SQL(storeReportedSQL, string(given), c.At))
		if err != nil {
			return err
		}
	}
	return c.noteReported(ctx, "classify reported mails", pg.SQL(classifySQL, messages, c.At))
}

// noteReported runs a statement that returns reports that changed, and notes what
// follows: the users' scores, and an event for each new report.
func (c *Change) noteReported(ctx context.Context, what string, q pg.Query) error {
	rows, err := pg.All[storedReport](ctx, c, what, q)
	for _, r := range rows {
		user := domain.UserKey{Client: r.ClientID, User: r.UserID}
		c.Rescore(user)
		if r.New {
			c.ObjectEvent(domain.RealReported, user, r.ID.UUID())
		}
	}
	return err
}
