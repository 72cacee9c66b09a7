package db

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// mailRecord is a mail that the service sends of itself (decisions 7.11), by the
// columns of mail_requests.
type mailRecord struct {
	ClientID   string             `json:"client_id"`
	ID         string             `json:"id"`
	Type       domain.MessageType `json:"type"`
	UserID     string             `json:"user_id,omitempty"`
	CourseID   string             `json:"course_id,omitempty"`
	Round      int                `json:"round,omitempty"`
	ResultID   string             `json:"result_id,omitempty"`
	BreachName string             `json:"breach_name,omitempty"`
	AdminID    string             `json:"admin_id,omitempty"`
	ReportID   string             `json:"report_id,omitempty"`
	CreatedAt  time.Time          `json:"created_at"`
	DueAt      time.Time          `json:"due_at"`
}

// NoMail has the change send no mail of the service's own: for a change that
// brings in history.
func (c *Change) NoMail() { c.noMail = true }

// mailCertificate asks for the certificate of a round of a course, which the user
// completed at a time.
func (c *Change) mailCertificate(user domain.UserKey, course domain.CourseID, round int, at time.Time) {
	c.mailUser(user, at, mailRecord{Type: domain.CertificateMail, CourseID: course.UUID(), Round: round, DueAt: c.At})
}

// mailReminder asks for the reminder of a simulated mail that the user fell for at
// a time.
func (c *Change) mailReminder(user domain.UserKey, result domain.ResultID, at time.Time) {
	c.mailUser(user, at, mailRecord{
		Type: domain.PhishReminder, ResultID: result.UUID(), DueAt: at.Add(domain.ReminderAfter),
	})
}

// mailNotice asks for the notice of an exposure of the user, which was found at a
// time.
func (c *Change) mailNotice(user domain.UserKey, breach string, at time.Time) {
	c.mailUser(user, at, mailRecord{Type: domain.ExposureNotice, BreachName: breach, DueAt: c.At})
}

// mailUser asks for a mail to a user about something that happened at a time.
func (c *Change) mailUser(user domain.UserKey, at time.Time, m mailRecord) {
	if c.At.Sub(at) > domain.MailCauseLife {
		return
	}
	m.ClientID, m.UserID = user.Client.UUID(), user.User.UUID()
	c.mail(m)
}

// MailReport asks for mails that bring a monthly report to admins of a client,
// which are sent where the client has them switched on by then. It is idempotent.
func (c *Change) MailReport(client domain.ClientID, report domain.ReportID, admins ...domain.AdminID) {
	for _, admin := range admins {
		c.mail(mailRecord{
			ClientID: client.UUID(), Type: domain.MonthlyReportMail, AdminID: admin.UUID(), ReportID: report.UUID(),
			DueAt: c.At,
		})
	}
}

func (c *Change) mail(m mailRecord) {
	m.ID, m.CreatedAt = NewID[domain.MessageKind]().UUID(), c.At
	c.mails = append(c.mails, m)
}

// flushMails puts the mails of the change into the outbox. A mail that was asked
// for before is not asked for again.
func (c *Change) flushMails(ctx context.Context) error {
	if len(c.mails) == 0 || c.noMail {
		return nil
	}
	// Two changes can ask for one report's mails: unique keys are entered in one order.
	slices.SortStableFunc(c.mails, func(a, b mailRecord) int {
		return cmp.Or(cmp.Compare(a.ReportID, b.ReportID), cmp.Compare(a.AdminID, b.AdminID))
	})
	text, err := json.Marshal(c.mails)
	if err != nil {
		return err
	}
	return c.insertOutbox(ctx, pg.SQL(`
		asked AS (
			INSERT INTO mail_requests (client_id, id, type, user_id, course_id, round, result_id, breach_name, admin_id,
				report_id, created_at, due_at)
			SELECT client_id, id, type, user_id, course_id, round, result_id, breach_name, admin_id,
				report_id, created_at, due_at
			FROM json_populate_recordset(NULL::mail_requests, ?::json)
			ON CONFLICT DO NOTHING RETURNING client_id, id, due_at
		),`, string(text)),
		pg.SQL("SELECT client_id, id, ?, 2, due_at FROM asked", RequestedMail))
}

// OutboxKind says which table a mail of the outbox is a row of.
type OutboxKind string

// The kinds: mail_requests and phishing_results.
const (
	RequestedMail OutboxKind = "mail"
	SimulatedMail OutboxKind = "simulation"
)

// OutboxChannel is what processes that send listen to.
const OutboxChannel = "outbox"

// SendMails puts mail requests of a client that the transaction wrote into the
// outbox. It takes one statement for any number of them.
func (c *Change) SendMails(ctx context.Context, client domain.ClientID, ids ...domain.MessageID) error {
	if len(ids) == 0 {
		return nil
	}
	return c.insertOutbox(ctx, pg.SQL(""), pg.SQL(`
		SELECT client_id, id, ?0, CASE WHEN type IN (?1, ?2) THEN 1 ELSE 2 END, ?3::timestamptz
		FROM mail_requests WHERE client_id = ?4 AND id = ANY(?5::uuid[])`,
		RequestedMail, domain.WelcomeMail, domain.AdminInviteMail, c.At, client, pg.IDs(ids)))
}

// sendSimulations puts scheduled simulated mails of a client into the outbox.
func (c *Change) sendSimulations(ctx context.Context, client domain.ClientID, results []domain.Result) error {
	ids, due := make([]domain.ResultID, len(results)), make([]time.Time, len(results))
	for i, r := range results {
		ids[i], due[i] = r.ID, r.SendAt
	}
	return c.insertOutbox(ctx, pg.SQL(""), pg.SQL(`
		SELECT ?0::uuid, id, ?1, 2, due_at FROM unnest(?2::uuid[], ?3::timestamptz[]) AS r (id, due_at)`,
		client, SimulatedMail, pg.IDs(ids), due))
}

// insertOutbox inserts rows, and tells those who send of them once the
// transaction commits. with is empty, or WITH queries that rows reads, each with a
// comma behind it.
func (c *Change) insertOutbox(ctx context.Context, with, rows pg.Query) error {
	_, err := pg.Exec(ctx, c, "put mails into the outbox", pg.SQL(`
		WITH ? added AS (INSERT INTO outbox (client_id, id, kind, urgency, due_at) ? RETURNING id)
		SELECT pg_notify(?, '') FROM added LIMIT 1`, with, rows, OutboxChannel))
	return err
}
