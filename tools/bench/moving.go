package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/db/move"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

// This file measures the move of a partner to another cell while its callers write
// (-large). The other cell's database is one of the same server.

const (
	// movedUsers is how many users the partner has, and movedWrites how many of its writes
	// a second there are meanwhile.
	movedUsers  = 50_600
	movedWrites = 50
	// refusedBar is for how long writes may be refused at the end.
	refusedBar = 10 * time.Second
)

// moving is the move of a partner with its writes.
type moving struct {
	*bench
	refusedFrom atomic.Pointer[time.Time] // the first refusal
	refused     time.Duration             // from then to the end of the move
	written     atomic.Int64
}

func (b *bench) moves() []measure {
	m := &moving{bench: b}
	return []measure{{name: fmt.Sprintf("move of a partner of %d users at %d writes a second", movedUsers, movedWrites),
		bound: bound{}.asWork(), run: m.run, then: []measure{
			{name: "  its writes were refused for", bound: atMost(refusedBar.Seconds()),
				run: func(context.Context) figure { return took(m.refused) }},
		}}}
}

// open fills the database of the cell that the partner leaves, and makes that of the other.
func (m *moving) open(ctx context.Context) {
	m.bench = m.ofShape(ctx, "moving", seed.Size{Clients: movedUsers / 100, Users: movedUsers})
	m.data.exec(ctx, "DELETE FROM moves")
	m.data.exec(ctx, "DELETE FROM moved_keys")
	m.data.empty(ctx)
	check(m.data.db.EnsureSecrets(ctx))
	must(cells.Fix(ctx, m.data.db, domain.Cell{Count: 16}))
}

func (m *moving) run(ctx context.Context) figure {
	m.open(ctx)
	to := must(db.Open(m.data.emptyURL()))
	defer to.Close()
	check(to.EnsureSecrets(ctx))
	must(cells.Fix(ctx, to, domain.Cell{Number: 1, Count: 16}))

	s := &soaked{bench: m.bench, users: all[soakedUser](ctx, m.data, "SELECT client_id, id FROM users WHERE status = 'active'")}
	newUser := s.newUser()
	writing, stop := context.WithCancel(ctx)
	ended := make(chan int64, 1)
	go func() {
		ended <- m.atRate(writing, movedWrites, func(i int) []byte { return s.next(i, newUser) }, m.answered)
	}()
	began := time.Now()
	err := m.move(ctx, to)
	over := time.Now()
	stop()
	late := <-ended
	check(err)
	if from := m.refusedFrom.Load(); from != nil {
		m.refused = over.Sub(*from)
	}
	return took(over.Sub(began)).about(", %d written meanwhile, %d late", m.written.Load(), late).in(peakMB(os.Getpid()))
}

func (m *moving) move(ctx context.Context, to *db.DB) error {
	return (&move.Move{
		From: m.data.db, To: to, Partner: m.data.partner, Keep: time.Hour,
		Reseal:   func(_ db.SealedColumn, _ string, sealed []byte) ([]byte, error) { return sealed, nil },
		CopyFile: func(context.Context, domain.Report) error { return nil },
		Logf:     func(format string, args ...any) { fmt.Fprintf(m.progress, "  "+format+"\n", args...) },
	}).Run(ctx)
}

// answered notes when writes began to be refused.
func (m *moving) answered(_ time.Duration, err error) {
	switch {
	case err == nil:
		m.written.Add(1)
	case strings.Contains(err.Error(), "503"):
		now := time.Now()
		m.refusedFrom.CompareAndSwap(nil, &now)
	default:
		fmt.Fprintln(m.progress, "a write failed:", err)
	}
}
