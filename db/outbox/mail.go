package outbox

import (
	"context"
	"time"

	"github.com/google/uuid"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// mailRow is the row that Mail reads, with the fields that only readSubject needs. These are null if they do not apply
// to the email's type.
type mailRow struct {
	domain.Mail
	Enabled    *bool // null if the client has not switched the type on or off
	Round      *int
	ResultID   *domain.ResultID
	BreachName *string
}

// selectMail selects a mailRow. The addressee is the invite's, the admin's or the user's address, in this order.
// unwanted is a reason that applies to any kind, or empty.
const selectMail = `r.client_id AS client, r.id, r.type, coalesce(r.due_at, r.created_at) AS due_at,
	coalesce(i.email, o.email, u.email, '') AS "to", u.id AS "user", coalesce(u.first_name, o.name, '') AS name,
	` + db.FullName + ` AS full_name, coalesce(u.preferred_language, ?english) AS language,
	c.name AS client_name, p.name AS partner_name, coalesce(i.id, ?none) AS invite, coalesce(i.role, '') AS invite_role,
	coalesce(i.expires_at, ?never) AS expires_at, coalesce(y.id, ?none) AS policy, coalesce(y.title, '') AS policy_title,
	coalesce(k.id, ?none) AS course, coalesce(k.titles->>u.preferred_language, k.title, '') AS course_title, a.due_on,
	coalesce(r.report_id, ?none) AS report, w.enabled, r.round, r.result_id, r.breach_name,
	i.accepted_at IS NOT NULL AS invite_accepted, coalesce(i.expires_at <= ?now, false) AS invite_expired,
	r.policy_id IS NOT NULL AND (y.id IS NULL OR y.archived_at IS NOT NULL) AS policy_archived,
	s.signed_at IS NOT NULL AS policy_signed, c.dark_web_monitoring,
	r.admin_id IS NOT NULL AND o.id IS NULL AS admin_removed,
	CASE
		WHEN c.archived_at IS NOT NULL THEN 'the client is archived'
		WHEN r.invite_id IS NULL AND u.status <> 'active' THEN 'the user is inactive'
		ELSE ''
	END AS unwanted`

// Mail reads the data that an email request is rendered from. If the email is no longer wanted, Unwanted is the reason.
// What the email is about (readSubject) is read only if it is wanted and switched on. Mail is for the email worker: it
// checks no caller's access.
func Mail(ctx context.Context, d *db.DB, client domain.ClientID, id domain.MessageID) (domain.Mail, error) {
	row, err := pg.Find[mailRow](ctx, d, id.Noun(), pg.Prepared(pg.SQL(`
		SELECT `+selectMail+`
		FROM mail_requests AS r
		JOIN clients AS c ON c.id = r.client_id
		JOIN partners AS p ON p.id = c.partner_id
		LEFT JOIN mail_switches AS w ON w.client_id = r.client_id AND w.kind = r.type
		LEFT JOIN admin_invites AS i ON i.client_id = r.client_id AND i.id = r.invite_id
		LEFT JOIN admins AS o ON o.client_id = r.client_id AND o.id = r.admin_id
		LEFT JOIN users AS u ON u.client_id = r.client_id AND u.id = coalesce(r.user_id,
			(SELECT k.id FROM users AS k
				WHERE k.client_id = r.client_id AND `+db.EmailKeyOf("k")+` = coalesce(i.email_key, i.email, o.email_key, o.email)
				ORDER BY k.email = coalesce(i.email, o.email) DESC, k.created_at, k.id LIMIT 1))
		LEFT JOIN policies AS y ON y.client_id = r.client_id AND y.id = r.policy_id
		LEFT JOIN policy_signatures AS s ON s.client_id = y.client_id AND s.policy_id = y.id AND s.version = y.version
			AND s.user_id = r.user_id AND s.signed_at > ?now::timestamptz - make_interval(days => y.renewal_period_days)
		LEFT JOIN courses AS k ON k.id = r.course_id
		LEFT JOIN LATERAL (
			SELECT due_on FROM assignments
			WHERE client_id = r.client_id AND user_id = r.user_id AND course_id = r.course_id AND completed_at IS NULL
			ORDER BY round DESC LIMIT 1
		) AS a ON true
		WHERE r.client_id = ?client AND r.id = ?id`, pg.Named{
		"client": client, "id": id, "now": d.Now(), "english": domain.English, "none": uuid.Nil, "never": time.Time{},
	})))
	if err != nil {
		return domain.Mail{}, err
	}
	kind := row.Type.Kind()
	row.SwitchedOff = kind.Switch != domain.NoSwitch && !pg.Or(row.Enabled, kind.Switch == domain.OnByDefault)
	if row.Unwanted != "" || row.SwitchedOff {
		return row.Mail, nil
	}
	err = readSubject(ctx, d, &row, kind)
	if err == nil && kind.Unwanted != nil {
		row.Unwanted = kind.Unwanted(&row.Mail)
	}
	if err != nil || row.Unwanted != "" {
		return row.Mail, err
	}
	brand, err := d.Brand(ctx, domain.BrandOwner{Client: client})
	if err != nil {
		return row.Mail, err
	}
	row.Brand, row.PartnerName = brand.Brand, brand.PartnerName
	if brand.Sources["display_name"] == domain.ClientBrand {
		row.ClientName = brand.DisplayName
	}
	return row.Mail, nil
}
