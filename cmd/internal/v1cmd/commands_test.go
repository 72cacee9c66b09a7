package v1cmd

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/seed"
	"partnerapi/idmap/idmaptest"
)

// TestNumbers imports numbers and looks them up.
func TestNumbers(t *testing.T) {
	t.Parallel()
	flags := database.Flags{DatabaseURL: dbtest.URL(t, idmaptest.Schema)}
	err := flags.With(t.Context(), cli.Env{}, func(d *db.DB) error { _, err := seed.Demo(t.Context(), d); return err })
	if err != nil {
		t.Fatal(err)
	}
	run := func(command interface {
		Run(context.Context, cli.Env) error
	}, fails ...string) string {
		t.Helper()
		var out, errs strings.Builder
		err := command.Run(t.Context(), cli.Env{Out: &out, Err: &errs})
		if (err == nil) != (len(fails) == 0) {
			t.Fatalf("%+v: %v: %s", command, err, &errs)
		}
		for _, word := range fails {
			if said := errs.String() + err.Error(); !strings.Contains(said, word) {
				t.Errorf("%+v does not say %q: %s", command, word, said)
			}
		}
		return out.String()
	}
	lookup := func(kind, what string) lookupCmd { return lookupCmd{flags, kind, what, false} }
	path := filepath.Join(t.TempDir(), "numbers.csv")
	file := func(rows string) importCmd {
		t.Helper()
		if err := os.WriteFile(path, []byte("kind,number,id\n"+rows), 0o600); err != nil {
			t.Fatal(err)
		}
		return importCmd{Flags: flags, File: path}
	}

	first := run(lookup("client", "1"))
	id := strings.Fields(first)[2]
	if !strings.HasPrefix(first, "client 1 cli_") || !strings.Contains(first, "live") {
		t.Fatalf("client 1 is %s", first)
	}
	move := file("client,7001," + id + "\n")
	try := move
	try.DryRun = true
	if got := run(try); got != "1 rows: would move 1 objects to their numeric IDs, 0 already had them\n" {
		t.Errorf("dry run: %s", got)
	}
	if got := run(lookup("client", id)); got != first {
		t.Errorf("the dry run left %s", got)
	}
	for _, want := range []string{"moved 1 objects to their numeric IDs, 0 already had", "moved 0 objects to their numeric IDs, 1 already had"} {
		if got := run(move); !strings.Contains(got, want) {
			t.Errorf("import: %s", got)
		}
	}
	if got := run(lookup("client", id)); !strings.HasPrefix(got, "client 7001 "+id) || !strings.Contains(got, "\nclient 1 "+id) || !strings.Contains(got, "tombstone") {
		t.Errorf("after the import:\n%s", got)
	}
	run(file("client,7002,"+id+"\nclient,2,"+id+"\nclient,0,"+id+"\ndog,5,"+id+"\n"), "4", "5", "nothing was imported")
	if got := run(lookup("client", "7001")); !strings.Contains(got, id) {
		t.Errorf("a refused import left %s", got)
	}
	run(lookup("client", "7002"), "no entry for client 7002")
	run(lookup("dog", "1"), "dog")
	run(lookup("client", "usr_1"), "usr_1")
}
