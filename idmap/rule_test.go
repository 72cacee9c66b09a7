package idmap

import (
	"os"
	"testing"

	"partnerapi/db/dbtest"
	"partnerapi/db/migrate"
)

// whole is the migration that makes the tables: it runs where no objects are yet, and in a
// block, which the rule does not read.
const whole = "0001_schema.sql"

// TestMigrationsLockNothingForLong holds migrations to the rule of decisions 9, and all of
// them, with what removes v1, to a head that says what they lock.
func TestMigrationsLockNothingForLong(t *testing.T) {
	t.Parallel()
	_, r := registry(t)
	scripts, err := Scripts(t.Context(), r.db)
	if err != nil {
		t.Fatal(err)
	}
	drop, err := os.ReadFile("drop.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(scripts, Script{Name: "drop.sql", Text: string(drop), Applied: true}) {
		step, err := migrate.ParseStep(s.Name, s.Text)
		if err != nil || !s.Applied {
			t.Errorf("%s: applied %v, %v", s.Name, s.Applied, err)
			continue
		}
		if s.Name == whole {
			continue
		}
		var tables []string
		for _, l := range step.Locks {
			tables = append(tables, l.Table)
		}
		for _, fault := range dbtest.MigrationFaults(s.Text, step.Contracts != "", tables) {
			t.Errorf("%s: %s", s.Name, fault)
		}
	}
}
