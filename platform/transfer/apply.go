package transfer

import (
	"context"
	"reflect"

	"golang.org/x/sync/errgroup"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// batchLines, batchBytes and batchItems bound what is applied in one transaction,
	// and with it what is held in memory: lines, bytes of them, and the items of their
	// lists, as of members. A line that is beyond by itself is a batch.
	batchLines = 1000
	batchBytes = 4 << 20
	batchItems = 5000
)

// batch is lines of different objects.
type batch[T any] struct {
	lines   []db.StagedLine
	records []T
	ids     map[[16]byte]bool
	bytes   int
	items   int
}

// fits reports whether another line may be added, up to the given number.
func (b *batch[T]) fits(l *db.StagedLine, id [16]byte, items, lines int) bool {
	return len(b.lines) == 0 || len(b.lines) < lines && !b.ids[id] &&
		b.bytes+len(l.Text) <= batchBytes && b.items+items <= batchItems
}

// parts reports whether a batch had better end before a line: it is nearly full, and
// the line is of another user. Of two batches that hold lines of one user, the second
// would wait for the first to end.
func (b *batch[T]) parts(l *db.StagedLine, lines int) bool {
	n := len(b.lines)
	if n == 0 || n < lines-lines/10 || l.UserID == nil {
		return false
	}
	last := b.lines[n-1].UserID
	return last == nil || *last != *l.UserID
}

func (b *batch[T]) add(l db.StagedLine, record T, id [16]byte, items int) {
	if b.ids == nil {
		b.ids = make(map[[16]byte]bool, batchLines)
	}
	b.lines, b.records, b.ids[id] = append(b.lines, l), append(b.records, record), true
	b.bytes, b.items = b.bytes+len(l.Text), b.items+items
}

// apply applies the lines that are staged, in rounds. Those that clash with another
// object's name wait for the next one, and are tried again as long as that helps.
func (k *records[T]) apply(ctx context.Context, r *run) error {
	last := false
	for round := 0; ; round++ {
		p := &pass[T]{run: r, kind: k, round: round, last: last, waiting: map[[16]byte]bool{}}
		if err := p.all(ctx); err != nil || p.lines == 0 {
			return err
		}
		last = round > 0 && p.applied == 0
	}
}

// pass is one walk over lines of a kind: a round.
type pass[T any] struct {
	*run
	kind  *records[T]
	round int
	last  bool // clashes are refused
	lines int

	// waiting are the objects of which a line waits for another round: their later lines
	// do too. staged are lines that are to be staged.
	waiting map[[16]byte]bool
	staged  []db.StagedLine
	applied int
}

// all applies the lines in batches. Those of the first round are of an object each, and
// several batches are applied at a time.
func (p *pass[T]) all(ctx context.Context) error {
	workers := 1
	if p.round == 0 && !p.dry { // which is one transaction
		workers = max(p.kind.workers, 1)
	}
	group, reading := errgroup.WithContext(p.outside)
	batches := make(chan *batch[T], 1)
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

// gather makes batches of lines to the end of them.
func (p *pass[T]) gather(ctx context.Context, batches chan<- *batch[T]) error {
	most := p.batchLines * max(p.kind.times, 1)
	b := &batch[T]{}
	send := func() error {
		select {
		case batches <- b:
			b = &batch[T]{}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	err := p.db.EachStaged(ctx, p.kind.place(), p.round, func(l db.StagedLine) error {
		p.lines++
		record, err := p.kind.read([]byte(l.Text), p.db.Now())
		if err != nil { // it was read before
			return err
		}
		id, items := p.kind.idOf(&record), p.kind.planned.items(reflect.ValueOf(&record).Elem())
		if !b.fits(&l, id, items, most) || b.parts(&l, most) {
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
func (p *pass[T]) write(ctx context.Context, b *batch[T]) error {
	p.mu.Lock()
	lines, list := p.ready(b)
	p.mu.Unlock()
	results, err := p.kind.write(p.db, ctx, list)
	if err != nil {
		return err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	for i, result := range results {
		p.recordResult(lines[i], &list[i], result)
	}
	if err := p.db.StageLines(p.outside, p.staged); err != nil {
		return err
	}
	p.staged = p.staged[:0]
	if p.watcher.Applied != nil {
		p.watcher.Applied(p.done, p.total)
	}
	return nil
}

// ready are the lines of a batch that need not wait for another round.
func (p *pass[T]) ready(b *batch[T]) (lines []db.StagedLine, list []T) {
	for i, l := range b.lines {
		if p.waiting[p.kind.idOf(&b.records[i])] {
			p.wait(l, p.kind, p.round+1)
			continue
		}
		lines, list = append(lines, l), append(list, b.records[i])
	}
	return lines, list
}

// wait has a line wait for a round of a kind.
func (p *pass[T]) wait(l db.StagedLine, k *records[T], round int) {
	p.staged = append(p.staged, db.StagedLine{
		Kind: k.place(), Round: round, Line: l.Line, Outcome: l.Outcome, Text: l.Text,
	})
}

// recordResult counts a line with its result, or has it wait for another round.
func (p *pass[T]) recordResult(l db.StagedLine, record *T, result domain.ImportResult) {
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
