package ginop

import (
	"context"
	"sync"
	"time"

	"partnerapi/domain"
)

// memory is a Store of this process. Windows that have ended are forgotten at
// the latest one window later.
type memory struct {
	clock domain.Clock

	mu      sync.Mutex
	windows map[string]*counted
	sweep   time.Time // when those that have ended are forgotten next
}

type counted struct {
	n   int64
	end time.Time
}

func newMemory(clock domain.Clock) *memory {
	return &memory{clock: clock, windows: map[string]*counted{}}
}

// Add implements Store. It never fails.
func (m *memory) Add(_ context.Context, name string, n int64, window time.Duration) (int64, time.Time, error) {
	now := m.clock.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.forget(now, window)

	w, ok := m.windows[name]
	if !ok || !now.Before(w.end) {
		w = &counted{end: now.Add(window)}
		if n > 0 {
			m.windows[name] = w
		}
	}
	w.n = max(w.n+n, 0)
	return w.n, w.end, nil
}

func (m *memory) forget(now time.Time, window time.Duration) {
	if now.Before(m.sweep) {
		return
	}
	for name, w := range m.windows {
		if !now.Before(w.end) {
			delete(m.windows, name)
		}
	}
	m.sweep = now.Add(window)
}
