package records

import (
	"context"
	"iter"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The export of signals: actions of users that no record holds.

// SignalLine is a signal in the form of a line of an ingestion. Fields that the type does not have are nil.
type SignalLine struct {
	ID             string                `json:"id"`
	Type           domain.SignalType     `json:"type"`
	At             string                `json:"at"`
	UserID         *domain.UserID        `json:"user_id,omitzero"`
	CourseID       *domain.CourseID      `json:"course_id,omitzero"`
	PolicyID       *domain.PolicyID      `json:"policy_id,omitzero"`
	Version        *int                  `json:"version,omitzero"`
	MessageID      *string               `json:"message_id,omitzero"`
	Subject        *string               `json:"subject,omitzero"`
	Sender         *string               `json:"sender,omitzero"`
	Classification *domain.EmailClass    `json:"classification,omitzero"`
	MailboxAction  *domain.MailboxAction `json:"mailbox_action,omitzero"`
	ClientID       *domain.ClientID      `json:"client_id,omitzero"`
}

// exportSignalsSQL selects as signals the actions of users that no record holds: courses started and completed,
// policies signed, emails reported and classified. It leaves out archived clients and policies, for which an ingestion
// accepts no signals. The ids are derived from the content. ?0 is a condition on clients, alias c.
const exportSignalsSQL = `
	WITH reached AS (SELECT c.id FROM clients AS c WHERE c.archived_at IS NULL AND ?0)
	(SELECT 'course_completed/' || a.user_id || '/' || a.course_id || '/' || a.round AS id, 'course_completed' AS type,
		a.completed_at AS at, a.user_id, a.course_id, NULL::uuid AS policy_id, NULL::integer AS version,
		NULL AS message_id, NULL AS subject, NULL AS sender, NULL AS classification, NULL AS mailbox_action,
		NULL::uuid AS client_id
	FROM assignments AS a WHERE a.client_id IN (SELECT id FROM reached) AND a.completed_at IS NOT NULL
	ORDER BY a.client_id, a.user_id, a.course_id, a.round)
	UNION ALL
	(SELECT 'course_started/' || a.user_id || '/' || a.course_id || '/' || a.round, 'course_started', a.started_at,
		a.user_id, a.course_id, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
	FROM assignments AS a WHERE a.client_id IN (SELECT id FROM reached) AND a.started_at IS NOT NULL
		AND a.completed_at IS NULL
	ORDER BY a.client_id, a.user_id, a.course_id, a.round)
	UNION ALL
	(SELECT 'policy_signed/' || s.user_id || '/' || s.policy_id || '/' || s.version, 'policy_signed', s.signed_at,
		s.user_id, NULL, s.policy_id, s.version, NULL, NULL, NULL, NULL, NULL, NULL
	FROM policy_signatures AS s JOIN policies AS p ON p.client_id = s.client_id AND p.id = s.policy_id
	WHERE s.client_id IN (SELECT id FROM reached) AND p.archived_at IS NULL
	ORDER BY s.client_id, s.policy_id, s.version, s.user_id)
	UNION ALL
	(SELECT 'email_reported/' || e.user_id || '/' || md5(e.message_id), 'email_reported', e.reported_at,
		e.user_id, NULL, NULL, NULL, e.message_id, e.subject, e.sender, NULL, NULL, NULL
	FROM reported_emails AS e WHERE e.client_id IN (SELECT id FROM reached)
	ORDER BY e.client_id, e.user_id, e.message_id)
	UNION ALL
	(SELECT DISTINCT ON (e.client_id, e.message_id)
		'email_classified/' || e.client_id || '/' || md5(e.message_id), 'email_classified', e.classified_at,
		NULL, NULL, NULL, NULL, e.message_id, NULL, NULL, e.classification, e.mailbox_action, e.client_id
	FROM reported_emails AS e WHERE e.client_id IN (SELECT id FROM reached) AND e.classified_at IS NOT NULL
	ORDER BY e.client_id, e.message_id, e.classified_at DESC, e.id)`

// ExportSignals reads as signals the actions of users that no record holds, in all clients or, if partner is not zero,
// in the partner's. It fails without a transaction (pg.Each).
func ExportSignals(ctx context.Context, d *db.DB, partner domain.PartnerID) iter.Seq2[SignalLine, error] {
	reached := pg.SQL("true")
	if !partner.IsZero() {
		reached = pg.SQL("c.partner_id = ?", partner)
	}
	return pg.Each[SignalLine](ctx, d, "export signals", pg.SQL(`
		SELECT id, type, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at, user_id, course_id,
			policy_id, version, message_id, subject, sender, classification, mailbox_action, client_id
		FROM (`+exportSignalsSQL+`) AS s`, reached))
}
