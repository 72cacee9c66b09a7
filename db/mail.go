package db

import (
	"context"
	"time"

	"partnerapi/domain"
)

// mailRow is what HoldMail reads; what does not belong to the mail's type
// is null.
type mailRow struct {
	Busy        bool
	Type        domain.MessageType
	CreatedAt   time.Time
	SentAt      *time.Time
	FailedAt    *time.Time
	ClientName  string
	ArchivedAt  *time.Time
	PartnerName string

	UserID       *domain.UserID
	Email        *string
	FirstName    *string
	Status       *domain.UserStatus
	Language     *domain.Language
	InviteID     *domain.InviteID
	InviteEmail  *string
	InviteRole   *domain.InviteRole
	ExpiresAt    *time.Time
	AcceptedAt   *time.Time
	PolicyID     *domain.PolicyID
	PolicyTitle  *string
	PolicyClosed bool
	PolicySigned bool
	CourseID     *domain.CourseID
	CourseTitle  *string
	DueOn        *domain.Date
}

// HoldMail reads all that a mail that was asked for needs, and holds it for
// the transaction of ctx. It reports false where another transaction holds it;
// it does not wait.
func (d *DB) HoldMail(ctx context.Context, client domain.ClientID, id domain.MessageID) (domain.Mail, bool, error) {
	var row mailRow
	// What became of the mail is read from the locked row: the other tables
	// are seen as of the statement's start, the locked row as it is now.
	err := d.conn(ctx).NewRaw(`
		WITH held AS MATERIALIZED (
			SELECT sent_at, failed_at, true AS held FROM mail_requests WHERE client_id = ?0 AND id = ?1 FOR UPDATE SKIP LOCKED
		)
		SELECT h.held IS NULL AS busy, r.type, r.created_at, h.sent_at, h.failed_at, c.name AS client_name, c.archived_at, p.name AS partner_name,
		       u.id AS user_id, u.email, u.first_name, u.status, u.preferred_language AS language,
		       i.id AS invite_id, i.email AS invite_email, i.role AS invite_role, i.expires_at, i.accepted_at,
		       y.id AS policy_id, y.title AS policy_title, y.archived_at IS NOT NULL AS policy_closed, s.signed_at IS NOT NULL AS policy_signed,
		       k.id AS course_id, k.title AS course_title, a.due_on
		FROM mail_requests AS r
		LEFT JOIN held AS h ON true
		JOIN clients AS c ON c.id = r.client_id
		JOIN partners AS p ON p.id = c.partner_id
		LEFT JOIN admin_invites AS i ON i.client_id = r.client_id AND i.id = r.invite_id
		LEFT JOIN users AS u ON u.client_id = r.client_id
			AND u.id = coalesce(r.user_id, (SELECT id FROM users WHERE client_id = r.client_id AND email = i.email))
		LEFT JOIN policies AS y ON y.client_id = r.client_id AND y.id = r.policy_id
		LEFT JOIN policy_signatures AS s ON s.client_id = y.client_id AND s.policy_id = y.id AND s.version = y.version AND s.user_id = r.user_id
			AND s.signed_at > ?2::timestamptz - make_interval(days => y.renewal_period_days)
		LEFT JOIN courses AS k ON k.id = r.course_id
		LEFT JOIN LATERAL (
			SELECT due_on FROM assignments
			WHERE client_id = r.client_id AND user_id = r.user_id AND course_id = r.course_id AND completed_at IS NULL
			ORDER BY round DESC LIMIT 1
		) AS a ON true
		WHERE r.client_id = ?0 AND r.id = ?1`, client, id, d.Now()).Scan(ctx, &row)
	if err != nil {
		return domain.Mail{}, false, d.found(err, id.Noun())
	}
	m := row.mail(d.Now())
	m.Client, m.ID = client, id
	return m, !row.Busy, nil
}

func (r *mailRow) mail(now time.Time) domain.Mail {
	m := domain.Mail{
		Type: r.Type, RequestedAt: r.CreatedAt, User: r.UserID, To: or(r.InviteEmail, or(r.Email, "")), Name: or(r.FirstName, ""),
		Language: or(r.Language, domain.English), ClientName: r.ClientName, PartnerName: r.PartnerName,
		Invite: or(r.InviteID, domain.InviteID{}), InviteRole: or(r.InviteRole, ""), ExpiresAt: or(r.ExpiresAt, time.Time{}),
		Policy: or(r.PolicyID, domain.PolicyID{}), PolicyTitle: or(r.PolicyTitle, ""),
		Course: or(r.CourseID, domain.CourseID{}), CourseTitle: or(r.CourseTitle, ""), DueOn: or(r.DueOn, domain.Date{}),
		Settled: r.SentAt != nil || r.FailedAt != nil,
	}
	m.Unwanted = r.unwanted(now)
	return m
}

// unwanted says why a mail has become pointless since it was asked for.
func (r *mailRow) unwanted(now time.Time) string {
	switch {
	case r.ArchivedAt != nil:
		return "the client is archived"
	case r.Type == domain.AdminInviteMail && r.AcceptedAt != nil:
		return "the invite was accepted"
	case r.Type == domain.AdminInviteMail && !r.ExpiresAt.After(now):
		return "the invite has expired"
	case r.Type != domain.AdminInviteMail && *r.Status != domain.Active:
		return "the user is inactive"
	case r.Type == domain.PolicyReminder && (r.PolicyID == nil || r.PolicyClosed):
		return "the policy is archived"
	case r.PolicySigned:
		return "the policy is signed"
	case r.Type == domain.TrainingInvite && r.DueOn == nil:
		return "the course is not open"
	}
	return ""
}

// or is what p points to, or instead.
func or[T any](p *T, instead T) T {
	if p == nil {
		return instead
	}
	return *p
}

// MailSent marks a mail as sent, and records it as one of the user's where it
// went to a user. The record's id is the request's.
func (d *DB) MailSent(ctx context.Context, m domain.Mail, from, subject string) error {
	_, err := d.conn(ctx).NewRaw(`
		WITH marked AS (
			UPDATE mail_requests SET sent_at = ?2 WHERE client_id = ?0 AND id = ?1 RETURNING client_id, id, type, sent_at
		)
		INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		SELECT client_id, ?3::uuid, id, sent_at, ?4, ?5, ?6, type FROM marked WHERE ?3::uuid IS NOT NULL`,
		m.Client, m.ID, d.Now(), m.User, from, subject, domain.BySMTP).Exec(ctx)
	return d.bad("mark a mail as sent", err)
}

// MailFailed records that a mail will never be sent, and why.
func (d *DB) MailFailed(ctx context.Context, m domain.Mail, failure string) error {
	_, err := d.conn(ctx).NewRaw("UPDATE mail_requests SET failed_at = ?, failure = ? WHERE client_id = ? AND id = ?",
		d.Now(), failure, m.Client, m.ID).Exec(ctx)
	return d.bad("mark a mail as failed", err)
}
