package lease

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"partnerapi/domain"
)

// retryMark is the pause between two attempts to write a mark.
const retryMark = 200 * time.Millisecond

// MarksConfig configures Marks.
type MarksConfig[M any] struct {
	Log *slog.Logger
	// Doing names the writing in the log.
	Doing string
	// MaxBatch is the maximum number of marks in one transaction, and Within the maximum time for writing them, with
	// all attempts.
	MaxBatch int
	Within   time.Duration
	// Write writes marks in one transaction. lost returns an error for a mark whose lease had ended, and nil for the
	// others.
	Write func(ctx context.Context, marks []M) (lost func(M) error, err error)
}

// Marks records the outcomes of rows. Marks that arrive during a transaction are written together in the next one
// (group commit). It is safe for concurrent use.
type Marks[M any] struct {
	MarksConfig[M]
	writing chan struct{} // holds an element while a group is written
	mu      sync.Mutex
	waiting []waitingMark[M]
}

// waitingMark is a mark that is not written yet; done receives its outcome.
type waitingMark[M any] struct {
	ctx  context.Context
	mark M
	done chan<- error
}

// NewMarks returns an empty Marks.
func NewMarks[M any](c MarksConfig[M]) *Marks[M] {
	return &Marks[M]{MarksConfig: c, writing: make(chan struct{}, 1)}
}

// Mark writes a mark, in a group with those of other callers, and waits for the outcome. It returns an error if the
// mark could not be written or its lease was lost. If ctx has ended when the write of the group begins, it returns
// ctx's error; after that it ignores ctx, so that one caller does not interrupt the others. A stop of the process
// should not end ctx, because a row without a mark is done again.
func (m *Marks[M]) Mark(ctx context.Context, mark M) error {
	done := make(chan error, 1)
	m.mu.Lock()
	m.waiting = append(m.waiting, waitingMark[M]{ctx, mark, done})
	m.mu.Unlock()
	for {
		select {
		case err := <-done:
			return err
		case m.writing <- struct{}{}: // no group is being written: write the next, which may be without this mark
			m.write(m.next())
			<-m.writing
		}
	}
}

// next removes up to MaxBatch of the waiting marks, and returns them: none if other callers have removed all.
func (m *Marks[M]) next() []waitingMark[M] {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := min(len(m.waiting), m.MaxBatch)
	group := m.waiting[:n:n]
	m.waiting = m.waiting[n:]
	return group
}

// write writes marks in one transaction, and sends the outcome of each to its done: nil, or an error if its lease was
// lost or it could not be written. If the transaction fails although the database is available, it writes each mark in
// its own transaction. It does not write marks whose ctx has ended; the outcome is then ctx's error.
func (m *Marks[M]) write(group []waitingMark[M]) {
	group = slices.DeleteFunc(group, func(w waitingMark[M]) bool {
		err := w.ctx.Err()
		if err != nil {
			w.done <- err
		}
		return err != nil
	})
	if len(group) == 0 {
		return
	}
	marks := make([]M, len(group))
	for i, w := range group {
		marks[i] = w.mark
	}
	lost, err := m.retry(context.WithoutCancel(group[0].ctx), marks)
	if err != nil && len(group) > 1 && !domain.IsCode(err, domain.Unavailable) {
		for _, w := range group {
			m.write([]waitingMark[M]{w})
		}
		return
	}

	for _, w := range group {
		if err == nil {
			w.done <- lost(w.mark) // nil unless its lease was lost
		} else {
			w.done <- err
		}
	}
}

// retry calls Write, repeatedly while the database is unavailable, at most for Within. A panic becomes an error.
func (m *Marks[M]) retry(ctx context.Context, marks []M) (lost func(M) error, err error) {
	ctx, cancel := context.WithTimeout(ctx, m.Within)
	defer cancel()
	err = RetryUnavailable(ctx, func() error {
		return domain.Recover(ctx, m.Log, m.Doing, func() (err error) { lost, err = m.Write(ctx, marks); return err })
	})
	return lost, err
}

// RetryUnavailable repeats write while its error is Unavailable (no database, or a transaction rolled back), until ctx
// ends. It returns the result of the last attempt.
func RetryUnavailable(ctx context.Context, write func() error) error {
	for {
		err := write()
		if !domain.IsCode(err, domain.Unavailable) || domain.Pause(ctx, retryMark) != nil {
			return err
		}
	}
}
