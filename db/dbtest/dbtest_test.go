package dbtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { Main(m) }

// run executes a statement, and returns the one value of one that has rows.
func run(t *testing.T, url, sql string) string {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var got string
	if err := conn.QueryRow(ctx, sql).Scan(&got); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatalf("%s: %v", sql, err)
	}
	return got
}

// schema has one table, and counts how often it is applied. Its key is of the
// test and the run: no template of another run is found.
func schema(t *testing.T, key string) (Schema, *atomic.Int32) {
	applied := new(atomic.Int32)
	return Schema{
		Name: strings.ToLower(t.Name()[4:]),
		Key:  t.TempDir() + key,
		Apply: func(ctx context.Context, url string) error {
			applied.Add(1)
			conn, err := pgx.Connect(ctx, url)
			if err != nil {
				return err
			}
			_, err = conn.Exec(ctx, "CREATE TABLE notes (text text)")
			return errors.Join(err, conn.Close(ctx))
		},
	}, applied
}

// another stands for a second process at the same server.
func another(t *testing.T) *server {
	t.Helper()
	URL(t, Schema{Name: "empty", Apply: func(context.Context, string) error { return nil }})
	s, err := connect(t.Context(), process.server.address.String(), func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.disconnect() })
	return s
}

func has(t *testing.T, s *server, database string) bool {
	t.Helper()
	names, err := s.databases(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	return len(names) > 0
}

func TestOwnDatabases(t *testing.T) {
	notes, applied := schema(t, "")
	var first string
	t.Run("first", func(t *testing.T) {
		first = URL(t, notes)
		second := URL(t, notes)
		run(t, first, "INSERT INTO notes VALUES ('first')")
		if got := run(t, second, "SELECT count(*)::text FROM notes"); got != "0" {
			t.Errorf("the second database has %s notes", got)
		}
	})
	if applied.Load() != 1 {
		t.Errorf("applied %d times", applied.Load())
	}
	if conn, err := pgx.Connect(t.Context(), first); err == nil {
		conn.Close(t.Context())
		t.Error("the database outlives its test")
	}
}

func TestAppliedOnceForAllProcesses(t *testing.T) {
	notes, applied := schema(t, "")
	notes.Name = "once"
	var wg sync.WaitGroup
	for range 4 {
		s := another(t)
		for range 2 { // tests of one process that run side by side
			wg.Go(func() {
				database, err := s.create(t.Context(), notes)
				if err == nil {
					err = s.drop(t.Context(), database)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if applied.Load() != 1 {
		t.Errorf("applied %d times", applied.Load())
	}
}

func TestDatabasesOfTheDead(t *testing.T) {
	notes, _ := schema(t, "")
	dying, witness := another(t), another(t)
	database, err := dying.create(t.Context(), notes)
	if err != nil {
		t.Fatal(err)
	}
	if err := witness.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !has(t, witness, database) {
		t.Fatal("the database of a living process was dropped")
	}
	if err := dying.disconnect(); err != nil {
		t.Fatal(err)
	}
	// The server ends a session a moment after its client: until then it lives.
	if err := witness.lock(t.Context(), liveClass, dying.number); err != nil {
		t.Fatal(err)
	}
	if err := witness.sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if has(t, witness, database) {
		t.Error("the database of a dead process is still there")
	}
}

func TestTemplatesNobodyUses(t *testing.T) {
	old, _ := schema(t, "old")
	young, applied := schema(t, "young")
	first, second := another(t), another(t)
	oldName, err := first.template(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.template(t.Context(), young); err != nil {
		t.Fatal(err)
	}
	if applied.Load() != 1 || !has(t, second, oldName) {
		t.Fatal("a template in use was dropped, or taken for another key's")
	}
	if err := first.disconnect(); err != nil {
		t.Fatal(err)
	}
	if err := second.lock(t.Context(), templateClass, hash(old.Key)); err != nil { // once the server has noticed
		t.Fatal(err)
	}
	third, _ := schema(t, "third")
	if _, err := second.template(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	if has(t, second, oldName) {
		t.Error("the template that no process uses is still there")
	}
}

func TestFailedApply(t *testing.T) {
	notes, _ := schema(t, "")
	broken := errors.New("broken")
	working := notes.Apply
	notes.Apply = func(context.Context, string) error { return broken }
	s := another(t)
	if _, err := s.create(t.Context(), notes); !errors.Is(err, broken) {
		t.Fatalf("error %v", err)
	}
	notes.Apply = working
	if database, err := s.create(t.Context(), notes); err != nil {
		t.Error(err)
	} else if err := s.drop(t.Context(), database); err != nil {
		t.Error(err)
	}
}

func TestSchemaName(t *testing.T) {
	if _, err := another(t).create(t.Context(), Schema{Name: "a; drop"}); err == nil {
		t.Error("took a name that is none")
	}
}

func TestPrivateSurvivesKill(t *testing.T) {
	s := Private(t)
	run(t, s.URL(), "CREATE TABLE notes (text text)")
	run(t, s.URL(), "INSERT INTO notes VALUES ('committed')")
	s.Kill()
	s.Start()
	if got := run(t, s.URL(), "SELECT text FROM notes"); got != "committed" {
		t.Errorf("read %q", got)
	}
}

func TestSharedDirOfOthers(t *testing.T) {
	base := t.TempDir()
	dir, err := sharedDir(base)
	if err != nil {
		t.Fatal(err)
	}
	if dir != filepath.Join(base, filepath.Base(dir)) {
		t.Errorf("it is %s", dir)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := sharedDir(base); err == nil {
		t.Error("took a folder that all can write")
	}
}

func BenchmarkURL(b *testing.B) {
	empty := Schema{Name: "bench", Apply: func(context.Context, string) error { return nil }}
	for b.Loop() {
		URL(b, empty)
	}
}
