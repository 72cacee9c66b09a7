package transfer

import (
	"context"
	"errors"
	"io"
	"reflect"

	"golang.org/x/sync/errgroup"

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
	lines   []staged
	records []T
	ids     map[[16]byte]bool
	bytes   int
	items   int
}

// fits reports whether another line may be added, of so many at the most.
func (b *batch[T]) fits(l *staged, id [16]byte, items, lines int) bool {
	return len(b.lines) == 0 || len(b.lines) < lines && !b.ids[id] &&
		b.bytes+len(l.text) <= batchBytes && b.items+items <= batchItems
}

// parts reports whether a batch had better end before a line: it is nearly full, and
// the line is of another user. Of two batches that hold lines of one user, the second
// would wait for the first to end.
func (b *batch[T]) parts(l *staged, lines int) bool {
	n := len(b.lines)
	return n > 0 && n >= lines-lines/10 && b.lines[n-1].place.user != l.place.user
}

func (b *batch[T]) add(l staged, record T, id [16]byte, items int) {
	if b.ids == nil {
		b.ids = make(map[[16]byte]bool, batchLines)
	}
	b.lines, b.records, b.ids[id] = append(b.lines, l), append(b.records, record), true
	b.bytes, b.items = b.bytes+len(l.text), b.items+items
}

// apply applies the lines that wait. Those that clash with another object's name wait
// for the others, and are tried again as long as that helps.
func (k *records[T]) apply(ctx context.Context, r *run) error {
	first := true
	for last := false; r.waiting[k] != nil; {
		p := &pass[T]{run: r, kind: k, aside: map[[16]byte]bool{}, last: last}
		lines, later := take(r.waiting, k), take(r.later, k)
		if err := p.stage(ctx, lines, first); err != nil {
			return errors.Join(err, later.close())
		}
		first = false
		if err := p.stage(ctx, later, false); err != nil {
			return err
		}
		last = p.applied == 0
	}
	return nil
}

// take takes the stage of a kind; nil where it has none.
func take(from map[kind]*stage, k kind) *stage {
	s := from[k]
	delete(from, k)
	return s
}

// stage applies the lines of a stage, by their places where each is of another object,
// and gives it up. A nil one has none.
func (p *pass[T]) stage(ctx context.Context, lines *stage, sort bool) error {
	if lines == nil {
		return nil
	}
	next, shut, workers := (func() (staged, error))(nil), lines.close, 1
	var err error
	if sort && p.kind.at != nil && lines.n > p.batchLines {
		next, shut, err = p.sorted(ctx, lines, p.kind.owned)
		if err != nil {
			return err
		}
		workers = max(p.kind.workers, 1)
	} else if next, err = lines.lines(); err != nil {
		return errors.Join(err, shut())
	}
	return errors.Join(p.all(ctx, next, workers), shut())
}

// pass is one walk over lines of a kind.
type pass[T any] struct {
	*run
	kind *records[T]
	// aside are the objects of which a line waits for another pass: their later lines
	// do too.
	aside   map[[16]byte]bool
	applied int
	last    bool // clashes are refused
}

// all applies lines in batches, so many of these at a time.
func (p *pass[T]) all(ctx context.Context, next func() (staged, error), workers int) error {
	group, ctx := errgroup.WithContext(ctx)
	batches := make(chan *batch[T], 1)
	group.Go(func() error {
		defer close(batches)
		return p.kind.gather(ctx, p.run, next, batches)
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
func (k *records[T]) gather(
	ctx context.Context, r *run, next func() (staged, error), batches chan<- *batch[T],
) error {
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
	for {
		l, err := next()
		if err == io.EOF {
			return send()
		}
		if err != nil {
			return err
		}
		record, err := k.read(l.text, r.db.Now())
		if err != nil { // it was read before
			return err
		}
		value := reflect.ValueOf(&record).Elem()
		id, items := k.planned.idOf(value), k.planned.items(value)
		most := r.batchLines * max(k.times, 1)
		if !b.fits(&l, id, items, most) || b.parts(&l, most) {
			if err := send(); err != nil {
				return err
			}
		}
		b.add(l, record, id, items)
	}
}

// write applies a batch, and counts and tells what became of its lines.
func (p *pass[T]) write(ctx context.Context, b *batch[T]) error {
	p.mu.Lock()
	lines, list, err := p.notAside(b)
	p.mu.Unlock()
	if err != nil {
		return err
	}
	results, err := p.kind.write(p.db, ctx, list)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, result := range results {
		if err := p.settle(lines[i], &list[i], result); err != nil {
			return err
		}
	}
	if p.watcher.Applied != nil {
		p.watcher.Applied(p.done, p.total)
	}
	return nil
}

// notAside are the lines of a batch that need not wait for another pass.
func (p *pass[T]) notAside(b *batch[T]) (lines []staged, list []T, err error) {
	for i := range b.lines {
		if p.aside[p.idOf(&b.records[i])] {
			if err := p.wait(p.kind, b.lines[i]); err != nil {
				return nil, nil, err
			}
			continue
		}
		lines, list = append(lines, b.lines[i]), append(list, b.records[i])
	}
	return lines, list, nil
}

// settle does with a line what became of it.
func (p *pass[T]) settle(l staged, record *T, result domain.ImportResult) error {
	switch {
	case result.Clashes && !p.last:
		p.aside[p.idOf(record)] = true
		return p.wait(p.kind, l)
	case result.Outcome == domain.ImportRefused:
	case p.kind.then != nil && p.kind.wants(record):
		p.applied++
		return p.wait(p.kind.then, staged{number: l.number, outcome: result.Outcome, text: l.text})
	case l.outcome != domain.ImportRefused && result.Outcome == domain.ImportUnchanged:
		result.Outcome = l.outcome // of an earlier part of the line
	case l.outcome == domain.ImportCreated:
		result.Outcome = l.outcome
	}
	if result.Outcome != domain.ImportRefused {
		p.applied++
	}
	p.done++
	p.count(l.number, result)
	return nil
}

func (p *pass[T]) idOf(record *T) [16]byte {
	return p.kind.planned.idOf(reflect.ValueOf(record).Elem())
}
