package dbtest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMain(m *testing.M) { Main(m) }

// schema counts how often it is applied. Its key is of the test and the run: no template
// of another run is found.
func schema(t *testing.T, key string) (Schema, *atomic.Int32) {
	applied := new(atomic.Int32)
	return Schema{
		Name:  strings.ToLower(t.Name()[4:]),
		Key:   t.TempDir() + key,
		Apply: func(context.Context, string) error { applied.Add(1); return nil },
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
