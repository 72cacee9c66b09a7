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

// compareList compares all of a list, or a sample of its rows, and returns the rows that
// both sides have.
func (r *run) compareList(ctx context.Context, l *list) ([][2]row, error) {
	for try := 1; ; try++ {
		c := &comparison{run: r, list: l}
		if l.List && l.arrange == nil && l.exact == nil {
			c.sample = r.Sample
		}
		d, err := c.begin(ctx)
		if err != nil {
			return d.pairs, err
		}
		answered, err := c.settle(ctx, d.found)
		if err != nil || !answered || !d.refused || try == tries {
			return d.pairs, err
		}
	}
}

// begin reads both sides for the first time, and counts what is equal.
func (c *comparison) begin(ctx context.Context) (d diff, err error) {
	v1, err := c.first(ctx, true)
	if err != nil {
		return d, err
	}
	if v1.ok {
		c.run.answered.Store(true)
	}
	other, err := c.second(ctx, true)
	if err != nil {
		return d, err
	}
	if c.run.old != nil {
		c.run.compareHeaders(c.list.operation(), v1.of, other.of)
	}
	if d = c.diff(v1, other); d.moved { // which row is missing, or is one too many, only the whole list shows
		c.sample = 0
		if v1, err = c.first(ctx, false); err != nil {
			return d, err
		}
		if other, err = c.second(ctx, false); err != nil {
			return d, err
		}
		d = c.diff(v1, other)
	}
	for _, v := range d.same {
		c.run.report.count(c.list.operation(), v)
	}
	return d, nil
}

// settle reads a list again until each suspect is equal, gone, or different in a way
// that stays. What changes each time is a difference too. answered says that no side
// refused the list the last time.
func (c *comparison) settle(ctx context.Context, open map[suspect]finding) (answered bool, err error) {
	agreed := map[suspect]int{}
	pause := firstPause
	for round := 1; round <= rounds && len(open) > 0; round++ {
		if round > 1 {
			if err := c.run.Wait(ctx, pause); err != nil {
				return answered, err
			}
			pause *= 2
		}
		before, after, err := c.around(ctx, open)
		if err != nil {
			return answered, err
		}
		answered = !before.refused && !after.refused
		for s, was := range open {
			now, differs := c.judge(s, was, before, after)
			if !differs {
				delete(open, s)
				continue
			}
			if now.said != was.said {
				agreed[s] = 0
			}
			if open[s] = now; now.said != "" {
				agreed[s]++
			}
			if agreed[s] == agreeing {
				c.count(ctx, s, now, false)
				delete(open, s)
			}
		}
	}
	for s, f := range open {
		c.count(ctx, s, f, true)
	}
	return answered, nil
}

// around compares v1 before and after v2 was read with it. Where a sample does not show
// the suspects any more, all is read.
func (c *comparison) around(ctx context.Context, open map[suspect]finding) (before, after diff, err error) {
	for {
		first, err := c.first(ctx, false)
		if err != nil {
			return before, after, err
		}
		other, err := c.second(ctx, false)
		if err != nil {
			return before, after, err
		}
		again, err := c.first(ctx, false)
		if err != nil {
			return before, after, err
		}
		before, after = c.diff(first, other), c.diff(again, other)
		if c.sample == 0 || !before.lacks(open) && !after.lacks(open) {
			return before, after, nil
		}
		c.sample = 0
	}
}

// lacks reports whether a sample does not show a suspect that is to be settled.
func (d diff) lacks(open map[suspect]finding) bool {
	for s := range open {
		_, differs := d.found[s]
		_, same := d.same[s.row]
		if !differs && !same && !d.refused {
			return true
		}
	}
	return d.moved
}

// judge takes what two comparisons say of a suspect; differs is false where it is settled
// without a difference. A finding that did not stay says nothing.
func (c *comparison) judge(s suspect, was finding, before, after diff) (now finding, differs bool) {
	if s.kind != byStatus && (before.refused || after.refused) {
		was.said = ""
		return was, len(before.found) > 0 && len(after.found) > 0
	}
	first, differed := before.found[s]
	now, differs = after.found[s]
	if s.kind == byTotal && before.total != after.total && (before.total <= before.rows) == (after.total >= after.rows) {
		differs = false // v2 has a number of rows that v1 had meanwhile
	}
	if differed && differs {
		if first.said != now.said {
			now.said = ""
		}
		return now, true
	}

	v, shown := after.same[s.row]
	if differs {
		v, shown = before.same[s.row]
	}
	if s.kind != byRow {
		v, shown = verdict{equal: 1}, true
	}
	if shown {
		c.run.report.count(c.list.operation(), v)
	}
	return now, false
}

// count counts a difference, with the object that it is of.
func (c *comparison) count(ctx context.Context, s suspect, f finding, unsettled bool) {
	a := about{unsettled: unsettled, of: f.of[:]}
	a.object, a.row = c.list.named(s)
	if a.object.V1 != "" && a.object.V2 == "" {
		if o, err := c.run.inBoth(ctx, a.object.Kind, a.object.V1); err == nil && o.v2 != o.v1 {
			a.object.V2 = o.v2
		}
	}
	c.run.report.add(c.list.operation(), verdict{faults: f.faults}, a)
}
