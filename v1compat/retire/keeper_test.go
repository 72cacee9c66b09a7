package retire

import (
	"testing"
	"time"

	"partnerapi/domain"
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

// TestKeepers: every process follows what any of them, or a command, changes; the release that
// is served is recorded.
func TestKeepers(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	first, read1 := w.watch()
	second, read2 := w.watch()
	for _, read := range []<-chan error{read1, read2} {
		w.must(<-read) // both listen
	}
	late := Key{domain.KeyID{7}, domain.PartnerID{7}}
	is := func(k Key, want bool) func(*State) bool {
		return func(s *State) bool { _, refused := s.Refused(k, false, noon); return refused == want }
	}
	for _, c := range []struct {
		change func() error
		shows  func(*State) bool
	}{
		{func() error { return w.Announce(ctx, Announcement{date("2027-06-15"), date("2028-06-15")}) }, announced},
		{func() error { _, err := w.StartRehearsal(ctx, mine.ID, time.Minute); return err }, is(mine, true)},
		{func() error { return w.EndRehearsal(ctx, mine.ID) }, is(mine, false)},
		{func() error { return w.SetPhase(ctx, Scope{Partner: mine.Partner}, Off, time.Time{}) }, is(mine, true)},
		{func() error { return w.SetNewKeys(ctx, true) }, func(s *State) bool { return s.NewKeysOff }},
		{func() error { w.insertKey(7, 7); return nil }, is(late, true)},
		{func() error { return w.AllowNewKey(ctx, late.ID) }, is(late, false)},
	} {
		w.must(c.change())
		w.follows(first, read1, c.shows)
		w.follows(second, read2, c.shows)
	}
	for _, release := range []string{"2.1", "2.1", "2.3"} {
		w.must(w.RecordRelease(ctx, release))
		if got := w.holds().Release; got != release {
			t.Errorf("release %q is served, not %s", got, release)
		}
	}
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
