package migrate_test

import (
	"os"
	"path/filepath"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/migrate"
)

// lastUnruled is the last migration that was made before there was the rule.
const lastUnruled = "00051_import.sql"

// TestMigrationsLockNothingForLong holds the migrations that are new to the rule of
// decisions 9, and all of them to a head that says what they lock.
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
		name := filepath.Base(file)
		step, err := migrate.ParseStep(name, string(text))
		if err != nil {
			t.Error(err)
			continue
		}
		faults := dbtest.MigrationFaults(string(text), step.Contracts != "", lockedBy(step))
		if name > lastUnruled {
			for _, fault := range faults {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
}

func lockedBy(step migrate.Step) (tables []string) {
	for _, l := range step.Locks {
		tables = append(tables, l.Table)
	}
	return tables
}
