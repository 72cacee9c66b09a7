package v1compat

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/idmap/idmaptest"
	"partnerapi/v2/v2test"
)

// lastQuery remembers the statement that ran last.
type lastQuery struct {
	text string
	args []any
}

func (q *lastQuery) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	q.text, q.args = d.SQL, d.Args
	return ctx
}

func (*lastQuery) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestExchangeProbes: what a key reaches is found by index probes for each id, in
// tables that were just filled as in those whose sizes the planner knows.
func TestExchangeProbes(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t, idmaptest.Schema)
	s := start(t, setup{Options: v2test.Options{URL: url}})
	queries := &lastQuery{}
	traced, err := db.Open(url, db.WithTracer(queries))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = traced.Close() })
	tenant := s.AddPartner("Partner")
	tables := map[string]string{
		"client": "clients", "user": "users", "admin": "admins", "collection": "collections", "group": "groups",
		"policy": "policies", "report": "reports", "template": "phishing_templates",
	}
	for _, table := range tables {
		s.Exec("ALTER TABLE " + table + " SET (autovacuum_enabled = false)")
	}
	s.fillTables(tenant, s.AddClient(tenant, "Client").ID)
	subset := s.AddKey(tenant, []domain.Scope{domain.Read}, nil)
	for _, analyzed := range []bool{false, true} {
		for kind, table := range tables {
			if analyzed {
				s.Exec("ANALYZE " + table)
			}
			for _, key := range []string{tenant.Key, subset} {
				if _, err := traced.Reached(s.As(key), kind, make([]db.UUID, 100)); err != nil {
					t.Fatal(err)
				}
				plan := s.explain(t, queries)
				if strings.Contains(plan, "Seq Scan on "+table) || strings.Contains(plan, "Seq Scan on clients") || kind != "template" && !strings.Contains(plan, "using clients_pkey") {
					t.Errorf("%s, analyzed %v: %s\n%s", kind, analyzed, queries.text, plan)
				}
			}
		}
	}
}

// fillTables adds 1,000 objects of each kind.
func (s *service) fillTables(of v2test.Partner, client domain.ClientID) {
	s.T.Helper()
	for _, insert := range []string{
		`clients (id, partner_id, name, name_key, summarized_at, created_at, updated_at) SELECT gen_random_uuid(), $1::uuid, n::text, n::text, now(), now(), now()`,
		`admins (id, partner_id, client_id, email, name, role, created_at) SELECT gen_random_uuid(), $1::uuid, $2::uuid, n || '@example.com', 'n', 'owner', now()`,
		`users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
			SELECT $2::uuid, gen_random_uuid(), n || '@example.com', 'n', 'n', 'n n', 'active', 'standard', 'en', 'api', 750, now(), now()`,
		`collections (client_id, id, name, name_key, created_by, created_at, updated_at) SELECT $2::uuid, gen_random_uuid(), n::text, n::text, 'api', now(), now()`,
		`groups (client_id, id, name, manual, created_at) SELECT $2::uuid, gen_random_uuid(), n::text, false, now()`,
		`policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, renewal_period_days, reviewed_at, created_at, updated_at)
			SELECT $2::uuid, gen_random_uuid(), 'n', 'tenant', $2::uuid, true, 30, now(), now(), now()`,
		`reports (client_id, id, type, format, status, created_at, updated_at) SELECT $2::uuid, gen_random_uuid(), 'policy', 'pdf', 'ready', now(), now()`,
		`phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
			SELECT gen_random_uuid(), n::text, 'en', 'it', 'n', 'n@example.com', '', '', now()`,
	} {
		s.Exec("INSERT INTO "+insert+" FROM generate_series(1, 1000) AS n WHERE $1::uuid IS NOT NULL AND $2::uuid IS NOT NULL", of.ID, client)
	}
	s.CountClients()
}

// explain is how PostgreSQL runs a statement.
func (s *service) explain(t *testing.T, q *lastQuery) string {
	t.Helper()
	rows, err := s.DB.SQL().QueryContext(t.Context(), "EXPLAIN "+q.text, q.args...)
	if err != nil {
		t.Fatalf("%s: %v", q.text, err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	return plan.String()
}
