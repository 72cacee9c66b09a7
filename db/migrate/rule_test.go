package migrate_test

import (
	"os"
	"path/filepath"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/migrate"
)

// TestMigrationsLockNothingForLong holds the migrations to the rule of decisions 9, with a
// head that says what they lock.
func TestMigrationsLockNothingForLong(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checkMigration(t, filepath.Base(file), string(text))
	}
}

func checkMigration(t *testing.T, name, text string) {
	t.Helper()
	step, err := migrate.ParseStep(name, text)
	if err != nil {
		t.Error(err)
		return
	}
	var locked []string
	for _, l := range step.Locks {
		locked = append(locked, l.Table)
	}
	for _, fault := range dbtest.MigrationFaults(text, step.Contracts != "", locked) {
		t.Errorf("%s: %s", name, fault)
	}
}
