package migrate

import (
	"context"
	"database/sql"
	"io/fs"
	"slices"
	"testing/fstest"

	"partnerapi/db"
)

// Next is the migrations of this version and of one after it.
type Next struct{ chain }

// NewNext adds migrations in SQL, by their names, to those of this version.
func NewNext(sql map[string]string) (n Next, err error) {
	all := fstest.MapFS{}
	for name, text := range sql {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	names, err := fs.Glob(migrations.sql, "*.sql")
	for _, name := range names {
		text, failed := fs.ReadFile(migrations.sql, name)
		if err = failed; err != nil {
			break
		}
		all[name] = &fstest.MapFile{Data: text}
	}
	return Next{chain{sql: all, inGo: migrations.inGo}}, err
}

// InGo adds a migration in Go.
func (n *Next) InGo(version int64, step Step, run func(context.Context, *sql.DB) error) {
	n.inGo = append(slices.Clip(n.inGo), goStep{step, version, func(ctx context.Context, d *db.DB) error { return run(ctx, d.SQL()) }})
}

// Up brings the tables to the next version.
func (n Next) Up(ctx context.Context, d *db.DB) ([]string, error) { return n.up(ctx, d) }

// Steps are those of the next version.
func (n Next) Steps(ctx context.Context, d *db.DB) ([]Step, error) { return n.steps(ctx, d) }

// Released returns the migrations of 1.0.
func Released() Next {
	const name = "00001_schema.sql"
	text, err := fs.ReadFile(migrations.sql, name)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return Next{chain{sql: fstest.MapFS{name: {Data: text}}}}
}
