package mail

import (
	"context"
	"sync"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// marksAtOnce is how many mails are marked in one transaction.
	marksAtOnce = 100
	// markTries is how often a mark is tried, without which its mail is repeated,
	// and markAgain the pause between two tries.
	markTries = 5
	markAgain = 200 * time.Millisecond
)

// marks is the queue of sent mails that are not marked yet.
type marks struct {
	mu      sync.Mutex
	waiting []mark
	// leading is true while a caller of mark marks the others too.
	leading bool
}

type mark struct {
	ctx  context.Context
	mail db.SentMail
	done chan<- error
}

// mark marks a mail as sent. Calls that arrive while a transaction runs are
// marked together in the next one (group commit).
func (d *Dispatcher) mark(ctx context.Context, m db.SentMail) error {
	done := make(chan error, 1)
	d.marks.mu.Lock()
	d.marks.waiting = append(d.marks.waiting, mark{ctx, m, done})
	lead := !d.marks.leading
	d.marks.leading = true
	d.marks.mu.Unlock()

	for lead {
		group := d.marks.next()
		lead = group != nil
		d.markGroup(group)
	}
	return <-done
}

// next takes the marks that wait, up to marksAtOnce; nil where none does, and
// nobody leads any more.
func (m *marks) next() []mark {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == 0 {
		m.leading = false
		return nil
	}
	n := min(len(m.waiting), marksAtOnce)
	group := m.waiting[:n:n]
	m.waiting = m.waiting[n:]
	return group
}

// markGroup marks mails in one transaction, and each on its own if that fails.
func (d *Dispatcher) markGroup(group []mark) {
	if len(group) == 0 {
		return
	}
	mails := make([]db.SentMail, len(group))
	for i, m := range group {
		mails[i] = m.mail
	}
	marked, err := d.markSent(group[0].ctx, mails)
	if err != nil && len(group) > 1 {
		for _, m := range group {
			d.markGroup([]mark{m})
		}
		return
	}
	for _, m := range group {
		lost := err
		if err == nil && !marked[m.mail.ID] {
			lost = db.ErrLeaseLost
		}
		m.done <- lost
	}
}

// markSent is db.MarkSent, tried again while the database is away or rolls it
// back.
func (d *Dispatcher) markSent(ctx context.Context, mails []db.SentMail) (map[domain.MessageID]bool, error) {
	for try := 1; ; try++ {
		marked, err := d.db.MarkSent(ctx, mails)
		if err == nil || try == markTries || !domain.IsCode(err, domain.Unavailable) || ctx.Err() != nil {
			return marked, err
		}
		pause(ctx, markAgain)
	}
}
