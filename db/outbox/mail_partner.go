package outbox

import (
	"context"
	"encoding/json"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// MailedAdmin is an admin who gets an email to a partner.
type MailedAdmin struct {
	Partner   domain.PartnerID
	Admin     domain.AdminID
	Recipient string // an address
}

// MailPartners requests emails to the owners and admins of partners, and returns those who get one. An address that
// already got an email of the same kind and cause gets none, nor does an archived partner. It takes the same number of
// statements for any number of emails.
func MailPartners(ctx context.Context, c *db.Change, mails []domain.PartnerMail) ([]MailedAdmin, error) {
	if len(mails) == 0 {
		return nil, nil
	}
	var partners [][16]byte
	var kinds, causes, notices []string
	for _, m := range mails {
		notice, err := json.Marshal(m.Notice)
		if err != nil {
			return nil, err
		}
		partners, kinds = append(partners, m.Partner), append(kinds, string(m.Kind))
		causes, notices = append(causes, m.Cause), append(notices, string(notice))
	}
	added, err := pg.All[struct {
		ID domain.MessageID
		MailedAdmin
	}](ctx, c, "request emails to partners", pg.SQL(`
		WITH wanted AS (
			SELECT DISTINCT ON (n.partner_id, n.kind, n.cause, `+db.EmailKeyOf("a")+`) n.*, a.id AS admin_id, a.email
			FROM unnest(?partners::uuid[], ?kinds::text[], ?causes::text[], ?notices::text[]) AS n (partner_id, kind, cause, notice)
			JOIN partners AS p ON p.id = n.partner_id AND p.archived_at IS NULL
			JOIN admins AS a ON a.partner_id = n.partner_id AND `+db.MailedAdmins+`
			ORDER BY n.partner_id, n.kind, n.cause, `+db.EmailKeyOf("a")+`, a.created_at, a.id
		)
		INSERT INTO partner_mails (partner_id, id, kind, cause, admin_id, recipient, notice, created_at)
		SELECT partner_id, uuid_v7(?now::timestamptz), kind, cause, admin_id, email, notice::jsonb, ?now FROM wanted
		ON CONFLICT ON CONSTRAINT partner_mails_once DO NOTHING
		RETURNING partner_id AS partner, id, admin_id AS admin, recipient`,
		pg.Named{"partners": partners, "kinds": kinds, "causes": causes, "notices": notices, "now": c.At}))
	if err != nil || len(added) == 0 {
		return nil, err
	}
	partners = nil // now one for each email
	ids, mailed := make([]domain.MessageID, len(added)), make([]MailedAdmin, len(added))
	for i, a := range added {
		partners, ids[i], mailed[i] = append(partners, a.Partner), a.ID, a.MailedAdmin
	}
	return mailed, c.InsertOutbox(ctx, pg.SQL("") /* no WITH */, pg.SQL( // urgency 2: not urgent
		"SELECT partner, id, ?partnerMail, 2 AS urgency, ?now::timestamptz FROM unnest(?partners::uuid[], ?ids::uuid[]) AS u (partner, id)",
		pg.Named{"partnerMail": db.PartnerMail, "now": c.Now(), "partners": partners, "ids": pg.IDs(ids)}))
}

// NoticeMail is the data that an email to a partner is rendered from.
type NoticeMail struct {
	Recipient   string
	PartnerName string
	Notice      domain.Notice
	CreatedAt   time.Time
	// Brand is the service's own.
	Brand domain.Brand
	// Unwanted and SwitchedOff are as in domain.Mail.
	Unwanted    string
	SwitchedOff bool
}

// ReadNotice reads a leased email to a partner; l.Client is the partner's id. Unwanted is set if the partner is
// archived or the recipient is no admin any more, and SwitchedOff if the partner has switched the email's kind off.
func ReadNotice(ctx context.Context, d *db.DB, l Lease) (m NoticeMail, err error) {
	row, err := pg.Find[struct {
		NoticeMail
		Text string
	}](ctx, d, l.ID.Noun(), pg.SQL(`
		SELECT m.recipient, p.name AS partner_name, m.notice::text AS text, m.created_at, m.kind = ANY(p.mails_off) AS switched_off,
			CASE WHEN p.archived_at IS NOT NULL THEN 'the partner is archived'
				WHEN EXISTS (
					SELECT FROM admins AS a WHERE a.partner_id = m.partner_id AND a.email = m.recipient AND `+db.MailedAdmins+`
				) THEN '' ELSE 'the admin was removed' END AS unwanted
		FROM partner_mails AS m JOIN partners AS p ON p.id = m.partner_id
		WHERE m.partner_id = ? AND m.id = ?`, l.Client, l.ID))
	if err == nil {
		err = json.Unmarshal([]byte(row.Text), &row.Notice)
	}
	if err != nil {
		return row.NoticeMail, err
	}
	brand, err := d.Brand(ctx, domain.BrandOwner{})
	row.Brand = brand.Brand
	return row.NoticeMail, err
}
