package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/migrate"
	"partnerapi/db/pg"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// also makes the tables of parts that can be deleted.
var also = []func(context.Context, *db.DB) error{
	migrateV1, // v1-line
}

// alsoCopied copy what these keep of catalogues.
var alsoCopied = []func(w *world, source, target side){
	copyNumbers, // v1-line
}

// emptySchema is that of a new cell, and demoSchema that of a cell with the demonstration. Of its largest table, which is
// compared by each test, it has a sixteenth.
var (
	emptySchema = dbtest.Schema{Name: "moveempty", Key: migrate.SchemaKey() + time.Now().String(), Apply: func(ctx context.Context, url string) error {
		return worldtest.Migrate(ctx, url, also...)
	}}
	demoSchema = dbtest.Schema{Name: "movedemo", Key: migrate.SchemaKey() + time.Now().String(), Apply: func(ctx context.Context, url string) error {
		return worldtest.Migrate(ctx, url, append(slices.Clone(also), func(ctx context.Context, d *db.DB) error {
			if _, err := seed.Demo(ctx, d); err != nil {
				return err
			}
			for _, thin := range []string{"DELETE FROM sent_emails WHERE right(id::text, 1) > '0'", "VACUUM FULL ANALYZE sent_emails"} {
				if _, err := d.SQL().ExecContext(ctx, thin); err != nil {
					return err
				}
			}
			return nil
		})...)
	}}
)

// world is two cells: the old one has the demonstration, whose first partner moves.
type world struct {
	*Move
	t     *testing.T
	other domain.PartnerID
	all   *domain.Caller
	// before has what each table of the old cell held of the partner, and kept what it held
	// of the other one.
	before, kept map[string]string
	// points has what is done at points of the move.
	points map[string]func()
}

func open(t *testing.T, schema dbtest.Schema, cell domain.Cell) *db.DB {
	t.Helper()
	d, err := db.Open(dbtest.URL(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	if err := d.EnsureSecrets(t.Context()); err != nil {
		t.Fatal(err)
	}
	if is, err := cells.Fix(t.Context(), d, cell); err != nil || is != cell {
		t.Fatalf("the cell is %v (%v)", is, err)
	}
	return d
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, points: map[string]func(){}, Move: &Move{
		From: open(t, demoSchema, domain.Cell{Count: 16}), To: open(t, emptySchema, domain.Cell{Number: 1, Count: 16}), Keep: time.Hour,
		Reseal: func(_ db.SealedColumn, id string, sealed []byte) ([]byte, error) {
			return []byte(id + " of the new cell: " + string(sealed)), nil
		},
		CopyFile: func(context.Context, domain.Report) error { return nil },
		Logf:     t.Logf,
	}}
	w.onTestPoint = func(point string) {
		if do := w.points[point]; do != nil {
			do()
		}
	}
	w.all = w.caller("pk_demo_all")
	w.Partner, w.other = w.all.Partner, w.caller("pk_demo_other").Partner
	w.exec(w.From, "UPDATE event_head SET position = position + 1000")
	w.catalogues()
	w.something()
	w.before, w.kept = w.contents(w.From, w.Partner), w.contents(w.From, w.other)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) caller(key string) *domain.Caller {
	w.t.Helper()
	c, err := w.From.CallerByDigest(w.t.Context(), db.KeyDigest(key))
	w.must(err)
	return c
}

func (w *world) exec(d *db.DB, query string, args ...any) {
	w.t.Helper()
	_, err := d.SQL().ExecContext(w.t.Context(), query, args...)
	w.must(err)
}

func value[T any](w *world, d *db.DB, query string, args ...any) (v T) {
	w.t.Helper()
	w.must(d.SQL().QueryRowContext(w.t.Context(), query, args...).Scan(&v))
	return v
}

// clientOf is a client of the partner with so many users or more.
func (w *world) clientOf(users int) string {
	w.t.Helper()
	return value[string](w, w.From, `SELECT c.id::text FROM clients AS c WHERE c.partner_id = $1
		AND (SELECT count(*) FROM users AS u WHERE u.client_id = c.id) >= $2 ORDER BY c.id LIMIT 1`, w.Partner.UUID(), users)
}

// catalogues copies what an operator imports into each cell.
func (w *world) catalogues() {
	w.t.Helper()
	w.exec(w.To, "TRUNCATE courses, phishing_templates, breaches CASCADE")
	w.must(w.From.Snapshot(w.t.Context(), func(source context.Context) error {
		return w.To.Tx(w.t.Context(), func(target context.Context) error {
			for _, name := range []string{"courses", "phishing_templates", "breaches", "framework_courses", "default_program"} {
				w.copyAll(side{ctx: source, DB: w.From}, side{ctx: target, DB: w.To}, name, "true")
			}
			for _, more := range alsoCopied {
				more(w, side{ctx: source, DB: w.From}, side{ctx: target, DB: w.To})
			}
			return nil
		})
	}))
}

func (w *world) copyAll(source, target side, name, where string) {
	w.t.Helper()
	s, err := shapes(source.ctx, w.From, []table{{name: name}})
	w.must(err)
	w.must(stream(source, target, comparison{shapedTable: s[0]}, where))
}

// something adds rows to the tables that the demonstration leaves empty, of both partners.
func (w *world) something() {
	w.t.Helper()
	for _, text := range []string{
		`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret,
				sealed_authorization, authorization_url)
			SELECT DISTINCT ON (partner_id) partner_id, uuid_v7(now()), id, 'https://example.com/', '{user.created}'::text[], 'active',
				now(), now(), 'secret'::bytea, 'authorization'::bytea, 'https://example.com/' FROM api_keys`,
		`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, created_at, due_at)
			SELECT w.id, uuid_v7(now()), w.partner_id, n, c.id, uuid_v7(now()), 'user.created', now(), now() + n * interval '1 hour'
			FROM webhooks AS w JOIN clients AS c USING (partner_id), generate_series(1, 3) AS n`,
		`INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
			SELECT partner_id, row_number() OVER (PARTITION BY partner_id ORDER BY id), id, uuid_v7(now()), 'user.created', now(), '{}'
			FROM clients ON CONFLICT DO NOTHING`,
		"INSERT INTO events (client_id, id, type, created_at) SELECT id, uuid_v7(now()), 'client.created', now() FROM clients",
		`INSERT INTO idempotency_records (key_id, idempotency_key, request_hash, status, body, created_at, seal_id, sealed_body)
			SELECT id, 'once', 'hash', 201, '', now(), uuid_v7(now()), 'sealed' FROM api_keys`,
		`INSERT INTO replaced_keys (key_id, place, prefix, digest, until)
			SELECT id, 1, 'papi_00' || left(md5(id::text), 6), digest || 'old'::bytea, now() + interval '7 days' FROM api_keys`,
		`INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id)
			SELECT now(), k.partner_id, k.id, r.prefix, 'users.create', 'POST', '/v2/users', 'r' FROM api_keys AS k JOIN replaced_keys AS r ON r.key_id = k.id`,
		`INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id)
			SELECT now(), partner_id, id, prefix, 'users.create', 'POST', '/v2/users', 'r' FROM api_keys, generate_series(1, 3)`,
		`INSERT INTO directory_connections (client_id, provider, settings, credentials, next_run_at, created_at, updated_at)
			SELECT id, 'microsoft', '{"tenant": "t"}', 'credentials', now() + interval '1 hour', now(), now() FROM clients
			ON CONFLICT DO NOTHING`,
		`WITH asked AS (
			INSERT INTO partner_mails (partner_id, id, kind, cause, admin_id, recipient, notice, created_at)
			SELECT partner_id, uuid_v7(now()), 'webhook-failing', 'cause', id, email, '{}', now() FROM admins
			WHERE client_id IS NULL RETURNING partner_id, id)
			INSERT INTO outbox (client_id, id, kind, urgency, due_at) SELECT partner_id, id, 'partner', 2, now() + interval '1 hour' FROM asked`,
		`INSERT INTO mail_switches (client_id, kind, enabled, changed_at)
			SELECT id, 'certificate', false, now() FROM clients ON CONFLICT DO NOTHING`,
		`INSERT INTO brands (id, partner_id, display_name, logo) SELECT uuid_v7(now()), id, name, 'logo'::bytea FROM partners
			ON CONFLICT DO NOTHING`,
		`INSERT INTO brands (id, client_id, accent_color) SELECT uuid_v7(now()), id, '#1f5fbf' FROM clients ON CONFLICT DO NOTHING`,
		"INSERT INTO brands (id, display_name) VALUES (uuid_v7(now()), 'The service') ON CONFLICT DO NOTHING",
	} {
		w.exec(w.From, text)
	}
}

// queueWork adds a mail, a delivery, a report and a sync run that are due to each client of both
// partners.
func (w *world) queueWork() {
	w.t.Helper()
	for _, text := range []string{
		"UPDATE webhook_deliveries SET due_at = now() - interval '1 minute'",
		`INSERT INTO outbox (client_id, id, kind, urgency, due_at)
			SELECT id, uuid_v7(now()), 'mail', 2, now() - interval '1 minute' FROM clients`,
		`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
			SELECT id, uuid_v7(now()), 'risk_overview', 'pdf', 'pending', now() - interval '1 hour', now() FROM clients`,
		`INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at)
			SELECT id, uuid_v7(now()), 'queued', 'schedule', now() - interval '1 hour', now() FROM clients`,
	} {
		w.exec(w.From, text)
	}
}

// maxShownRows is the number of rows of a table up to which contents has their texts.
const maxShownRows = 300

// contents returns a text for each table: all rows of a partner or, above maxShownRows, their count and the sum of
// their hashes. PostgreSQL needs long for the texts. The sum is not that of the program (digestSQL), which may be wrong.
func (w *world) contents(d *db.DB, partner domain.PartnerID) map[string]string {
	w.t.Helper()
	o, err := readOwnedIDs(w.t.Context(), d, partner)
	w.must(err)
	all := map[string]string{}
	there, err := shapes(w.t.Context(), d, tables)
	w.must(err)
	for _, t := range there {
		row, from := "ROW(t."+strings.Join(t.columns, ", t.")+")", " FROM "+t.name+" AS t WHERE "+o.condition(t.table)
		sums, err := pg.All[string](w.t.Context(), d, "sum up rows", pg.Raw("SELECT count(*) || ' rows with the sum ' || sum(hash_record_extended("+
			row+", 1))"+from+" HAVING count(*) > "+strconv.Itoa(maxShownRows), nil))
		w.must(err)
		if len(sums) > 0 {
			all[t.name] = sums[0]
			continue
		}
		rows, err := pg.All[string](w.t.Context(), d, "read rows", pg.Raw("SELECT "+row+"::text"+from, nil))
		w.must(err)
		for i := range rows {
			rows[i] = strings.TrimSpace(rows[i])
		}
		slices.Sort(rows)
		all[t.name] = strings.Join(rows, "\n")
	}
	return all
}

// same compares the contents of tables, and leaves some out.
func (w *world) same(what string, got, want map[string]string, without ...string) {
	w.t.Helper()
	for name, text := range want {
		if got[name] != text && !slices.Contains(without, name) {
			w.t.Errorf("%s: %s differs:\n%.300s\nnot\n%.300s", what, name, difference(got[name], text), difference(text, got[name]))
		}
	}
}

// difference is the lines of one text that another has not.
func difference(a, b string) string {
	there := strings.Split(b, "\n")
	return cmp.Or(strings.Join(slices.DeleteFunc(strings.Split(a, "\n"), func(line string) bool { return slices.Contains(there, line) }), "\n"), "nothing")
}

// resealed are the tables whose rows have sealed secrets.
var resealed = []string{"webhooks", "directory_connections", "idempotency_records"}

// nothingLeft verifies that a cell has no rows of the partner, except the numbers of its objects.
func (w *world) nothingLeft(d *db.DB) {
	w.t.Helper()
	for name, text := range w.contents(d, w.Partner) {
		if text != "" && name != "id_registry" {
			w.t.Errorf("%s is left: %.200s", name, text)
		}
	}
}

// moved checks that the partner is in the new cell, whole, and at rest in the old one.
func (w *world) moved() {
	w.t.Helper()
	w.same("the old cell until it rests", w.contents(w.From, w.Partner), w.before)
	n, err := Suspend(w.t.Context(), w.From, time.Hour)
	if w.must(err); n != 0 {
		w.t.Error("what a partner left rests before the processes know of it")
	}
	n, err = Suspend(w.t.Context(), w.From, 0)
	w.must(err)
	if archived := value[int](w, w.From, "SELECT count(*) FROM clients WHERE partner_id = $1 AND archived_at IS NULL", w.Partner.UUID()); archived > 0 || n > 1 {
		w.t.Errorf("%d partners rest, and %d clients do not", n, archived)
	}
	w.same("the new cell", w.contents(w.To, w.Partner), w.before, resealed...)
	for _, c := range db.SealedColumns {
		bad := value[int](w, w.To, fmt.Sprintf("SELECT count(*) FROM %s WHERE %[2]s <> '' AND %[2]s NOT LIKE (%[3]s::text || ' of the new cell: %%')::bytea",
			c.Table, c.Column, c.Key))
		if bad > 0 {
			w.t.Errorf("%d of %s.%s are not sealed with the new key", bad, c.Table, c.Column)
		}
	}
	w.same("the other partner", w.contents(w.From, w.other), w.kept)
	if step := value[string](w, w.From, "SELECT step FROM moves"); step != "gone" {
		w.t.Errorf("the old cell's step is %s", step)
	}
	if n := value[int](w, w.From, "SELECT count(*) FROM resting_clients"); n > 0 {
		w.t.Errorf("%d clients rest", n)
	}
	head := "SELECT position FROM event_head"
	if was, is := value[int](w, w.From, head), value[int](w, w.To, head); is < was {
		w.t.Errorf("events go on after %d, not %d", is, was)
	}
	if was, is := value[int](w, w.From, "SELECT last_value FROM event_numbers"), value[int](w, w.To, "SELECT nextval('event_numbers')"); is <= was {
		w.t.Errorf("the numbers of events go on with %d, not after %d", is, was)
	}
}

// unmoved checks that everything is as before the move.
func (w *world) unmoved() {
	w.t.Helper()
	w.same("the old cell", w.contents(w.From, w.Partner), w.before)
	for name, text := range w.contents(w.To, w.Partner) {
		if text != "" {
			w.t.Errorf("the new cell has of %s: %.200s", name, text)
		}
	}
	for _, d := range []*db.DB{w.From, w.To} {
		if n := value[int](w, d, "SELECT (SELECT count(*) FROM moves) + (SELECT count(*) FROM resting_clients)"); n > 0 {
			w.t.Errorf("a move is noted")
		}
	}
	w.must(w.write())
}

// write is a write of the partner, as a caller's is: it changes nothing.
func (w *world) write() error {
	ctx := domain.WithCaller(w.t.Context(), w.all)
	undo := errors.New("undo")
	err := w.From.Change(ctx, func(ctx context.Context, c *db.Change) error {
		err := w.From.Audit(ctx, domain.AuditEntry{Partner: w.Partner, Key: w.all.Key, Prefix: "pk_demo_all", Operation: "users.update"})
		return cmp.Or(err, undo)
	})
	if errors.Is(err, undo) {
		return nil
	}
	return err
}
