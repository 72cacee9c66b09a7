package transfer

import (
	"context"

	"golang.org/x/sync/errgroup"

	"partnerapi/db/records"
	"partnerapi/domain"
)

const (
	// batchLines, batchBytes and batchItems bound a transaction, and with it the memory
	// used: the lines, their bytes, and the items of their lists, such as members. A line
	// that exceeds a bound by itself is a batch.
	batchLines = 1000
	batchBytes = 4 << 20
	batchItems = 5000
)

// batch is lines of different objects.
type batch struct {
	lines   []records.StagedLine
	records []any
	ids     map[[16]byte]bool
	bytes   int
	items   int
}

// ends reports whether the batch ends before the line l: the batch would exceed most lines
// or another bound, has a line of the same object, or is nearly full and l is of another
// user. Of two batches with lines of one user, the second would wait for the first to end.
func (b *batch) ends(l *records.StagedLine, id [16]byte, items, most int) bool {
	n := len(b.lines)
	if n == 0 {
		return false
	}
	if n >= most || b.ids[id] || b.bytes+len(l.Text) > batchBytes || b.items+items > batchItems {
		return true
	}
	last := b.lines[n-1].UserID
	return n >= most-most/10 && l.UserID != nil && (last == nil || *last != *l.UserID)
}

func (b *batch) add(l records.StagedLine, record any, id [16]byte, items int) {
	b.lines, b.records, b.ids[id] = append(b.lines, l), append(b.records, record), true
	b.bytes, b.items = b.bytes+len(l.Text), b.items+items
}

// apply applies the staged lines in rounds. A line that clashes with another object's name
// waits for the next round. If a round after the first applies none, the next refuses clashes.
func (k *kind) apply(ctx context.Context, r *run) error {
	last := false
	for round := 0; ; round++ {
		p := &pass{run: r, kind: k, round: round, last: last, waiting: map[[16]byte]bool{}}
		if err := p.all(ctx); err != nil || p.lines == 0 {
			return err
		}
		last = round > 0 && p.applied == 0
	}
}

// pass is one walk over lines of a kind: a round.
type pass struct {
	*run
	kind  *kind
	round int
	last  bool // clashes are refused
	lines int

	// waiting holds the objects with a line that waits for another round: their later
	// lines wait too. staged holds the lines to stage.
	waiting map[[16]byte]bool
	staged  []records.StagedLine
	applied int
}

// all applies the lines in batches. In the first round each line is of another object, so
// that several batches can be applied at a time.
func (p *pass) all(ctx context.Context) error {
	workers := 1
	if p.round == 0 && !p.dry { // which is one transaction
		workers = p.kind.workers
	}
	group, reading := errgroup.WithContext(p.outside)
	batches := make(chan *batch, 1)
	group.Go(func() error {
		defer close(batches)
		return p.gather(reading, batches)
	})
	for range workers {
		group.Go(func() error {
			for b := range batches {
				if err := p.write(ctx, b); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// gather reads the round's lines, and sends them in batches.
func (p *pass) gather(ctx context.Context, batches chan<- *batch) error {
	most := p.batchLines * p.kind.times
	b := &batch{ids: map[[16]byte]bool{}}
	send := func() error {
		select {
		case batches <- b:
			b = &batch{ids: map[[16]byte]bool{}}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	err := records.EachStaged(ctx, p.db, p.kind.place(), p.round, func(l records.StagedLine) error {
		p.lines++
		record, err := p.kind.readAgain([]byte(l.Text))
		if err != nil {
			return err
		}
		id, items := p.kind.idOf(record), p.kind.items(record)
		if b.ends(&l, id, items, most) {
			if err := send(); err != nil {
				return err
			}
		}
		b.add(l, record, id, items)
		return nil
	})
	if err != nil || len(b.lines) == 0 {
		return err
	}
	return send()
}

// write applies a batch, and counts and reports what became of its lines.
func (p *pass) write(ctx context.Context, b *batch) error {
	p.mu.Lock()
	lines, list := p.ready(b)
	p.mu.Unlock()
	results, err := p.kind.Import(ctx, p.db, list)
	if err != nil {
		return err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	for i, result := range results {
		p.recordResult(lines[i], list[i], result)
	}
	if err := records.StageLines(p.outside, p.db, p.staged); err != nil {
		return err
	}
	p.staged = p.staged[:0]
	if p.watcher.Applied != nil {
		p.watcher.Applied(p.done, p.total)
	}
	return nil
}

// ready are the lines of a batch that need not wait for another round.
func (p *pass) ready(b *batch) (lines []records.StagedLine, list []any) {
	for i, l := range b.lines {
		if p.waiting[p.kind.idOf(b.records[i])] {
			p.wait(l, p.kind, p.round+1)
			continue
		}
		lines, list = append(lines, l), append(list, b.records[i])
	}
	return lines, list
}

// wait marks a line to be staged for a round of a kind.
func (p *pass) wait(l records.StagedLine, k *kind, round int) {
	p.staged = append(p.staged, records.StagedLine{
		Kind: k.place(), Round: round, Line: l.Line, Outcome: l.Outcome, Text: l.Text,
	})
}

// recordResult counts a line's result, or marks the line to be staged again.
func (p *pass) recordResult(l records.StagedLine, record any, result domain.ImportResult) {
	before := domain.ImportOutcome(l.Outcome) // of an earlier part of the line
	switch {
	case result.Clashes && !p.last:
		p.waiting[p.kind.idOf(record)] = true
		p.wait(l, p.kind, p.round+1)
		return
	case result.Outcome == domain.ImportRefused:
	case p.kind.then != nil && p.kind.wants(record):
		p.applied++
		l.Outcome = int(result.Outcome)
		p.wait(l, p.kind.then, 0)
		return
	case before == domain.ImportCreated, before == domain.ImportUpdated && result.Outcome == domain.ImportUnchanged:
		result.Outcome = before
	}
	if result.Outcome != domain.ImportRefused {
		p.applied++
	}
	p.done++
	p.count(l.Line, result)
}
