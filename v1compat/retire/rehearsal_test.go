package retire

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/domain"
)

// TestRehearsals: of rehearsals that are asked for at a time one begins; those that are listed
// are the last of each key, with what is known of it.
func TestRehearsals(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	w.insertKey(1, 1)
	unknown := domain.KeyID{9}
	var started atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := w.StartRehearsal(ctx, mine.ID, 10*time.Minute); err == nil {
				started.Add(1)
			} else if !domain.IsCode(err, domain.RateLimited) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if started.Load() != 1 {
		t.Errorf("%d rehearsals began", started.Load())
	}
	w.clock.Advance(90*time.Second + 500*time.Millisecond)
	until, err := w.StartRehearsal(ctx, unknown, time.Minute)
	w.must(err)
	if want := noon.Add(150 * time.Second); !until.Equal(want) {
		t.Errorf("a rehearsal ends at %v", until)
	}
	w.must(w.EndRehearsal(ctx, mine.ID))
	w.must(w.EndRehearsal(ctx, domain.KeyID{8}))

	list, err := w.Rehearsals(ctx)
	w.must(err)
	if len(list) != 2 || list[0].Key != unknown || list[0].Prefix != "" || list[1].Key != mine.ID || list[1].Name != "key" || list[1].Partner == "" ||
		!list[1].StartedAt.Equal(noon) || !list[1].EndedAt.Equal(w.clock.Now()) {
		t.Errorf("the rehearsals are %+v", list)
	}
	if now := w.clock.Now(); !list[0].Running(now) || list[1].Running(now) {
		t.Error("the wrong one is under way")
	}
	if s := w.holds(); s.Unrestricted() || len(s.Rehearsals) != 2 {
		t.Errorf("the state has %v", s.Rehearsals)
	}
	w.clock.Advance(2 * time.Hour)
	if s := w.holds(); !s.Unrestricted() {
		t.Errorf("after the rehearsals the state has %v", s.Rehearsals)
	}
}

// TestLaterReadingsHold: what a reading found that began before another one does not replace it.
func TestLaterReadingsHold(t *testing.T) {
	t.Parallel()
	k := &Keeper{}
	older, newer := &State{}, &State{}
	first, second := k.readings.Add(1), k.readings.Add(1)
	k.setState(second, newer)
	k.setState(first, older)
	if k.State() != newer {
		t.Error("the older state is shown")
	}
}
