package outbox

import (
	"context"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// mailRow is the row that Mail reads. Fields that do not apply to the mail's type are null.
type mailRow struct {
	bun.BaseModel `bun:"table:mail_requests,alias:r"`

	Type        domain.MessageType
	DueAt       time.Time
	ClientName  string
	ArchivedAt  *time.Time
	PartnerName string
	Watched     bool  // the client has Dark Web Monitoring
	Enabled     *bool // null if the client has not switched the type on or off

	UserID       *domain.UserID
	Email        *string
	FirstName    *string
	LastName     *string
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
	Round        *int
	ResultID     *domain.ResultID
	BreachName   *string
	AdminID      *domain.AdminID
	AdminEmail   *string
	AdminName    *string
	ReportID     *domain.ReportID
}

// Mail reads the data that a mail request is rendered from. If the mail is no longer wanted, Unwanted is the reason. If
// it is unwanted or switched off, the data of its subject is not read. It is for the mail worker: it checks no caller's
// access.
func Mail(ctx context.Context, d *db.DB, client domain.ClientID, id domain.MessageID) (domain.Mail, error) {
	now := d.Now()
	row, err := pg.Find[mailRow](ctx, d, id.Noun(), pg.Prepared(pg.SQL(`
		SELECT r.type, coalesce(r.due_at, r.created_at) AS due_at, c.name AS client_name, c.archived_at,
			p.name AS partner_name, c.dark_web_monitoring AS watched, w.enabled, r.round, r.result_id, r.breach_name,
			r.report_id, o.id AS admin_id, o.email AS admin_email, o.name AS admin_name,
			u.id AS user_id, u.email, u.first_name, u.last_name, u.status, u.preferred_language AS language,
			i.id AS invite_id, i.email AS invite_email, i.role AS invite_role, i.expires_at, i.accepted_at,
			y.id AS policy_id, y.title AS policy_title, y.archived_at IS NOT NULL AS policy_closed,
			s.signed_at IS NOT NULL AS policy_signed, k.id AS course_id,
			coalesce(k.titles->>u.preferred_language, k.title) AS course_title, a.due_on
		FROM mail_requests AS r
		JOIN clients AS c ON c.id = r.client_id
		JOIN partners AS p ON p.id = c.partner_id
		LEFT JOIN mail_switches AS w ON w.client_id = r.client_id AND w.kind = r.type
		LEFT JOIN admin_invites AS i ON i.client_id = r.client_id AND i.id = r.invite_id
		LEFT JOIN admins AS o ON o.client_id = r.client_id AND o.id = r.admin_id
		LEFT JOIN users AS u ON u.client_id = r.client_id AND u.id = coalesce(r.user_id,
			(SELECT id FROM users WHERE client_id = r.client_id AND email = coalesce(i.email, o.email)))
		LEFT JOIN policies AS y ON y.client_id = r.client_id AND y.id = r.policy_id
		LEFT JOIN policy_signatures AS s ON s.client_id = y.client_id AND s.policy_id = y.id AND s.version = y.version
			AND s.user_id = r.user_id AND s.signed_at > ?2::timestamptz - make_interval(days => y.renewal_period_days)
		LEFT JOIN courses AS k ON k.id = r.course_id
		LEFT JOIN LATERAL (
			SELECT due_on FROM assignments
			WHERE client_id = r.client_id AND user_id = r.user_id AND course_id = r.course_id AND completed_at IS NULL
			ORDER BY round DESC LIMIT 1
		) AS a ON true
		WHERE r.client_id = ?0 AND r.id = ?1`, client, id, now)))
	if err != nil {
		return domain.Mail{}, err
	}
	m := row.mail(now)
	m.Client, m.ID = client, id
	if m.Unwanted == "" && !m.SwitchedOff {
		err = readSubject(ctx, d, &row, &m)
	}
	return m, err
}

// mail converts the row. The addressee is the invite's, the admin's or the user's address, in this order.
func (r *mailRow) mail(now time.Time) domain.Mail {
	m := domain.Mail{
		Type: r.Type, DueAt: r.DueAt, User: r.UserID,
		To:       pg.Or(r.InviteEmail, pg.Or(r.AdminEmail, domain.OrZero(r.Email))),
		Name:     pg.Or(r.FirstName, domain.OrZero(r.AdminName)),
		FullName: domain.FullName(domain.OrZero(r.FirstName), domain.OrZero(r.LastName)),
		Language: pg.Or(r.Language, domain.English), ClientName: r.ClientName, PartnerName: r.PartnerName,
		Invite: domain.OrZero(r.InviteID), InviteRole: domain.OrZero(r.InviteRole), ExpiresAt: domain.OrZero(r.ExpiresAt),
		Policy: domain.OrZero(r.PolicyID), PolicyTitle: domain.OrZero(r.PolicyTitle),
		Course: domain.OrZero(r.CourseID), CourseTitle: domain.OrZero(r.CourseTitle), DueOn: domain.OrZero(r.DueOn),
		Report: domain.OrZero(r.ReportID),

		SwitchedOff: slices.Contains(domain.ServiceMails, r.Type) && !pg.Or(r.Enabled, r.Type.OnByDefault()),
	}
	m.Unwanted = r.unwanted(now)
	return m
}

// unwanted returns the reason why a mail has become pointless since it was requested, or "".
func (r *mailRow) unwanted(now time.Time) string {
	switch {
	case r.ArchivedAt != nil:
		return "the client is archived"
	case r.Type == domain.AdminInviteMail && r.AcceptedAt != nil:
		return "the invite was accepted"
	case r.Type == domain.AdminInviteMail && !r.ExpiresAt.After(now):
		return "the invite has expired"
	case r.Type != domain.AdminInviteMail && r.Status != nil && *r.Status != domain.Active:
		return "the user is inactive"
	case r.Type == domain.PolicyReminder && (r.PolicyID == nil || r.PolicyClosed):
		return "the policy is archived"
	case r.PolicySigned:
		return "the policy is signed"
	case r.Type == domain.TrainingInvite && r.DueOn == nil:
		return "the course is not open"
	case r.Type == domain.ExposureNotice && !r.Watched:
		return "the client has no Dark Web Monitoring"
	case r.Type == domain.MonthlyReportMail && r.AdminID == nil:
		return "the admin was removed"
	}
	return ""
}
