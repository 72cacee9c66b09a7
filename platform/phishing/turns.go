package phishing

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// turns bounds the requests in progress for each of any number of keys, such as links and addresses, so that a flood of
// one leaves slots to the others. It keeps nothing of keys without requests. It is safe for concurrent use.
type turns struct {
	most int64 // requests in progress for a key

	mu    sync.Mutex
	queue map[string]*queue
}

// queue is the requests for a key: those in progress and those that wait.
type queue struct {
	places   *semaphore.Weighted
	requests int
}

// newTurns returns turns of at most most requests in progress for a key.
func newTurns(most int64) *turns { return &turns{most: most, queue: map[string]*queue{}} }

// enter waits for a place among the requests for a key, until ctx ends. The returned function must be called when the
// request is finished.
func (t *turns) enter(ctx context.Context, key string) (leave func(), err error) {
	t.mu.Lock()
	q := t.queue[key]
	if q == nil {
		q = &queue{places: semaphore.NewWeighted(t.most)}
		t.queue[key] = q
	}
	q.requests++
	t.mu.Unlock()

	if err := q.places.Acquire(ctx, 1); err != nil {
		t.forget(key, q)
		return nil, err
	}
	return func() {
		q.places.Release(1)
		t.forget(key, q)
	}, nil
}

// forget counts a request as finished, and drops the queue of a key without requests.
func (t *turns) forget(key string, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.requests--; q.requests == 0 {
		delete(t.queue, key)
	}
}
