package outbox

import (
	"context"
	"slices"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// SwitchMail switches one of domain.ClientSwitches on or off for a client. It affects all email that is not yet sent.
// It returns NotFound if the client does not exist or is archived. It is for the command line and checks no caller's
// access.
func SwitchMail(ctx context.Context, d *db.DB, client domain.ClientID, kind domain.MessageType, on bool) error {
	if kind == domain.ReportLink {
		return pg.RunOr(ctx, d, domain.ErrNotFound(client.Noun()), "switch the report link", pg.SQL(
			"UPDATE clients SET report_link = ? WHERE id = ? AND archived_at IS NULL", on, client))
	}
	return pg.RunOr(ctx, d, domain.ErrNotFound(client.Noun()), "switch mail", pg.SQL(`
		INSERT INTO mail_switches (client_id, kind, enabled, changed_at)
		SELECT id, ?kind, ?enabled::boolean, ?now::timestamptz FROM clients WHERE id = ?client AND archived_at IS NULL
		ON CONFLICT (client_id, kind) DO UPDATE SET enabled = excluded.enabled, changed_at = excluded.changed_at`,
		pg.Named{"client": client, "kind": kind, "enabled": on, "now": d.Now()}))
}

// SwitchPartnerMail switches one of domain.PartnerMails on or off for a partner. It ignores an unknown partner.
func SwitchPartnerMail(ctx context.Context, d *db.DB, partner domain.PartnerID, kind domain.MessageType, on bool) error {
	return pg.Run(ctx, d, "switch mail", pg.SQL(`
		UPDATE partners SET mails_off = array_remove(mails_off, ?kind::text) || CASE WHEN ?enabled::boolean THEN '{}' ELSE ARRAY[?kind::text] END
		WHERE id = ?partner`, pg.Named{"partner": partner, "kind": kind, "enabled": on}))
}

// PartnerMailSwitches reads for each of domain.PartnerMails, in order, whether it is on for a partner.
func PartnerMailSwitches(ctx context.Context, d *db.DB, partner domain.PartnerID) ([]domain.MailSwitch, error) {
	off, err := pg.All[domain.MessageType](ctx, d, "read switches of mail", pg.SQL(
		"SELECT unnest(mails_off) FROM partners WHERE id = ?", partner))
	return pg.MapRows(domain.PartnerMails, func(kind *domain.MessageType) domain.MailSwitch {
		return domain.MailSwitch{Type: *kind, On: !slices.Contains(off, *kind)}
	}), err
}

// MailSwitches reads for each of domain.ClientSwitches, in order, whether it is on for a client.
func MailSwitches(ctx context.Context, d *db.DB, client domain.ClientID) ([]domain.MailSwitch, error) {
	rows, err := pg.All[domain.MailSwitch](ctx, d, "read switches of mail", pg.SQL(
		`SELECT kind AS type, enabled AS "on" FROM mail_switches WHERE client_id = ?0
		UNION ALL SELECT ?1::text, report_link FROM clients WHERE id = ?0`, client, domain.ReportLink))
	set := pg.Index(rows, func(s *domain.MailSwitch) (domain.MessageType, bool) { return s.Type, s.On })
	return pg.MapRows(domain.ClientSwitches, func(kind *domain.MessageType) domain.MailSwitch {
		on, switched := set[*kind]
		return domain.MailSwitch{Type: *kind, On: on || !switched && kind.Kind().Switch == domain.OnByDefault}
	}), err
}
