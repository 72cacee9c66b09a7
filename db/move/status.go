package move

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Status is the state of a move in one of its two cells.
type Status struct {
	Partner domain.PartnerID
	// Name is empty if this cell has no row of the partner.
	Name string
	Step Step
	// Cell is the code of the other cell.
	Cell                          string
	BeganAt                       time.Time
	HeldUntil, MovedAt, KeepUntil *time.Time
}

const (
	// stuckFreeze is how long writes of a partner may be refused, and stuckMove how long a move may last, before the
	// move counts as stuck. The alerts in docs/alerts.yml have the same limits.
	stuckFreeze = 2 * time.Minute
	stuckMove   = 24 * time.Hour
)

// Stuck reports whether the move needs an operator: it has not ended, and writes have been refused for more than
// stuckFreeze, or it has lasted more than stuckMove.
func (s Status) Stuck(now time.Time) bool {
	switch s.Step {
	case HandingOver:
		// The freeze began db.FreezeFor before HeldUntil.
		if s.HeldUntil != nil && now.Sub(*s.HeldUntil) > stuckFreeze-db.FreezeFor {
			return true
		}
	case Copying, Frozen, Arriving: // limited by stuckMove only
	default:
		return false
	}
	return now.Sub(s.BeganAt) > stuckMove
}

// List returns the moves in which a cell takes part, the latest first.
func List(ctx context.Context, d *db.DB) ([]Status, error) {
	return pg.All[Status](ctx, d, "list moves", pg.SQL(`
		SELECT m.partner_id AS partner, coalesce(p.name, '') AS name, m.step, m.cell, m.began_at, m.held_until, m.moved_at, m.keep_until
		FROM moves AS m LEFT JOIN partners AS p ON p.id = m.partner_id ORDER BY m.began_at DESC, m.partner_id`))
}
