package idmap

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
)

// SchemaVersion returns how many of the registry's migrations were applied, and
// how many this program needs. It changes nothing.
func SchemaVersion(ctx context.Context, db *sql.DB) (have, want int64, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, 0, fmt.Errorf("list the registry's migrations: %w", err)
	}
	want = int64(len(names))

	var there bool
	err = db.QueryRowContext(ctx, "SELECT to_regclass('idmap_migrations') IS NOT NULL").Scan(&there)
	if err == nil && there {
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM idmap_migrations").Scan(&have)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the state of the registry's migrations: %w", err)
	}
	return have, want, nil
}

// SchemaKey identifies this version's migrations by their contents.
func SchemaKey() string {
	hash := sha256.New()
	names, err := fs.Glob(migrations, "migrations/*.sql")
	for _, name := range names {
		script, failed := migrations.ReadFile(name)
		err = errors.Join(err, failed)
		hash.Write(append([]byte(name), script...))
	}
	if err != nil {
		panic(err) // the files are part of the program
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
