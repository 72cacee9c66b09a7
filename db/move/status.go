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
	// Name is empty if the partner is not in this cell, or no longer.
	Name string
	Step Step
	// Cell is the code of the other one.
	Cell                          string
	BeganAt                       time.Time
	HeldUntil, MovedAt, KeepUntil *time.Time
}

const (
	// stuckFreeze is for how long writes of a partner may be refused before the move counts
	// as stuck, and stuckMove for how long a move may last: as the alerts in docs/alerts.yml.
	stuckFreeze = 2 * time.Minute
	stuckMove   = 24 * time.Hour
)

// Stuck reports whether the move waits for an operator: writes have been refused for
// stuckFreeze, or it has lasted for stuckMove.
func (s Status) Stuck(now time.Time) bool {
	switch s.Step {
	case HandingOver:
		if s.HeldUntil != nil && now.Sub(*s.HeldUntil) > stuckFreeze-db.FreezeFor {
			return true
		}
	case Copying, Frozen, Arriving:
	default:
		return false
	}
	return now.Sub(s.BeganAt) > stuckMove
}

// List reads the moves that a cell has a part in, the latest first.
func List(ctx context.Context, d *db.DB) ([]Status, error) {
	return pg.All[Status](ctx, d, "list moves", pg.SQL(`
		SELECT m.partner_id AS partner, coalesce(p.name, '') AS name, m.step, m.cell, m.began_at, m.held_until, m.moved_at, m.keep_until
		FROM moves AS m LEFT JOIN partners AS p ON p.id = m.partner_id ORDER BY m.began_at DESC, m.partner_id`))
}
