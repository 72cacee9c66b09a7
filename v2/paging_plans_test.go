//go:build slow

package v2_test

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// pageQueries remembers the statement that read the last page.
type pageQueries struct {
	mu   sync.Mutex
	last string
	args []any // the driver's options among them
}

// TraceQueryStart remembers a statement if it reads a page.
func (q *pageQueries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "SELECT") && strings.Contains(data.SQL, " ORDER BY ") && strings.Contains(data.SQL, " LIMIT ") {
		q.mu.Lock()
		q.last, q.args = data.SQL, data.Args
		q.mu.Unlock()
	}
	return ctx
}

// TraceQueryEnd does nothing.
func (q *pageQueries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// queryPlan is a node of what EXPLAIN says, and those below it.
type queryPlan struct {
	Node      string      `json:"Node Type"`
	Relation  string      `json:"Relation Name"`
	Index     string      `json:"Index Name"`
	Direction string      `json:"Scan Direction"`
	Condition string      `json:"Index Cond"`
	Parent    string      `json:"Parent Relationship"`
	Plans     []queryPlan `json:"Plans"`
}

func (p queryPlan) nodes() []queryPlan {
	all := []queryPlan{p}
	for _, below := range p.Plans {
		all = append(all, below.nodes()...)
	}
	return all
}

// readsBy reports whether rows are found by an index.
func (p queryPlan) readsBy(index string) bool {
	return slices.ContainsFunc(p.nodes(), func(n queryPlan) bool { return n.Index == index })
}

func (p queryPlan) has(node string) bool {
	return slices.ContainsFunc(p.nodes(), func(n queryPlan) bool { return n.Node == node })
}

// scan is the first node that reads one of the tables.
func (p queryPlan) scan(tables ...string) queryPlan {
	nodes := p.nodes()
	i := slices.IndexFunc(nodes, func(n queryPlan) bool { return slices.Contains(tables, n.Relation) })
	if i < 0 {
		return queryPlan{}
	}
	return nodes[i]
}

func (p queryPlan) String() string {
	var lines []string
	for _, n := range p.nodes() {
		lines = append(lines, strings.Join([]string{n.Node, n.Direction, n.Relation, n.Index, n.Condition}, " "))
	}
	return strings.Join(lines, "\n")
}

// plannedPages is a service with enough rows for a planner to care: 4,000
// clients of one partner and 20,000 users of one client, among others.
type plannedPages struct {
	clients, users *pagedTable
	client         domain.ClientID // whose users are listed
	queries        *pageQueries
}

// newTraced is a service, and a set of operations that record how they read pages.
func newTraced(t *testing.T) (h *v2test.Harness, set *op.Set, queries *pageQueries) {
	url := dbtest.URL(t, worldtest.Schema)
	h = v2test.New(t, v2test.Options{URL: url, Limits: v2test.Unlimited})
	queries = &pageQueries{}
	traced, err := db.Open(url, db.WithClock(h.Clock), db.WithTracer(queries))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = traced.Close() })
	return h, &v2.New(traced, nil).Set, queries
}

func newPlannedPages(t *testing.T) plannedPages {
	h, set, queries := newTraced(t)
	tenant, other := h.AddPartner("Large"), h.AddPartner("Other")
	client, neighbor := h.AddClient(tenant, "Large").ID, h.AddClient(tenant, "Neighbor").ID
	h.Exec(`INSERT INTO clients (id, partner_id, name, name_key, average_score, summarized_at, created_at, updated_at)
		SELECT gen_random_uuid(), CASE WHEN n % 5 = 0 THEN $1::uuid ELSE $2::uuid END, 'n' || n, 'n' || n, 500 + n % 300, $3, $3::timestamptz - n % 1000 * interval '1 hour', $3
		FROM generate_series(1, 5000) AS n`, other.ID, tenant.ID, h.Clock.Now())
	h.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT CASE WHEN n % 5 = 0 THEN $1::uuid ELSE $2::uuid END, gen_random_uuid(), n || '@example.com', 'n', n::text, 'n ' || n,
			CASE WHEN n % 7 = 0 THEN 'inactive' ELSE 'active' END, 'standard', 'en', 'api', 400 + n % 400, $3::timestamptz - n % 5000 * interval '1 hour', $3
		FROM generate_series(1, 25000) AS n`, neighbor, client, h.Clock.Now())
	h.Exec("VACUUM ANALYZE clients") // as autovacuum does: without it an index alone is not enough
	h.Exec("VACUUM ANALYZE users")
	return plannedPages{
		clients: &pagedTable{h: h, tenant: tenant, op: api.ListClients, set: set, shown: []string{"id"}},
		users:   &pagedTable{h: h, tenant: tenant, op: api.ListUsers, set: set, at: ids{"client_id": client.String()}, shown: []string{"id"}},
		client:  client,
		queries: queries,
	}
}

// plan is how PostgreSQL reads a page.
func (q *pageQueries) plan(t *testing.T, table *pagedTable, l pagedList, paging op.Paging) (queryPlan, pagedPage) {
	t.Helper()
	page := table.call(t, l, paging)
	var text string
	err := table.h.DB.SQL().QueryRowContext(t.Context(), "EXPLAIN (FORMAT JSON) "+q.last, q.args...).Scan(&text)
	if err != nil {
		t.Fatalf("%s: %v", q.last, err)
	}
	var plans []struct{ Plan queryPlan }
	if err := json.Unmarshal([]byte(text), &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan, page
}

// TestPagingPlans holds that a page costs what it shows: it is read off an
// index in the order of the sort, from the cursor's place on, however long the
// list. Emails are unique in their index, whose order leaves an incremental
// sort nothing but ties that cannot be.
func TestPagingPlans(t *testing.T) {
	pages := newPlannedPages(t)
	for _, test := range []struct {
		table              *pagedTable
		query, sort, index string
		place              string // the condition by which the index begins
	}{
		{pages.clients, "", "name", "clients_by_name", "ROW(name_key, id)"},
		// clients_by_created, or clients_by_creation, which has archived clients too: here there are none
		{pages.clients, "", "created_at", "clients_by_creat", "ROW(created_at, id)"},
		{pages.clients, "", "risk_score", "clients_by_score", "ROW(average_score, id)"},
		{pages.users, "", "created_at", "users_by_creation", "ROW(created_at, id)"},
		{pages.users, "status=active", "created_at", "users_by_status_created", "ROW(created_at, id)"},
		{pages.users, "", "risk_score", "users_by_score", "ROW(score, id)"},
		{pages.users, "status=active", "risk_score", "users_by_score", "ROW(score, id)"},
		{pages.users, "", "email", "users_email_key_unique", "(COALESCE(email_key, email) "},
		{pages.users, "status=active", "email", "users_email_key_unique", "(COALESCE(email_key, email) "},
	} {
		for _, direction := range []string{"Forward", "Backward"} {
			l := pagedList{sort: test.sort, key: test.table.tenant.Key}
			if direction == "Backward" {
				l.sort = "-" + l.sort
			}
			l.query, _ = url.ParseQuery(test.query)
			first, page := pages.queries.plan(t, test.table, l, op.Paging{Rows: 100})
			next, _ := pages.queries.plan(t, test.table, l, op.Paging{Rows: 100, Cursor: page.end})
			for _, read := range []queryPlan{first, next} {
				scan := read.scan("clients", "users")
				if scan.Node != "Index Scan" || !strings.HasPrefix(scan.Index, test.index) || scan.Direction != direction || read.has("Sort") {
					t.Errorf("%s by %s is read %s by\n%s", test.query, l.sort, direction, read)
				}
				if read.has("Incremental Sort") && test.sort != "email" {
					t.Errorf("%s by %s is sorted:\n%s", test.query, l.sort, read)
				}
			}
			if place := next.scan("clients", "users").Condition; !strings.Contains(place, test.place) {
				t.Errorf("%s by %s begins anew: %s", test.query, l.sort, place)
			}
		}
	}
}

// TestPagingPlansOfExternalID holds that the clients with an external_id are found by it.
func TestPagingPlansOfExternalID(t *testing.T) {
	pages := newPlannedPages(t)
	pages.clients.h.Exec("UPDATE clients SET external_id = 'X' || right(name, 3)")
	pages.clients.h.Exec("VACUUM ANALYZE clients")
	for _, sort := range domain.ClientSort("").Values() {
		l := pagedList{sort: sort, key: pages.clients.tenant.Key, query: url.Values{"external_id": {"X123"}}}
		first, page := pages.queries.plan(t, pages.clients, l, op.Paging{Rows: 2})
		next, _ := pages.queries.plan(t, pages.clients, l, op.Paging{Rows: 2, Cursor: page.end})
		for _, plan := range []queryPlan{first, next} {
			if !plan.readsBy("clients_by_external_id") || len(page.Data) != 2 {
				t.Errorf("by %s: %d clients by\n%s", sort, len(page.Data), plan)
			}
		}
	}
}

// TestPagingPlansOfEmails holds that users are found by the index of addresses, and then their
// clients.
func TestPagingPlansOfEmails(t *testing.T) {
	pages := newPlannedPages(t)
	h := pages.users.h
	h.Exec("UPDATE users SET email = $1 WHERE id = (SELECT min(id::text)::uuid FROM users WHERE client_id = $2)", everywhere, pages.client)
	h.Exec("VACUUM ANALYZE users")
	table := &pagedTable{h: h, tenant: pages.users.tenant, op: api.FindUsers, set: pages.users.set, shown: []string{"id"}}
	l := pagedList{key: table.tenant.Key, query: url.Values{"email": {everywhere}}}
	for _, paging := range []op.Paging{{Rows: 10}, {Rows: 10, Skip: 1}} {
		plan, page := pages.queries.plan(t, table, l, paging)
		if !plan.readsBy("users_by_email") || plan.has("Seq Scan") || len(page.Data) != 1-paging.Skip {
			t.Errorf("%d users by\n%s", len(page.Data), plan)
		}
	}
}

// TestPagingJumpPlans holds that a jump passes over the rows before it once and
// on an index alone, also among the users of one state, as the older version
// lists them.
func TestPagingJumpPlans(t *testing.T) {
	pages := newPlannedPages(t)
	for query, index := range map[string]string{"": "users_by_creation", "status=active": "users_by_status_created"} {
		l := pagedList{sort: "created_at", key: pages.users.tenant.Key}
		l.query, _ = url.ParseQuery(query)
		jump, page := pages.queries.plan(t, pages.users, l, op.Paging{Rows: 100, Skip: 9000})
		once := slices.IndexFunc(jump.nodes(), func(n queryPlan) bool { return n.Parent == "InitPlan" })
		if once < 0 || len(page.Data) != 100 {
			t.Fatalf("%d rows by\n%s", len(page.Data), jump)
		}
		over := jump.nodes()[once]
		if scan := over.scan("users"); scan.Node != "Index Only Scan" || scan.Index != index || over.has("Sort") || over.has("Incremental Sort") {
			t.Errorf("with %q rows are passed over by\n%s", query, over)
		}
		if slices.ContainsFunc(jump.nodes(), func(n queryPlan) bool { return n.Relation == "users" && n.Node == "Seq Scan" }) {
			t.Errorf("with %q the page reads more users than its own:\n%s", query, jump)
		}
	}
}
