package db

import (
	"context"
	"iter"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file and the others called export_… read what an import can take (decisions
// 10), as records: all clients' objects or those of one partner's, archived ones too.
// What the service derives is not in them. Each list is read by a cursor, in the
// transaction of ctx, without which it fails (Snapshot), and has the order of the
// objects' keys.

// exported reads records by a query, whose columns are those of a row.
func exported[Row, Record any](
	ctx context.Context, d *DB, what string, q pg.Query, as func(*Row) (Record, error),
) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for row, err := range pg.Each[Row](ctx, d, "export "+what, q) {
			var record Record
			if err == nil {
				record, err = as(&row)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// ofPartner is the condition that a client is the partner's; the zero partner has
// all. client is the SQL of its id.
func ofPartner(client string, partner domain.PartnerID) pg.Query {
	if partner.IsZero() {
		return pg.SQL("true")
	}
	return pg.SQL(client+" IN (SELECT id FROM clients WHERE partner_id = ?)", partner)
}

// saysMoment is a field with a time; left out where there is none.
func saysMoment(at *time.Time) (f domain.Field[domain.Moment]) {
	if at != nil {
		f = domain.Says(domain.MomentOf(*at))
	}
	return f
}

// saysSome is a field with a value; left out where there is none.
func saysSome[T any](value *T) (f domain.Field[T]) {
	if value != nil {
		f = domain.Says(*value)
	}
	return f
}

// saysRef is a field with a reference.
func saysRef[K domain.Kind](id domain.ID[K]) domain.Field[domain.Ref[K]] {
	return domain.Says(domain.RefTo(id))
}
