package db

import (
	"context"
	"iter"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file and the others called export_… read what an import can take (decisions
// 10), as records: all clients' objects or those of one partner's, archived ones too.
// What the service derives is not in them. Each list is read by a cursor, in the
// transaction of ctx, without which it fails (Snapshot), and has the order of the
// objects' keys.

// exported reads records by a query, whose columns are those of a row. also says what the
// columns do not; it may be nil.
func exported[Row, Record any](
	ctx context.Context, d *DB, q pg.Query, also func(*Row, *Record) error,
) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for row, err := range pg.Each[Row](ctx, d, "export objects", q) {
			var record Record
			if err == nil {
				record = recordOf[Record](&row)
			}
			if err == nil && also != nil {
				err = also(&row, &record)
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
