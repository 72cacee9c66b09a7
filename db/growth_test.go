//go:build scale

package db_test

import (
	"testing"

	"partnerapi/domain"
)

// TestRetainedTablesStopGrowing verifies that events and deliveries take no more space once as many are deleted as are
// added: for six times the time for which they are kept.
func TestRetainedTablesStopGrowing(t *testing.T) {
	t.Parallel()
	const perLife, rounds, rows = 10, 60, 1000
	w := newWorld(t)
	client := w.AddClient()
	sizes := map[string][]int{"published_events": nil, "webhook_deliveries": nil}
	for round := range rounds {
		w.Exec(`INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
			SELECT $1, $3 + n, $2, uuid_v7($4), 'user.updated', $4, repeat('x', 600) FROM generate_series(1, $5::integer) AS n`,
			w.Partner, client, round*rows, w.Clock.Now(), rows)
		w.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, status, created_at, due_at)
			SELECT '00000000-0000-7000-8000-000000000000'::uuid, uuid_v7($4), $1, $3 + n, $2, uuid_v7($4), 'user.updated', 'succeeded', $4, $4
			FROM generate_series(1, $5::integer) AS n`,
			w.Partner, client, round*rows, w.Clock.Now(), rows)
		w.Clock.Advance(domain.EventLife / perLife)
		w.Must(w.DropOld(t.Context()))
		for table := range sizes {
			for dead := 1; dead > 0; dead = w.Number("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = '" + table + "'") {
				w.Exec("VACUUM " + table) // again while a snapshot of another database keeps deleted rows
			}
			sizes[table] = append(sizes[table], w.Number("SELECT pg_total_relation_size('"+table+"') / 1024"))
		}
	}
	for table, kB := range sizes {
		full, last := kB[2*perLife], kB[rounds-1]
		t.Logf("%s: %d kB after two lives, %d kB after %d", table, full, last, rounds/perLife)
		if last > full*5/4 {
			t.Errorf("%s grew from %d kB to %d kB while as many rows were deleted as added", table, full, last)
		}
	}
}
