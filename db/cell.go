package db

import (
	"context"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The cell of the database, and the writes that are rejected while a partner moves to another cell.

// MovesChannel is notified when a partner was moved.
const MovesChannel = "moves"

// frozenMove is the condition that a row of moves, alias m, freezes its partner's writes: the partner is being handed
// over, has left, or is arriving. It uses now(), the start of the transaction: a transaction that began during the
// freeze is rejected, even if a statement takes until after its end.
const frozenMove = "(m.step IN ('handing', 'gone', 'arriving') OR m.step = 'holding' AND m.held_until > now())"

// SuspendedClients selects the clients whose emails, events and other work are suspended while their partner is handed
// over to another cell. SuspendedPartners selects the partners whose webhook deliveries are suspended. SuspendedSenders
// selects both: outbox.client_id is the id of a client or, for a PartnerMail, of a partner.
const (
	SuspendedClients  = "SELECT client_id FROM resting_clients WHERE until > now()"
	SuspendedPartners = "SELECT m.partner_id FROM moves AS m WHERE " + frozenMove
	SuspendedSenders  = SuspendedClients + " UNION ALL " + SuspendedPartners
)

// FreezeFor bounds how long writes of a partner are frozen before the hand-over. After it they are accepted again, for
// example if the command that moves the partner was killed.
const FreezeFor = 30 * time.Second

// errMoving returns the error of a write to a frozen partner.
func errMoving() error {
	return &domain.Error{
		Code: domain.Unavailable, RetryAfter: 3 * time.Second, Cause: domain.ErrMoving,
		Message: "this partner is being moved within the service and cannot be changed for a moment; try again",
	}
}

// RejectSuspended returns Unavailable if one of the clients is suspended: its partner is moving to another cell. Call it
// after a lock or write, which gives the transaction an id: the hand-over waits only for transactions with an id.
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

// anyFrozen is the condition that any partner is moving to another cell.
const anyFrozen = "EXISTS (SELECT 1 FROM moves AS m WHERE " + frozenMove + " AND m.step IN ('holding', 'handing'))"

// RejectFrozen returns Unavailable while any partner moves to another cell. It is for imports, which may write rows of
// all partners. Call it after a lock or write: the hand-over waits only for transactions that have an id.
func (c *Change) RejectFrozen(ctx context.Context) error {
	frozen, err := pg.One[bool](ctx, c, "check whether a partner moves", pg.Prepared(pg.SQL("SELECT "+anyFrozen)))
	if err == nil && frozen {
		err = errMoving()
	}
	return err
}

// Cell returns the cell of the database. If none is stored, it returns that of a service with one cell.
func (d *DB) Cell(ctx context.Context) (domain.Cell, error) {
	fixed, err := pg.All[domain.Cell](ctx, d, "read the cell", pg.SQL("SELECT number, count FROM cell"))
	if err != nil || len(fixed) == 0 {
		return domain.Cell{Count: 1}, err
	}
	return fixed[0], nil
}
