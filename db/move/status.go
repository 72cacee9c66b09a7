package move

import (
	"context"
	"slices"
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

// dropBatch is how many rows are deleted in one transaction.
const dropBatch = 10_000

// CleanUp deletes the rows of partners that left and were kept long enough, and returns
// how many partners it was. Numbers of version 1 stay, as those of deleted objects do. It
// may be cut short and repeated.
func CleanUp(ctx context.Context, d *db.DB) (partners int, err error) {
	due, err := pg.All[domain.PartnerID](ctx, d, "look for partners that left", pg.SQL(
		"SELECT partner_id FROM moves WHERE step = ? AND keep_until < ? ORDER BY partner_id", Gone, d.Now()))
	if err != nil {
		return 0, err
	}
	for _, partner := range due {
		// Who moves back meanwhile has the lock, or waits for it.
		free, err := d.TryAdvisoryLock(ctx, lockName(partner), func(ctx context.Context) error { return cleanUp(ctx, d, partner) })
		if err != nil {
			return partners, err
		}
		partners += pg.Number(free)
	}
	return partners, nil
}

// cleanUp deletes the rows of a partner that has not come back, those that refer to
// others first.
func cleanUp(ctx context.Context, d *db.DB, partner domain.PartnerID) error {
	gone, err := pg.One[bool](ctx, d, "look at the move", pg.SQL("SELECT step = ?1 FROM moves WHERE partner_id = ?0", partner, Gone))
	if err != nil || !gone {
		return err
	}
	o, err := ownedBy(ctx, d, partner)
	if err != nil {
		return err
	}
	for _, t := range slices.Backward(tables) {
		if t.kept {
			continue
		}
		if s, err := shapeOf(ctx, d, t); err != nil {
			return err
		} else if len(s.columns) == 0 {
			continue
		}
		drop := pg.Raw("DELETE FROM "+t.name+" WHERE ctid = ANY (ARRAY(SELECT t.ctid FROM "+t.name+" AS t WHERE "+
			o.condition(t)+" LIMIT $1))", []any{dropBatch})
		for dropped := dropBatch; dropped == dropBatch; {
			if dropped, err = pg.Exec(ctx, d, "drop rows of "+t.name, drop); err != nil {
				return err
			}
		}
	}
	_, err = pg.Exec(ctx, d, "note that the partner's rows are gone", pg.SQL("UPDATE moves SET step = ?1 WHERE partner_id = ?0", partner, Cleaned))
	return err
}
