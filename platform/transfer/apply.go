package transfer

import (
	"context"

	"golang.org/x/sync/errgroup"

	"partnerapi/db/records"
	"partnerapi/domain"
)

const (
	// batchLines, batchBytes and batchItems bound a transaction, and so the memory in use: the lines, their bytes, and
	// the items of their lists, such as members. A line that alone exceeds a bound is a batch.
	batchLines = 1000
	batchBytes = 4 << 20
	batchItems = 5000
)

// batch is a list of lines of different objects, which one transaction applies.
type batch struct {
	lines   []records.StagedLine
	records []any // of the lines
	ids     map[[16]byte]bool
	bytes   int
	items   int
}

// ends reports whether the batch ends before the line l, whose object has the id: with l,
// the batch would exceed maxLines or another bound, or it has a line of the same object, or
// nine tenths of maxLines and l is of another user than its last line. (Of two batches with
// lines of one user, the second would wait for the first.) An empty batch does not end.
func (b *batch) ends(l *records.StagedLine, id [16]byte, items, maxLines int) bool {
	n := len(b.lines)
	if n == 0 {
		return false
	}
	if n >= maxLines || b.ids[id] || b.bytes+len(l.Text) > batchBytes || b.items+items > batchItems {
		return true
	}
	last := b.lines[n-1].UserID
	return n >= maxLines-maxLines/10 && l.UserID != nil && (last == nil || *last != *l.UserID)
}

// add adds a line with its record, the id of its object and the number of its lists' items.
func (b *batch) add(l records.StagedLine, record any, id [16]byte, items int) {
	b.lines, b.records, b.ids[id] = append(b.lines, l), append(b.records, record), true
	b.bytes, b.items = b.bytes+len(l.Text), b.items+items
}

// apply applies the staged lines in rounds, until a round has no lines. A line that clashes with another object's name
// waits for the next round. If a round after the first applies no line, the next round refuses clashes.
func (k *kind) apply(ctx context.Context, r *run) error {
	refuseClashes := false
	for round := 0; ; round++ {
		p := &pass{run: r, kind: k, round: round, refuseClashes: refuseClashes, waiting: map[[16]byte]bool{}}
		if err := p.all(ctx); err != nil || p.lines == 0 {
			return err
		}
		refuseClashes = round > 0 && p.applied == 0
	}
}

// pass applies the lines of one round of a kind.
type pass struct {
	*run
	kind          *kind
	round         int
	refuseClashes bool
	lines         int // of the round

	// waiting holds the objects with a line that waits for the next round: their later
	// lines wait too. staged holds lines to stage: for the next round, or for kind.then.
	waiting map[[16]byte]bool
	staged  []records.StagedLine
	applied int // lines
}

// all applies the lines in batches. In the first round each line is of another object, so
// that several batches can be applied at a time.
func (p *pass) all(ctx context.Context) error {
	workers := 1
	if p.round == 0 && !p.dry { // a dry run is one transaction, so it has one worker
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
	maxLines := p.batchLines * p.kind.times
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
		record, err := p.kind.readChecked([]byte(l.Text))
		if err != nil {
			return err
		}
		id, items := p.kind.idOf(record), p.kind.items(record)
		if b.ends(&l, id, items, maxLines) {
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

// write applies a batch, counts and reports the results of its lines, and stages the lines that wait.
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

// ready returns the lines of a batch and their records, without lines of objects in waiting: these wait for the next
// round.
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

// wait adds a line to staged, for a round of a kind.
func (p *pass) wait(l records.StagedLine, k *kind, round int) {
	p.staged = append(p.staged, records.StagedLine{
		Kind: k.place(), Round: round, Line: l.Line, Outcome: l.Outcome, Text: l.Text,
	})
}

// recordResult counts the result of a line, or of its two parts together. A line that clashes waits for the next round,
// unless the pass refuses clashes. A line with a part for kind.then waits for that kind, with the outcome so far.
func (p *pass) recordResult(l records.StagedLine, record any, result domain.ImportResult) {
	earlier := domain.ImportOutcome(l.Outcome) // of the line's first part
	switch {
	case result.Clashes && !p.refuseClashes:
		p.waiting[p.kind.idOf(record)] = true
		p.wait(l, p.kind, p.round+1)
		return
	case result.Outcome == domain.ImportRefused: // no second part
	case p.kind.then != nil && p.kind.wants(record):
		p.applied++
		l.Outcome = int(result.Outcome)
		p.wait(l, p.kind.then, 0)
		return
	case earlier == domain.ImportCreated, earlier == domain.ImportUpdated && result.Outcome == domain.ImportUnchanged:
		result.Outcome = earlier
	}
	if result.Outcome != domain.ImportRefused {
		p.applied++
	}
	p.done++
	p.count(l.Line, result)
}
