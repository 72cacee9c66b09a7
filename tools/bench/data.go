package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/embedded"
	"partnerapi/db/migrate"
	"partnerapi/db/pg"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

// data is the database that is measured on.
type data struct {
	db       *db.DB
	url      string
	admin    string // that of the superuser
	partner  domain.PartnerID
	clients  []domain.ClientID // the first has the most users
	users    int               // of the first client
	all      int               // users of all clients
	server   int               // the database server's process
	progress io.Writer

	freshened time.Time // when all summaries were refreshed
}

// openData starts the database and fills it, unless it is full. Half of the users
// belong to one client.
func (b *bench) openData(ctx context.Context, size seed.Size) {
	check(os.MkdirAll(b.dataDir, 0o755))
	check(os.Chmod(b.dataDir, 0o755)) // the server may run as another user
	server := must(embedded.Start(ctx, embedded.Config{
		Dir: filepath.Join(b.dataDir, "postgres"), Settings: b.settings, Log: b.progress}))
	b.ends = append(b.ends, server.Stop)
	b.data = &data{db: must(db.Open(server.URL())), url: server.URL(), admin: server.AdminURL(), users: size.Users / 2,
		all: size.Users, server: server.PID(), progress: b.progress}
	b.ends = append(b.ends, b.data.db.Close)
	b.data.fill(ctx, size)
}

func (d *data) fill(ctx context.Context, size seed.Size) {
	d.migrate(ctx, d.db)
	if d.find(ctx); len(d.clients) < 2 { // one where it was cut short
		begin := time.Now()
		for _, part := range []seed.Size{{Clients: 1, Users: d.users, Mails: size.Mails},
			{Clients: size.Clients - 1, Users: size.Users - d.users, Mails: size.Mails}}[len(d.clients):] {
			check(seed.Large(ctx, d.db, part, output.NewBar(d.progress, "seeding")))
		}
		fmt.Fprintf(d.progress, "seeded %d clients and %d users in %s, with at most %.0f MB of memory\n", size.Clients,
			size.Users, rounded(time.Since(begin)), peakMB(os.Getpid()))
		debug.FreeOSMemory()
		d.find(ctx)
	}
	if len(d.clients) != size.Clients {
		fail("there are %d clients, not %d: name another --data-dir", len(d.clients), size.Clients)
	}
}

// migrate makes the tables of a database, and the service's own templates.
func (d *data) migrate(ctx context.Context, of *db.DB) {
	must(migrate.Up(ctx, of))
	if older.migrate != nil {
		check(older.migrate(ctx, of))
	}
	check(of.LoadTemplates(ctx))
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

// key makes a key with a scope on all clients, or on some.
func (d *data) key(ctx context.Context, scope domain.Scope, clients ...domain.ClientID) string {
	return must(d.db.CreateKey(ctx, db.NewKey{Partner: d.partner, Name: "bench " + db.NewID[domain.KeyKind]().String(),
		Scopes: []domain.Scope{scope}, Clients: clients}))
}

// exec executes a statement.
func (d *data) exec(ctx context.Context, query string, values ...any) {
	must(pg.Exec(ctx, d.db, "prepare", pg.Raw(query, values)))
}

// all are the rows that a query answers.
func all[Row any](ctx context.Context, d *data, query string, values ...any) []Row {
	return must(pg.All[Row](ctx, d.db, "read", pg.Raw(query, values)))
}

// count is the number that a query answers.
func (d *data) count(ctx context.Context, query string, values ...any) int {
	return all[int](ctx, d, query, values...)[0]
}

// activeUsers are the first active users of the largest client.
func (d *data) activeUsers(ctx context.Context, n int) []domain.UserID {
	users := all[domain.UserID](ctx, d,
		"SELECT id FROM users WHERE client_id = $1 AND status = 'active' ORDER BY id LIMIT $2", d.clients[0], n)
	if len(users) < n {
		fail("the largest client has %d active users and not %d", len(users), n)
	}
	return users
}

// emptyName is the database that is empty but for the catalogues.
const emptyName = "bench_import"

// emptyURL is the URL of that database.
func (d *data) emptyURL() string {
	where, _ := url.Parse(d.admin) // it is the server's own
	where.Path = "/" + emptyName
	return where.String()
}

// empty makes that database anew.
func (d *data) empty(ctx context.Context) {
	admin := must(db.Open(d.admin))
	defer admin.Close()
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + emptyName, "CREATE DATABASE " + emptyName} {
		must(pg.Exec(ctx, admin, "make a database", pg.SQL(statement)))
	}

	to := must(db.Open(d.emptyURL()))
	defer to.Close()
	d.migrate(ctx, to)
	breaches := all[string](ctx, d, "SELECT coalesce(json_agg(b), '[]')::text FROM breaches AS b")[0]
	must(pg.Exec(ctx, to, "copy the breaches", pg.SQL(
		"INSERT INTO breaches SELECT * FROM json_populate_recordset(NULL::breaches, ?::json)", breaches)))
}
