package retire

import (
	"testing"
	"time"
)

// follows waits for a reading after which the state is as wanted.
func (w *world) follows(k *Keeper, read <-chan error, want func(*State) bool) {
	w.t.Helper()
	for !want(k.State()) {
		select {
		case <-read:
		case <-w.t.Context().Done():
			w.t.Fatal("the change is not followed")
		}
	}
}

func announced(s *State) bool { return s.Announcement != nil }

// TestKeepers: every process follows what any of them, or a command, changes.
func TestKeepers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, read1 := w.watch()
	second, read2 := w.watch()
	for _, read := range []<-chan error{read1, read2} {
		w.must(<-read) // both listen
	}
	w.must(w.Announce(t.Context(), Announcement{date("2027-06-15"), date("2028-06-15")}))
	w.follows(first, read1, announced)
	w.follows(second, read2, announced)
	w.must(w.SetPhase(t.Context(), Scope{Partner: mine.Partner}, Off, time.Time{}))
	off := func(s *State) bool { _, refused := s.Refused(mine, false, noon); return refused }
	w.follows(first, read1, off)
	w.follows(second, read2, off)
	w.must(w.RecordRelease(t.Context(), "2.2"))
}

// TestKeeperSurvivesALostConnection: the last state holds, and changes that were
// made meanwhile are found.
func TestKeeperSurvivesALostConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(w.Announce(t.Context(), Announcement{date("2027-06-15"), date("2028-06-15")}))
	k, read := w.watch()
	w.must(<-read)
	_, err := w.sql.ExecContext(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'idle'`)
	w.must(err)
	if err := <-read; err == nil {
		t.Fatal("a lost connection is not noticed")
	}
	if !announced(k.State()) {
		t.Error("the last state does not hold")
	}
	_, err = w.Cancel(t.Context())
	w.must(err)
	w.follows(k, read, func(s *State) bool { return !announced(s) })
}

// TestKeepNeedsTheState: a process that cannot read the state does not begin.
func TestKeepNeedsTheState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.sql.ExecContext(t.Context(), `DROP TABLE v1_phases`)
	w.must(err)
	if _, err := NewKeeper(t.Context(), w.Store); err == nil {
		t.Error("no error")
	}
}
