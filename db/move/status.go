package move

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Status is how far a move is, in one of its two cells.
type Status struct {
	Partner domain.PartnerID
	// Name is empty where the partner is not there yet, or any more.
	Name string
	Step Step
	// Cell is the code of the other one.
	Cell                          string
	BeganAt                       time.Time
	HeldUntil, MovedAt, KeepUntil *time.Time
}

// List reads the moves that a cell has a part in, the latest first.
func List(ctx context.Context, d *db.DB) ([]Status, error) {
	return pg.All[Status](ctx, d, "list moves", pg.SQL(`
		SELECT m.partner_id AS partner, coalesce(p.name, '') AS name, m.step, m.cell, m.began_at, m.held_until, m.moved_at, m.keep_until
		FROM moves AS m LEFT JOIN partners AS p ON p.id = m.partner_id ORDER BY m.began_at DESC, m.partner_id`))
}
