package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Risk reads the user's score and what it is made of.
func (u *User) Risk(ctx context.Context) (domain.UserRisk, error) {
	type scored struct {
		Role domain.Role
		storedRisk
		ComputedAt time.Time
	}
	row, err := pg.Find[scored](ctx, u.db, u.ID.Noun(), pg.Prepared(pg.From("users AS u").
		Columns("u.role, r.computed_at, "+pg.Columns[riskRow]()).
		Join("JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id").
		Where("u.client_id = ?", u.Client).Where("u.id = ?", u.ID)))
	if err != nil {
		return domain.UserRisk{}, err
	}
	return domain.UserRisk{Assessment: row.assessment(row.Role), ComputedAt: row.ComputedAt}, nil
}
