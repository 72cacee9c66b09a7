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

// SchemaVersion returns the number of the registry's migrations that were applied, 0
// without the table idmap_migrations, and the number that this program needs. It does not
// change the database.
func SchemaVersion(ctx context.Context, db *sql.DB) (have, want int64, err error) {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, 0, fmt.Errorf("list the registry's migrations: %w", err)
	}
	want = int64(len(names))

	var exists bool
	err = db.QueryRowContext(ctx, "SELECT to_regclass('idmap_migrations') IS NOT NULL").Scan(&exists)
	if err == nil && exists {
		err = db.QueryRowContext(ctx, "SELECT count(*) FROM idmap_migrations").Scan(&have)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the state of the registry's migrations: %w", err)
	}
	return have, want, nil
}

// SchemaKey returns a key that changes with the names and contents of the registry's
// migrations.
func SchemaKey() string {
	hash := sha256.New()
	names, err := fs.Glob(migrations, "migrations/*.sql")
	for _, name := range names {
		script, readErr := migrations.ReadFile(name)
		err = errors.Join(err, readErr)
		hash.Write(append([]byte(name), script...))
	}
	if err != nil {
		panic(err) // the files are part of the program
	}
	return hex.EncodeToString(hash.Sum(nil)[:8])
}
