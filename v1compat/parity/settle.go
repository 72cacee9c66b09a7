package parity

import (
	"context"
	"time"
)

const (
	// tries is how often a list is begun that could not be read at first, and then could.
	tries = 3
	// rounds is how often suspects are read again at the most, and agreeing how often in
	// a row both sides have to say the same for a difference to count.
	rounds, agreeing = 8, 3
	// firstPause is the pause before the second reading; each is twice the one before.
	firstPause = 100 * time.Millisecond
)

// compare compares all of a list, or a sample of its rows, and returns the rows that both
// sides have.
func (l *list) compare(ctx context.Context) (pairs [][2]row, err error) {
	if l.Refusal == nil && l.Next == "" && l.run.old == nil {
		return nil, l.unfollowed(ctx)
	}
	for range tries {
		if !l.exact {
			l.sample = l.run.Sample
		}
		d, open, err := l.begin(ctx)
		if err != nil {
			return nil, err
		}
		counted, err := l.settle(ctx, open)
		if err != nil || !d.refused || len(d.differing()) == 0 || counted {
			return d.pairs, err
		}
	}
	return nil, nil
}

// unfollowed makes a request that no request of v2 follows: v2 has the mails of a user, not
// those of an address.
func (l *list) unfollowed(ctx context.Context) error {
	a, err := l.run.service.do(ctx, l.v1)
	if err != nil {
		return err
	}
	if a.status == l.Status {
		l.run.answered.Store(true)
	}
	l.run.report.count(l.operation(), verdict{explained: 1}, a)
	return nil
}

// begin reads both sides for the first time, counts what is equal, and returns what is
// not. From then on all rows are compared: which ones are in a sample may change.
func (l *list) begin(ctx context.Context) (d diff, open map[suspect]finding, err error) {
	v1, other, err := l.both(ctx, true)
	if err != nil {
		return d, nil, err
	}
	if v1.ok {
		l.run.answered.Store(true)
	}
	if l.run.old != nil {
		l.run.compareHeaders(l.operation(), v1.of, other.of)
	}
	d = l.diff(v1, other)
	l.sample = 0
	open = d.differing()
	for s, f := range d.found {
		if _, differs := open[s]; !differs {
			l.run.report.count(l.operation(), f.verdict)
		}
	}
	return d, open, nil
}

// settle reads a list again until each suspect is equal, gone, or different in a way
// that stays. What changes each time is a difference too. counted says that there was one.
func (l *list) settle(ctx context.Context, open map[suspect]finding) (counted bool, err error) {
	agreed := map[suspect]int{}
	for round := 0; round < rounds && len(open) > 0; round++ {
		if round > 0 {
			if err := l.run.Wait(ctx, firstPause<<(round-1)); err != nil {
				return counted, err
			}
		}
		v1, other, err := l.both(ctx, false)
		if err != nil {
			return counted, err
		}
		again, err := l.first(ctx, false)
		if err != nil {
			return counted, err
		}
		before, after := l.diff(v1, other), l.diff(again, other)
		if f := after.found[suspect{kind: byStatus}]; f.differs() && before.refused {
			open[suspect{kind: byStatus}] = f
		}
		for s, was := range open {
			now, differs := l.judge(s, before, after)
			if !differs {
				delete(open, s)
				continue
			}
			if !now.says(was) {
				agreed[s] = 0
			}
			if now.says(before.found[s]) {
				agreed[s]++
			}
			if open[s] = now; agreed[s] == agreeing {
				counted = true
				l.count(ctx, s, now, false)
				delete(open, s)
			}
		}
	}
	for s, f := range open {
		counted = true
		l.count(ctx, s, f, true)
	}
	return counted, nil
}

// judge takes what v1 says of a suspect before and after v2 was read: it differs where it
// does both times. What is equal is counted.
func (l *list) judge(s suspect, before, after diff) (now finding, differs bool) {
	now = after.found[s]
	differs = now.differs() && before.found[s].differs()
	if s.kind == byTotal && before.total != after.total &&
		before.rows >= min(before.total, after.total) && before.rows <= max(before.total, after.total) {
		differs = false // v2 has a number of rows that v1 had meanwhile
	}
	if differs {
		return now, true
	}
	equal := verdict{equal: 1}
	if s.kind == byRow { // which is gone, where both are empty
		equal = now.verdict
		if now.differs() {
			equal = before.found[s].verdict
		}
	}
	l.run.report.count(l.operation(), equal)
	return now, false
}

// count counts a difference, with the object that it is of, or the element of that.
func (l *list) count(ctx context.Context, s suspect, f finding, unsettled bool) {
	of, row := l.named(s)
	ids := map[Object]string{}
	for _, differs := range f.faults {
		a := about{object: of, row: row, unsettled: unsettled, of: f.of[:]}
		if id := f.within[differs.field]; id != "" && l.element != "" {
			a.object = Object{Kind: l.element, V1: id}
		}
		if _, asked := ids[a.object]; !asked {
			ids[a.object] = l.run.otherID(ctx, a.object)
		}
		a.object.V2 = ids[a.object]
		l.run.report.add(l.operation(), verdict{faults: []fault{differs}}, a)
	}
}
