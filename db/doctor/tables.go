package doctor

import (
	"cmp"
	"context"
	"errors"

	"partnerapi/db"
	"partnerapi/db/migrate"
)

// Tables are the tables of a part of the program, which have their own version.
type Tables struct {
	Name string
	// Version returns the version of the tables, 0 if they do not exist, and the version that this program needs.
	Version func(context.Context, *db.DB) (have, want int64, err error)
	// Migrate migrates the tables to the needed version.
	Migrate func(context.Context, *db.DB) error
	// Steps returns all migrations of the tables.
	Steps func(context.Context, *db.DB) ([]migrate.Step, error)
}

// TablesState is how tables compare with the version that this program needs.
type TablesState struct {
	// Missing names the first tables with missing migrations; nil if none are missing.
	Missing error
	// Newer is the error of tables of a newer version (migrate.ErrNewer), or nil.
	Newer error
}

// ReadTables compares the tables of the service, and then others, with the versions that this program needs. The error
// is migrate.ErrEarlier for tables of a version before 1.0.
func ReadTables(ctx context.Context, d *db.DB, others ...Tables) (state TablesState, err error) {
	for _, t := range append([]Tables{{Name: "tables", Version: migrate.SchemaVersion}}, others...) {
		have, want, err := t.Version(ctx, d)
		if err != nil {
			return state, err
		}
		switch fault := migrate.CheckVersion(t.Name, have, want); {
		case errors.Is(fault, migrate.ErrNewer):
			return TablesState{Newer: fault}, nil
		case state.Missing == nil:
			state.Missing = fault
		}
	}
	return state, nil
}

// CheckTables returns an error unless all tables are at the version that this program needs.
func CheckTables(ctx context.Context, d *db.DB, others ...Tables) error {
	state, err := ReadTables(ctx, d, others...)
	return cmp.Or(err, state.Newer, state.Missing)
}
