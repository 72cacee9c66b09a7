package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"partnerapi/cmd/internal/bar"
	"partnerapi/db"
	"partnerapi/db/embedded"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

// data is the database that is measured on.
type data struct {
	db      *db.DB
	url     string
	partner domain.PartnerID
	clients []domain.ClientID // the first has the most users
	users   int               // of the first client
	all     int               // users of all clients
	server  int               // the database server's process
	close   func() error
}

// size is how much there is: half of the users belong to one client.
func (o options) size() seed.Size {
	if o.quick {
		return seed.Size{Clients: 1000, Users: 10_000}
	}
	return seed.Size{Clients: 1000, Users: 100_000}
}

// openData starts the database and fills it, unless it is full.
func openData(ctx context.Context, o options, progress io.Writer) (d *data, err error) {
	dir, remove := o.dataDir, func() error { return nil }
	if dir == "" {
		if dir, err = os.MkdirTemp("", "partnerapi-bench"); err != nil {
			return nil, err
		}
		remove = func() error { return os.RemoveAll(dir) }
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // the server may run as another user
		return nil, err
	}
	server, err := embedded.Start(ctx, embedded.Config{Dir: filepath.Join(dir, "postgres"), Log: progress})
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	d = &data{url: server.URL(), users: o.size().Users / 2, all: o.size().Users, server: server.PID()}
	if d.db, err = db.Open(d.url); err != nil {
		return nil, errors.Join(err, server.Stop(), remove())
	}
	d.close = func() error { return errors.Join(d.db.Close(), server.Stop(), remove()) }
	if err := d.fill(ctx, o.size(), progress); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *data) fill(ctx context.Context, size seed.Size, progress io.Writer) error {
	if _, err := d.db.Migrate(ctx); err != nil {
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
			if err := seed.Large(ctx, d.db, part, bar.New(progress, "seeding")); err != nil {
				return err
			}
		}
		// What autovacuum would have done a minute later.
		if _, err := d.db.SQL().ExecContext(ctx, "VACUUM ANALYZE"); err != nil {
			return fmt.Errorf("vacuum: %w", err)
		}
		fmt.Fprintf(progress, "seeded %d clients and %d users in %s\n", size.Clients, size.Users,
			time.Since(begin).Round(time.Second))
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

// key makes a key with a scope on all clients.
func (d *data) key(ctx context.Context, name string, scope domain.Scope) (string, error) {
	return d.db.CreateKey(ctx, db.NewKey{Partner: d.partner, Name: name, Scopes: []domain.Scope{scope}})
}

// fileName is a text as the name of a file.
func fileName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, text)
}
