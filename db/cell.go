package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The cell of the database, and what is rejected while a partner moves to another one.

// MovesChannel is notified when a partner was moved.
const MovesChannel = "moves"

// frozenMove is the condition that a row of moves, alias m, freezes its partner's writes: the
// partner is being handed over, has left, or is coming back. A transaction's now() is never
// later than its snapshot, so a transaction that saw the freeze before it ended is rejected,
// however long the statement took.
const frozenMove = "(m.step IN ('handing', 'gone', 'arriving') OR m.step = 'holding' AND m.held_until > now())"

// SuspendedClients selects the clients whose mails, events and other work are suspended
// while their partner is handed over to another cell, and SuspendedPartners the partners
// whose deliveries are. SuspendedSenders selects both, as the outbox names them.
const (
	SuspendedClients  = "SELECT client_id FROM resting_clients WHERE until > now()"
	SuspendedPartners = "SELECT m.partner_id FROM moves AS m WHERE " + frozenMove
	SuspendedSenders  = SuspendedClients + " UNION ALL " + SuspendedPartners
)

// FreezeFor bounds how long writes of a partner are frozen before the hand-over: if the
// command that moves it dies, they are accepted again.
const FreezeFor = 30 * time.Second

// errMoving is the error of a frozen write.
func errMoving() error {
	return &domain.Error{
		Code: domain.Unavailable, RetryAfter: 3 * time.Second, Cause: domain.ErrMoving,
		Message: "this partner is being moved within the service, and nothing can be changed for a moment; try again",
	}
}

// RejectSuspended returns Unavailable if one of the clients is suspended. Call it after a lock
// or write, which assigns the transaction id that a freeze waits for.
func (c *Change) RejectSuspended(ctx context.Context, clients []domain.ClientID) error {
	if len(clients) == 0 {
		return nil
	}
	suspended, err := pg.One[bool](ctx, c, "look for suspended clients", pg.Prepared(pg.SQL(
		"SELECT EXISTS ("+SuspendedClients+" AND client_id = ANY(?::uuid[]))", pg.IDs(clients))))
	if err == nil && suspended {
		err = errMoving()
	}
	return err
}

// anyFrozen is the condition that some partner is being handed over.
const anyFrozen = "EXISTS (SELECT 1 FROM moves AS m WHERE " + frozenMove + " AND m.step IN ('holding', 'handing'))"

// RejectFrozen returns Unavailable while any partner is being handed over: for imports, which
// may write rows of all partners. Call it after a write, like RejectSuspended.
func (c *Change) RejectFrozen(ctx context.Context) error {
	frozen, err := pg.One[bool](ctx, c, "look whether a partner is handed over", pg.Prepared(pg.SQL("SELECT "+anyFrozen)))
	if err == nil && frozen {
		err = errMoving()
	}
	return err
}

// Cell returns the cell of the database: the only one until cells.Fix stores another.
func (d *DB) Cell(ctx context.Context) (domain.Cell, error) {
	fixed, err := pg.All[domain.Cell](ctx, d, "read the cell", pg.SQL("SELECT number, count FROM cell"))
	if err != nil || len(fixed) == 0 {
		return domain.Cell{Count: 1}, err
	}
	return fixed[0], nil
}
