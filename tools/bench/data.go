package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/embedded"
	"partnerapi/db/migrate"
	"partnerapi/db/pg"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

// data is the database.
type data struct {
	db       *db.DB
	url      string
	admin    string // the URL of the superuser
	partner  domain.PartnerID
	clients  []domain.ClientID // the first has the most users
	users    int               // of the first client
	all      int               // users of all clients
	progress io.Writer
}

// openData starts the database and fills it, unless it is full. Half of the users belong to one client.
func (b *bench) openData(ctx context.Context, size seed.Size, settings map[string]string) {
	check(os.MkdirAll(b.dataDir, 0o755))
	check(os.Chmod(b.dataDir, 0o755)) // the server may run as another user
	server := must(embedded.Start(ctx, embedded.Config{
		Dir: filepath.Join(b.dataDir, "postgres"), Settings: settings, Log: b.progress}))
	b.ends = append(b.ends, server.Stop)
	d := &data{db: must(db.Open(server.URL())), url: server.URL(), admin: server.AdminURL(), users: size.Users / 2,
		all: size.Users, progress: b.progress}
	b.data = d
	b.ends = append(b.ends, d.db.Close)
	migrateAll(ctx, d.db)
	if d.find(ctx); len(d.clients) < 2 { // one if an earlier run was interrupted
		began := time.Now()
		for _, part := range []seed.Size{{Clients: 1, Users: d.users, Mails: size.Mails},
			{Clients: size.Clients - 1, Users: size.Users - d.users, Mails: size.Mails}}[len(d.clients):] {
			check(seed.Large(ctx, d.db, part, output.NewBar(d.progress, "seeding")))
		}
		fmt.Fprintf(d.progress, "seeded %d clients and %d users in %s\n", size.Clients, size.Users, rounded(time.Since(began)))
		d.find(ctx)
	}
	if len(d.clients) != size.Clients {
		fail("there are %d clients, want %d: name another --data-dir", len(d.clients), size.Clients)
	}
}

// migrateAll creates the tables of a database, and the service's own templates.
func migrateAll(ctx context.Context, d *db.DB) {
	must(migrate.Up(ctx, d))
	migrateV1(ctx, d) // v1-line
	check(d.LoadTemplates(ctx))
}

// find finds the seeded clients, those with the most users first.
func (d *data) find(ctx context.Context) {
	for _, p := range must(d.db.Partners(ctx)) {
		if p.Name == seed.LargePartner {
			d.partner = p.ID
		}
	}
	d.clients = all[domain.ClientID](ctx, d,
		"SELECT id FROM clients WHERE partner_id = $1 ORDER BY users_active + users_inactive DESC, id", d.partner)
}

// key creates a key with a scope for all clients, or some.
func (d *data) key(ctx context.Context, scope domain.Scope, clients ...domain.ClientID) string {
	return must(d.db.CreateKey(ctx, db.NewKey{Partner: d.partner, Name: "bench " + db.NewID[domain.KeyKind]().String(),
		Scopes: []domain.Scope{scope}, Clients: clients}))
}

// exec executes a statement.
func (d *data) exec(ctx context.Context, query string, values ...any) {
	must(pg.Exec(ctx, d.db, "prepare", pg.Raw(query, values)))
}

// all returns the rows of a query, and the first one of one.
func all[Row any](ctx context.Context, d *data, query string, values ...any) []Row {
	return must(pg.All[Row](ctx, d.db, "read", pg.Raw(query, values)))
}

func first[Row any](ctx context.Context, d *data, query string, values ...any) Row {
	rows := all[Row](ctx, d, query, values...)
	if len(rows) == 0 {
		fail("%s: no rows", query)
	}
	return rows[0]
}

// activeUsers returns the first active users of the largest client.
func (d *data) activeUsers(ctx context.Context, n int) []domain.UserID {
	users := all[domain.UserID](ctx, d,
		"SELECT id FROM users WHERE client_id = $1 AND status = 'active' ORDER BY id LIMIT $2", d.clients[0], n)
	if len(users) < n {
		fail("the largest client has %d active users, want %d", len(users), n)
	}
	return users
}

// randomUsers returns users of any clients in random order.
func (d *data) randomUsers(ctx context.Context) []domain.UserID {
	return all[domain.UserID](ctx, d, "SELECT id FROM users ORDER BY random() LIMIT 1000")
}

// pathOf returns the path of a client, or of what it has.
func pathOf(client domain.ClientID, of ...any) string {
	return "/v2/clients/" + client.String() + fmt.Sprint(of...)
}

// emptyName is the database that has only the catalogues.
const emptyName = "bench_import"

func (d *data) emptyURL() string {
	where := must(url.Parse(d.admin))
	where.Path = "/" + emptyName
	return where.String()
}

// empty creates that database anew.
func (d *data) empty(ctx context.Context) {
	admin := must(db.Open(d.admin))
	defer admin.Close()
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + emptyName, "CREATE DATABASE " + emptyName} {
		must(pg.Exec(ctx, admin, "make a database", pg.SQL(statement)))
	}
	to := must(db.Open(d.emptyURL()))
	defer to.Close()
	migrateAll(ctx, to)
}

const (
	// policies is the number of policies of the largest client, including those of the seed.
	policies = 10
	// published is the number of events that the seed's partner can read.
	published = 200_000
	// audited is the number of audit entries of the seed's partner.
	audited = 1_000_000
	// pageRows is the number of rows of v1's largest pages.
	pageRows = 50

	measuredPolicy, measuredCollection = "Measured policy", "Measured collection"
)

// policies adds a collection of all users of the largest client, and policies that most of their audiences signed. One
// is the collection's, the others are for all.
func (d *data) policies(ctx context.Context) {
	d.once(ctx, "policies", func(ctx context.Context) {
		client := d.clients[0]
		d.exec(ctx, `INSERT INTO collections (client_id, id, name, name_key, member_count, created_by, created_at, updated_at)
			SELECT $1, gen_random_uuid(), $2, lower($2), count(*), 'api', now(), now() FROM users WHERE client_id = $1`,
			client, measuredCollection)
		d.exec(ctx, `INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
			SELECT $1, k.id, u.id, now() - make_interval(mins => (row_number() OVER (ORDER BY u.id) / 10)::integer)
			FROM users AS u JOIN collections AS k USING (client_id) WHERE client_id = $1 AND k.name = $2`,
			client, measuredCollection)
		d.exec(ctx, `INSERT INTO policies
				(client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
			SELECT k.client_id, gen_random_uuid(), $2 || ' ' || n, CASE n WHEN 1 THEN 'collection' ELSE 'tenant' END,
				CASE n WHEN 1 THEN k.id ELSE k.client_id END, true, now(), now() - make_interval(mins => 100 - n), now()
			FROM collections AS k, generate_series(1, $4 - 1) AS n WHERE k.client_id = $1 AND k.name = $3`,
			client, measuredPolicy, measuredCollection, policies)
		d.exec(ctx, `INSERT INTO policy_signatures (client_id, policy_id, user_id, version, signed_at)
			SELECT p.client_id, p.id, u.id, p.version,
				now() - make_interval(days => abs(hashtext(u.id::text || p.title)) % 400)
			FROM policies AS p JOIN users AS u USING (client_id)
			WHERE client_id = $1 AND starts_with(p.title, $2) AND hashtext(p.title || u.id::text) % 10 <> 0`,
			client, measuredPolicy)
	})
}

// labels adds labels to the largest client, each with emails on ten days.
func (d *data) labels(ctx context.Context) {
	d.once(ctx, "labels", func(ctx context.Context) {
		d.exec(ctx, `INSERT INTO phishing_labels (client_id, key, label, sends, cancelled, first_send_at, last_send_at)
			SELECT $1, 'bench ' || n, 'Bench ' || n, 10, 0, now() - make_interval(days => 10, mins => n), now()
			FROM generate_series(1, 500) AS n`, d.clients[0])
		d.exec(ctx, `INSERT INTO phishing_label_days (client_id, label_key, day, sent)
			SELECT client_id, key, current_date - day, 1 FROM phishing_labels, generate_series(1, 10) AS day WHERE client_id = $1`, d.clients[0])
	})
}

// publishedEvents adds events of all clients in turns, as if they had been published.
func (d *data) publishedEvents(ctx context.Context) {
	d.once(ctx, "published events", func(ctx context.Context) {
		d.exec(ctx, `
			WITH head AS (UPDATE event_head SET position = position + $2 RETURNING position - $2 AS position)
			INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
			SELECT $1, head.position + n, c.id, gen_random_uuid(), t.type, now(), format(
				'{"id":"evt_01h455vb4pex5vsknk084sn02q","type":"%s","created_at":"2026-06-15T12:00:00.000000Z",' ||
				'"client_id":"cli_01h455vb4pex5vsknk084sn02q","data":{"id":"usr_01h455vb4pex5vsknk084sn02q",' ||
				'"email":"user%s@bench.example","first_name":"User","last_name":"%s","job_title":"Accountant",' ||
				'"status":"active","updated_at":"2026-06-15T12:00:00.000000Z"}}', t.type, n, n)
			FROM head, generate_series(1, $2::bigint) AS n
			JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place, count(*) OVER () AS of FROM clients
				WHERE partner_id = $1) AS c ON c.place = n % c.of
			JOIN (SELECT type, place - 1 AS place FROM unnest($3::text[]) WITH ORDINALITY AS t (type, place)) AS t
				ON t.place = n % cardinality($3::text[])`,
			d.partner, published, domain.EventType("").Values())
	})
}

// auditEntries adds audit entries of all clients in turns, of one key.
func (d *data) auditEntries(ctx context.Context) {
	d.once(ctx, "audit entries", func(ctx context.Context) {
		d.exec(ctx, `
			INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, object_kind, fields, client_id, request_id)
			SELECT now() - n * interval '30 seconds', $1, k.id, k.prefix, 'users.update', 'PATCH', '/v2/users', 'user', '{email}', c.id, n
			FROM generate_series(1, $2::bigint) AS n CROSS JOIN (SELECT id, prefix FROM api_keys WHERE partner_id = $1 LIMIT 1) AS k
			JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS place, count(*) OVER () AS of FROM clients
				WHERE partner_id = $1) AS c ON c.place = n % c.of`, d.partner, audited)
	})
}

// once adds a part of the data, unless the database has it.
func (d *data) once(ctx context.Context, part string, fill func(ctx context.Context)) {
	began, added := time.Now(), 0
	check(d.db.Tx(ctx, func(tx context.Context) error {
		return try(func() {
			d.exec(tx, "CREATE TABLE IF NOT EXISTS bench_parts (name text PRIMARY KEY)")
			added = must(pg.Exec(tx, d.db, "note a part", pg.SQL(
				"INSERT INTO bench_parts (name) VALUES (?) ON CONFLICT DO NOTHING", part)))
			if added > 0 {
				fill(tx)
			}
		})
	}))
	if added > 0 {
		d.exec(ctx, "VACUUM ANALYZE")
		fmt.Fprintf(d.progress, "added %s in %s\n", part, rounded(time.Since(began)))
	}
}
