package job

import (
	"context"
	"fmt"

	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"partnerapi/db"
)

// SchemaVersion returns the version that the queue's tables are at, 0 where
// there are none, and the one that this program needs. It changes nothing.
func SchemaVersion(ctx context.Context, d *db.DB) (have, want int64, err error) {
	migrator, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return 0, 0, fmt.Errorf("read the queue's migrations: %w", err)
	}
	for _, m := range migrator.AllVersions() {
		want = max(want, int64(m.Version))
	}

	have, err = d.AppliedVersion(ctx, "river_migration", "SELECT coalesce(max(version), 0) FROM river_migration WHERE line = 'main'")
	return have, want, err
}
