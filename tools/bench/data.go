package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"partnerapi/cmd/internal/bar"
	"partnerapi/db"
	"partnerapi/db/embedded"
	"partnerapi/db/migrate"
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
	close    func() error
	progress io.Writer
}

// openData starts the database and fills it, unless it is full. Half of the users
// belong to one client.
func openData(ctx context.Context, o options, progress io.Writer) (d *data, err error) {
	if err := os.MkdirAll(o.dataDir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(o.dataDir, 0o755); err != nil { // the server may run as another user
		return nil, err
	}
	server, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(o.dataDir, "postgres"), Log: progress})
	if err != nil {
		return nil, err
	}
	size := seed.Size{Clients: 1000, Users: o.tenth(100_000)}
	d = &data{url: server.URL(), admin: server.AdminURL(), users: size.Users / 2, all: size.Users, server: server.PID(),
		progress: progress}
	if d.db, err = db.Open(d.url); err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	d.close = func() error { return errors.Join(d.db.Close(), server.Stop()) }
	if err := d.fill(ctx, size); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *data) fill(ctx context.Context, size seed.Size) error {
	if _, err := migrate.Up(ctx, d.db); err != nil {
		return err
	}
	if err := d.db.LoadTemplates(ctx); err != nil {
		return err
	}
	if older.migrate != nil {
		if err := older.migrate(ctx, d.db); err != nil {
			return err
		}
	}

	if err := d.find(ctx); err != nil {
		return err
	}
	if len(d.clients) == 0 {
		begin := time.Now()
		for _, part := range []seed.Size{{Clients: 1, Users: d.users},
			{Clients: size.Clients - 1, Users: size.Users - d.users}} {
			if err := seed.Large(ctx, d.db, part, bar.New(d.progress, "seeding")); err != nil {
				return err
			}
		}
		fmt.Fprintf(d.progress, "seeded %d clients and %d users in %s\n", size.Clients, size.Users,
			rounded(time.Since(begin)))
		debug.FreeOSMemory()
	}

	if err := d.find(ctx); err != nil {
		return err
	}
	if len(d.clients) != size.Clients {
		return fmt.Errorf("there are %d clients, not %d: name another --data-dir", len(d.clients), size.Clients)
	}
	return nil
}

// find finds the seeded clients, those with the most users first.
func (d *data) find(ctx context.Context) error {
	partners, err := d.db.Partners(ctx)
	if err != nil {
		return err
	}
	for _, p := range partners {
		if p.Name == seed.LargePartner {
			d.partner = p.ID
		}
	}
	d.clients, err = ids[domain.ClientKind](ctx, d,
		"SELECT id::text FROM clients WHERE partner_id = $1::uuid ORDER BY users_active + users_inactive DESC, id",
		d.partner.UUID())
	return err
}

// exec executes a statement.
func (d *data) exec(ctx context.Context, query string, values ...any) error {
	_, err := d.db.SQL().ExecContext(ctx, query, values...)
	return err
}

// count is the number that a query answers.
func (d *data) count(ctx context.Context, query string, values ...any) (n int, err error) {
	err = d.db.SQL().QueryRowContext(ctx, query, values...).Scan(&n)
	return n, err
}

// ids reads ids as texts.
func ids[K domain.Kind](ctx context.Context, d *data, query string, values ...any) (all []domain.ID[K], err error) {
	rows, err := d.db.SQL().QueryContext(ctx, query, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		id, err := domain.ParseUUID[K](text)
		if err != nil {
			return nil, err
		}
		all = append(all, id)
	}
	return all, rows.Err()
}

// activeUsers are the first active users of the largest client.
func (d *data) activeUsers(ctx context.Context, n int) ([]domain.UserID, error) {
	users, err := ids[domain.UserKind](ctx, d,
		"SELECT id::text FROM users WHERE client_id = $1 AND status = 'active' ORDER BY id LIMIT $2", d.clients[0].UUID(), n)
	if err == nil && len(users) < n {
		err = fmt.Errorf("the largest client has %d active users and not %d", len(users), n)
	}
	return users, err
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
func (d *data) empty(ctx context.Context) error {
	admin, err := db.Open(d.admin)
	if err != nil {
		return err
	}
	defer admin.Close()
	for _, statement := range []string{"DROP DATABASE IF EXISTS " + emptyName, "CREATE DATABASE " + emptyName} {
		if _, err := admin.SQL().ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("make a database: %w", err)
		}
	}

	to, err := db.Open(d.emptyURL())
	if err != nil {
		return err
	}
	defer to.Close()
	if _, err := migrate.Up(ctx, to); err != nil {
		return err
	}

	if err := to.LoadTemplates(ctx); err != nil {
		return err
	}
	var breaches string
	err = d.db.SQL().QueryRowContext(ctx, "SELECT coalesce(json_agg(b), '[]')::text FROM breaches AS b").Scan(&breaches)
	if err == nil {
		_, err = to.SQL().ExecContext(ctx,
			"INSERT INTO breaches SELECT * FROM json_populate_recordset(NULL::breaches, $1::json)", breaches)
	}
	return err
}
