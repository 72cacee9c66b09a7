package parity

import "sync"

// inTurn lets one walk at a time over each list: v1 promises a key no more (decisions
// 5.7).
type inTurn struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

// take waits for a list's turn, and returns what ends it.
func (t *inTurn) take(list string) (release func()) {
	for {
		t.mu.Lock()
		other, taken := t.busy[list]
		if !taken {
			mine := make(chan struct{})
			t.busy[list] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, list)
				t.mu.Unlock()
				close(mine)
			}
		}
		t.mu.Unlock()
		<-other
	}
}
