package directory_test

import (
	"testing"

	"partnerapi/domain"
)

// TestPanic: a run that panics has failed; the next one starts afresh.
func TestPanic(t *testing.T) {
	w := newWorld(t)
	s := newScripted(false, crowd(3))
	w.connect(w.client, s)
	s.before = func(position string) error {
		if position != "" {
			panic("planted")
		}
		return nil
	}
	if run := w.try(false); run.Status != domain.SyncFailed || *run.Error != domain.ErrPanicked.Error() {
		t.Errorf("the run is %+v", run)
	}
	s.before = nil
	wantCounts(t, w.sync(), domain.SyncCounts{Created: 3})
}
