package parity

import (
	"context"
	"maps"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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

// compareList compares all of a list, or a sample of its rows, and returns the rows that
// both sides have.
func (r *run) compareList(ctx context.Context, l *list) (pairs [][2]row, err error) {
	if l.Refusal == nil && l.Next == "" && r.old == nil {
		return nil, r.unfollowed(ctx, l)
	}
	for range tries {
		c := &comparison{run: r, list: l}
		if !l.exact {
			c.sample = r.Sample
		}
		d, err := c.begin(ctx)
		if err != nil {
			return d.pairs, err
		}
		open := d.differing()
		refused := d.refused && len(open) > 0
		counted, err := c.settle(ctx, open)
		if err != nil || !refused || counted {
			return d.pairs, err
		}
	}
	return nil, nil
}

// unfollowed makes a request that no request of v2 follows: v2 has the mails of a user, not
// those of an address.
func (r *run) unfollowed(ctx context.Context, l *list) error {
	a, err := r.service.do(ctx, l.v1)
	if err != nil {
		return err
	}
	if a.status == l.Status {
		r.answered.Store(true)
	}
	r.report.count(l.operation(), verdict{explained: 1}, a)
	return nil
}

// begin reads both sides for the first time, and counts what is equal. From then on all
// rows are compared: which ones are in a sample may change.
func (c *comparison) begin(ctx context.Context) (d diff, err error) {
	v1, other, err := c.both(ctx, true)
	if err != nil {
		return d, err
	}
	if v1.ok {
		c.run.answered.Store(true)
	}
	if c.run.old != nil {
		c.run.compareHeaders(c.list.operation(), v1.of, other.of)
	}
	d = c.diff(v1, other)
	for _, f := range d.found {
		if !f.differs() {
			c.run.report.count(c.list.operation(), f.verdict)
		}
	}
	c.sample = 0
	return d, nil
}

// differing are the suspects of which there is a difference.
func (d diff) differing() map[suspect]finding {
	open := maps.Clone(d.found)
	maps.DeleteFunc(open, func(_ suspect, f finding) bool { return !f.differs() })
	return open
}

func (c *comparison) both(ctx context.Context, count bool) (v1, other reading, err error) {
	if v1, err = c.first(ctx, count); err == nil {
		other, err = c.second(ctx, count)
	}
	return v1, other, err
}

// settle reads a list again until each suspect is equal, gone, or different in a way
// that stays. What changes each time is a difference too. counted says that there was one.
func (c *comparison) settle(ctx context.Context, open map[suspect]finding) (counted bool, err error) {
	agreed := map[suspect]int{}
	for round := 0; round < rounds && len(open) > 0; round++ {
		if round > 0 {
			if err := c.run.Wait(ctx, firstPause<<(round-1)); err != nil {
				return counted, err
			}
		}
		v1, other, err := c.both(ctx, false)
		if err != nil {
			return counted, err
		}
		again, err := c.first(ctx, false)
		if err != nil {
			return counted, err
		}
		before, after := c.diff(v1, other), c.diff(again, other)
		if f := after.found[suspect{kind: byStatus}]; f.differs() && before.refused {
			open[suspect{kind: byStatus}] = f
		}
		for s, was := range open {
			now, differs := c.judge(s, before, after)
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
				c.count(ctx, s, now, false)
				delete(open, s)
			}
		}
	}
	for s, f := range open {
		counted = true
		c.count(ctx, s, f, true)
	}
	return counted, nil
}

// judge takes what v1 says of a suspect before and after v2 was read: it differs where it
// does both times. What is equal is counted.
func (c *comparison) judge(s suspect, before, after diff) (now finding, differs bool) {
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
	c.run.report.count(c.list.operation(), equal)
	return now, false
}

// count counts a difference, with the object that it is of.
func (c *comparison) count(ctx context.Context, s suspect, f finding, unsettled bool) {
	a := about{unsettled: unsettled, of: f.of[:]}
	a.object, a.row = c.list.named(s)
	if a.object.V1 != "" {
		if pairs, err := c.run.exchange(ctx, a.object.Kind, []jsontext.Value{idValue(a.object.V1)}); err == nil && len(pairs) > 0 {
			a.object.V2 = pairs[0].V2
		}
	}
	c.run.report.add(c.list.operation(), verdict{faults: f.faults}, a)
}
