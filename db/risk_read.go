package db

import (
	"context"
	"time"

	"partnerapi/domain"
)

// UserRisk reads a user's score and what it is made of. NotFound without such a
// user; whether the caller reaches the client is for the caller to know.
func (d *DB) UserRisk(ctx context.Context, client domain.ClientID, user domain.UserID) (domain.UserRisk, error) {
	var row struct {
		Role domain.Role
		storedRisk
		ComputedAt time.Time
	}
	q := d.conn(ctx).NewSelect().Model(&row).ModelTableExpr("users AS u").
		Join("JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id").
		ColumnExpr("u.role, r.model, r.baseline, r.deltas, r.courses_completed, r.phishing_clicks, r.phishing_reports, "+
			"r.credential_submissions, r.attachments_opened, r.real_phish_reported, r.password_breaches_active, "+
			"r.password_breaches_resolved, r.pii_breaches, r.basic_breaches, r.dormant_on_training, r.computed_at").
		Where("u.client_id = ?", client).Where("u.id = ?", user)
	if err := d.one(ctx, q, user.Noun()); err != nil {
		return domain.UserRisk{}, err
	}
	return domain.UserRisk{Assessment: row.assessment(row.Role), ComputedAt: row.ComputedAt.UTC()}, nil
}
