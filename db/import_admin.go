package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// importedAdmin is a row of admins, by its columns.
type importedAdmin struct {
	ID          string           `json:"id"`
	PartnerID   string           `json:"partner_id"`
	ClientID    *string          `json:"client_id"`
	Email       string           `json:"email"`
	Name        string           `json:"name"`
	Role        domain.AdminRole `json:"role"`
	LastLoginAt *time.Time       `json:"last_login_at"`
	CreatedAt   time.Time        `json:"created_at"`
}

// importingAdmins is a batch of records of admins being applied.
type importingAdmins struct {
	*Change
	before   map[domain.AdminID]adminRow
	partners map[domain.PartnerID]bool
	clients  map[domain.ClientID]referredClient
}

// ImportAdmins applies records of admins. The emails of a client's are unique.
func (d *DB) ImportAdmins(ctx context.Context, batch []domain.AdminRecord) ([]domain.ImportResult, error) {
	return importBatch(ctx, d, batch, (*Change).importAdmins)
}

func (c *Change) importAdmins(ctx context.Context, batch []domain.AdminRecord, results []domain.ImportResult) error {
	m := &importingAdmins{Change: c}
	if err := m.read(ctx, batch); err != nil {
		return err
	}
	var claims []claim
	for i := range batch {
		r := &batch[i]
		if results[i] = m.refusal(r); results[i].Refusal != "" {
			continue
		}
		if after := m.after(r); after.ClientID != nil && after.Email != m.before[r.ID.ID].Email {
			claims = append(claims, claim{id: r.ID.Bytes(), scope: *after.ClientID, key: after.Email})
		}
	}
	named, err := c.settleClaims(ctx, claims, `SELECT id, client_id::text AS scope, email AS key FROM admins
		WHERE client_id = ANY(?0::text[]::uuid[]) AND email = ANY(?1::text[])`)
	if err != nil {
		return err
	}

	var made, changed []importedAdmin
	for i := range batch {
		r := &batch[i]
		holder, lost := named.lost[r.ID.Bytes()]
		old, there := m.before[r.ID.ID]
		after := m.after(r)
		switch {
		case results[i].Refusal != "":
		case lost:
			results[i] = takenBy("email", domain.AdminID(holder))
		case !there:
			results[i].Outcome = domain.ImportCreated
			made = append(made, after)
		case sameAdmin(&old, &after):
			results[i].Outcome = domain.ImportUnchanged
		default:
			results[i].Outcome = domain.ImportUpdated
			changed = append(changed, after)
		}
	}
	if err := c.giveUp(ctx, named, "admins", "email"); err != nil {
		return err
	}
	if err := updateRows(ctx, c, "admins", "admins", changed, "id"); err != nil {
		return err
	}
	return insertRows(ctx, c, "admins", "admins", made)
}

// read locks the admins that are there, and reads what the records refer to.
func (m *importingAdmins) read(ctx context.Context, batch []domain.AdminRecord) error {
	ids, partners := make([]domain.AdminID, len(batch)), make([]domain.PartnerID, len(batch))
	for i := range batch {
		ids[i], partners[i] = batch[i].ID.ID, batch[i].Partner.Value.ID
	}
	rows, err := pg.All[adminRow](ctx, m, "lock admins", pg.From("admins AS a").Columns(pg.Columns[adminRow]()).
		Where("a.id = ANY(?::uuid[])", pg.IDs(ids)).OrderBy("a.id").For("NO KEY UPDATE"))
	if err != nil {
		return err
	}
	m.before = mapped(rows, func(r *adminRow) domain.AdminID { return r.ID })
	if m.partners, err = existing(ctx, m.Change, "look for partners", "partners WHERE", partners); err != nil {
		return err
	}
	m.clients, err = clientsOf(ctx, m.Change, batch, func(r *domain.AdminRecord) domain.ClientID {
		return r.Client.Value.ID
	})
	return err
}

func (m *importingAdmins) refusal(r *domain.AdminRecord) domain.ImportResult {
	old, there := m.before[r.ID.ID]
	client := m.clients[r.Client.Value.ID]
	switch {
	case !there && !r.Client.Has() && !r.Partner.Has():
		return missing("partner or client")
	case !there && r.Missing != "":
		return missing(r.Missing)
	case r.Client.Has() && !client.There:
		return noSuch("client", "client")
	case r.Partner.Has() && !m.partners[r.Partner.Value.ID]:
		return noSuch("partner", "partner")
	case r.Client.Has() && r.Partner.Has() && client.PartnerID != r.Partner.Value.ID:
		return domain.RefuseImport("client: it is another partner's")
	case there && r.Client.Has() && (old.ClientID == nil || *old.ClientID != r.Client.Value.ID):
		return cannotChange("client")
	case there && r.Partner.Has() && old.PartnerID != r.Partner.Value.ID:
		return cannotChange("partner")
	}
	return domain.ImportResult{}
}

// after is the admin as a record has it.
func (m *importingAdmins) after(r *domain.AdminRecord) importedAdmin {
	old, there := m.before[r.ID.ID]
	if !there {
		old = adminRow{PartnerID: r.Partner.Value.ID, CreatedAt: m.At}
		if r.Client.Has() {
			old.PartnerID, old.ClientID = m.clients[r.Client.Value.ID].PartnerID, &r.Client.Value.ID
		}
	}
	after := importedAdmin{
		ID: r.ID.UUID(), PartnerID: old.PartnerID.UUID(), Email: r.Email.Or(old.Email), Name: r.Name.Or(old.Name),
		Role: r.Role.Or(old.Role), LastLoginAt: old.LastLoginAt,
		CreatedAt: r.CreatedAt.Or(domain.Moment{Time: old.CreatedAt}).Time,
	}
	if old.ClientID != nil {
		id := old.ClientID.UUID()
		after.ClientID = &id
	}
	if r.LastLoginAt.Given {
		after.LastLoginAt = timeOf(r.LastLoginAt)
	}
	return after
}

func sameAdmin(old *adminRow, after *importedAdmin) bool {
	return old.Email == after.Email && old.Name == after.Name && old.Role == after.Role &&
		sameTime(old.LastLoginAt, after.LastLoginAt) && old.CreatedAt.Equal(after.CreatedAt)
}

// timeOf is the time of a field; nil where it has none.
func timeOf(f domain.Field[domain.Moment]) *time.Time {
	if !f.Has() {
		return nil
	}
	return &f.Value.Time
}

func sameTime(a, b *time.Time) bool { return a == b || a != nil && b != nil && a.Equal(*b) }
