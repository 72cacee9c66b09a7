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
	records []any             // of the lines
	ids     map[[16]byte]bool // of the lines' objects
	bytes   int               // of the lines
	items   int               // in the lists of the records
}

// ends reports whether the batch ends before the line l, whose object has the id. It ends if l would exceed maxLines or
// another bound, or if it has a line of the same object. From nine tenths of maxLines on it also ends if l is of
// another user than the last line: of two batches with lines of one user, the second would wait for the first. An empty
// batch does not end.
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

// apply applies the staged lines of a kind in rounds, until a round has no lines. A line that conflicts with another
// object's name waits for the next round, which may find the name free. If a round after the first applies no line, the
// next round refuses the lines that conflict.
func (k *kind) apply(ctx context.Context, r *run) error {
	refuseClashes := false
	for round := 0; ; round++ {
		p := &pass{run: r, kind: k, round: round, refuseClashes: refuseClashes, waiting: map[[16]byte]bool{}}
		if err := p.applyBatches(ctx); err != nil || p.lines == 0 {
			return err
		}
		refuseClashes = round > 0 && p.applied == 0 // after round 0, later lines of its objects may still free names
	}
}

// pass applies the lines of one round of a kind.
type pass struct {
	*run
	kind          *kind
	round         int
	refuseClashes bool // a line that conflicts is refused, and does not wait for another round
	lines         int  // of the round

	// waiting holds the objects with a line that waits for the next round: their later lines wait too. staged holds the
	// lines to be staged: for the next round, or for kind.then.
	waiting map[[16]byte]bool
	staged  []records.StagedLine
	applied int // lines
}

// applyBatches applies the round's lines in batches, one at a time, or kind.workers in the first round, which has one
// line of each object (records.StageRepeated). It writes with ctx, in the transaction of a dry run, but reads outside.
func (p *pass) applyBatches(ctx context.Context) error {
	workers := 1
	if p.round == 0 && !p.dry { // a dry run is one transaction, so it has one worker
		workers = p.kind.workers
	}
	group, readCtx := errgroup.WithContext(p.outerCtx) // a failed write ends the reading
	batches := make(chan *batch, 1)
	group.Go(func() error {
		defer close(batches)
		return p.gather(readCtx, batches)
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

// gather reads the round's lines, counts them, and sends them in batches.
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

	err := records.EachStaged(ctx, p.db, p.kind.index(), p.round, func(l records.StagedLine) error {
		p.lines++
		record, err := p.kind.readChecked([]byte(l.Text))
		if err != nil {
			return err
		}
		id, items := idOf(record), countItems(record)
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

// write applies a batch in one transaction, counts the results of its lines, and stages those to be applied later.
func (p *pass) write(ctx context.Context, b *batch) error {
	p.mu.Lock()
	lines, list := p.takeReady(b)
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
	if err := records.StageLines(p.outerCtx, p.db, p.staged); err != nil { // not in a dry run's transaction
		return err
	}
	p.staged = p.staged[:0]
	if p.watcher.Applied != nil {
		p.watcher.Applied(p.done, p.total)
	}
	return nil
}

// takeReady returns the lines of a batch and their records, without the lines of objects in waiting. These it stages
// for the next round.
func (p *pass) takeReady(b *batch) (lines []records.StagedLine, list []any) {
	for i, l := range b.lines {
		if p.waiting[idOf(b.records[i])] {
			p.stage(l, p.kind, p.round+1)
			continue
		}
		lines, list = append(lines, l), append(list, b.records[i])
	}
	return lines, list
}

// stage adds a line to staged, for a round of a kind. It leaves out client and user: the order is the input's.
func (p *pass) stage(l records.StagedLine, k *kind, round int) {
	p.staged = append(p.staged, records.StagedLine{
		Kind: k.index(), Round: round, Line: l.Line, Outcome: l.Outcome, Text: l.Text,
	})
}

// recordResult counts the result of a line, or stages the line to be counted later: for the next round if it conflicts,
// unless the pass refuses conflicts; for kind.then if it has a second part, unless the first was refused. A line of two
// parts counts as refused, created or updated: the first of these that one of them is.
func (p *pass) recordResult(l records.StagedLine, record any, result domain.ImportResult) {
	first := domain.ImportOutcome(l.Outcome) // of the first part, if this is the second; otherwise zero
	switch {
	case result.Clashes && !p.refuseClashes:
		p.waiting[idOf(record)] = true
		p.stage(l, p.kind, p.round+1)
		return
	case result.Outcome == domain.ImportRefused: // counted as such; a second part is not applied
	case p.kind.then != nil && p.kind.hasSecondPart(record):
		p.applied++
		l.Outcome = int(result.Outcome)
		p.stage(l, p.kind.then, 0)
		return
	case first == domain.ImportCreated, first == domain.ImportUpdated && result.Outcome == domain.ImportUnchanged:
		result.Outcome = first
	}
	if result.Outcome != domain.ImportRefused {
		p.applied++
	}
	p.done++
	p.count(l.Line, result)
}
