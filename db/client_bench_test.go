package db_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/domain"
)

// BenchmarkTenant reads a client by its key: as an operation does, by hand with
// the driver alone, and when its summary is stale, which has 200 users.
func BenchmarkTenant(b *testing.B) {
	w := newWorld(b)
	client := w.AddClient()
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT $1, gen_random_uuid(), n || '@example.com', 'A', 'B', 'a b', 'active', (ARRAY['standard', 'admin', 'finance'])[1 + n % 3], 'en', 'api', n * 4, $2, $2
		FROM generate_series(1, 200) AS n`, client, noon)
	w.Exec(`INSERT INTO user_risks SELECT client_id, id, 1, 700, '{-10,0,0,25,0,40,0,0,0,-3,0}', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, false, $2, $3
		FROM users WHERE client_id = $1`, client, today, noon)
	w.Exec(`INSERT INTO phishing_days (client_id, day, sent, clicked, reported)
		SELECT $1, $2::date - n, 10, 1, 2 FROM generate_series(1, 400) AS n`, client, today)
	w.Exec("ANALYZE")
	ctx := w.caller()
	_, err := w.FreshTenant(ctx, client)
	w.Must(err)

	b.Run("fresh", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, err := w.FreshTenant(ctx, client)
			w.Must(err)
		}
	})
	b.Run("stale", func(b *testing.B) {
		for b.Loop() {
			w.Clock.Advance(domain.SummaryAge + time.Microsecond)
			_, err := w.FreshTenant(ctx, client)
			w.Must(err)
		}
	})
	b.Run("by hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w.Must(byHand(w, client))
		}
	})
}

func byHand(w *world, client domain.ClientID) error {
	var id, partner [16]byte
	var name, key string
	var industry, external, sync *string
	var dark bool
	var frameworks []string
	var counts [5]int
	var rates [5]float64
	var at [3]time.Time
	err := w.Pool().QueryRow(w.caller(), `SELECT id, partner_id, name, name_key, industry, external_id, dark_web_monitoring, directory_sync,
			framework_ids, users_active, users_inactive, average_score, high_risk_users, overdue_users, on_track_rate, click_rate_90d,
			report_rate_90d, click_rate_365d, click_rate_total, summarized_at, created_at, updated_at
		FROM clients AS c WHERE c.id = $1 AND c.partner_id = $2 AND c.archived_at IS NULL`,
		pgx.QueryExecModeCacheStatement, [16]byte(client), [16]byte(w.Partner)).
		Scan(&id, &partner, &name, &key, &industry, &external, &dark, &sync, &frameworks, &counts[0], &counts[1], &counts[2], &counts[3], &counts[4],
			&rates[0], &rates[1], &rates[2], &rates[3], &rates[4], &at[0], &at[1], &at[2])
	if err == nil && db.NewID[domain.ClientKind]() == id {
		err = fmt.Errorf("read %x", id)
	}
	return err
}
