package parity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// rounds is how often suspects are read again at the most, and agreeing how often in
	// a row both sides have to say the same for a difference to count.
	rounds, agreeing = 8, 3
	// firstPause is the pause before the second reading; each is twice the one before.
	firstPause = 100 * time.Millisecond
	// chunk is how many suspects are read again at a time.
	chunk = 500
)

// view is what one reading of a side showed of the rows that are wanted.
type view struct {
	of       answer
	ok       bool // its status is that of success
	rows     map[string]row
	times    map[string]int
	count    int
	total    int
	disorder []fault
}

// look reads the pages of a side, or all of it where marks is nil.
func (p *pairing) look(ctx context.Context, i int, marks []string, wanted map[string]bool) (view, error) {
	v := view{rows: map[string]row{}, times: map[string]int{}, ok: true, total: -1}
	whole, next, previous := marks == nil, "", ""
	if whole {
		marks = []string{""}
	}
	for len(marks) > 0 {
		next, marks = marks[0], marks[1:]
		got, err := p.side[i].page(ctx, next)
		if err != nil {
			return v, err
		}
		if v.of.from == nil {
			v.of, v.total = got.of, got.total
		}
		if got.of.status != p.list.expectedStatus(got.of) {
			return view{of: got.of}, nil
		}
		for _, r := range got.rows {
			if wanted[r.key] {
				if i == 1 && p.run.old == nil {
					r.place = v.count
				}
				v.rows[r.key] = r
				v.times[r.key]++
			}
			v.count++
		}
		if whole {
			v.disorder = append(v.disorder, p.list.disorder(&previous, got.rows)...)
			if !got.last {
				marks = append(marks, got.next)
			}
		}
	}
	return v, nil
}

// settle reads the suspects again, until each is equal, gone, or different in a way
// that stays.
func (p *pairing) settle(ctx context.Context) error {
	if err := p.settlePages(ctx); err != nil {
		return err
	}
	c := &court{pairing: p, open: map[string]string{}, agreed: map[string]int{}}
	for key := range p.rows {
		c.open["row "+key] = ""
	}
	for _, pair := range p.order {
		c.open["order "+pair[0]+"\x00"+pair[1]] = ""
	}
	for key := range p.misplaced {
		c.open["place "+key] = ""
	}
	if p.total {
		c.open["total"] = ""
	}
	if p.status {
		c.open["status"] = ""
	}
	if p.disorder {
		c.open["disorder"] = ""
	}
	return c.sit(ctx, p.sampleMarks(), nil)
}

// sampleMarks are the marks of the suspected rows' pages on the first side, after the
// first page, of which the total is; nil where all of it is to be read.
func (p *pairing) sampleMarks() []string {
	if !p.sampled {
		return nil
	}
	marks := []string{""}
	add := func(mark string) {
		if !slices.Contains(marks, mark) {
			marks = append(marks, mark)
		}
	}
	for key := range p.rows {
		add(p.rows[key][0])
	}
	for _, mark := range p.misplaced {
		add(mark)
	}
	return marks
}

// settlePages settles the suspects that both sides have by reading their pages, and
// leaves those that it does not find there.
func (p *pairing) settlePages(ctx context.Context) error {
	if p.status || p.list.arrange != nil {
		return nil
	}
	var both []string
	for key := range p.rows {
		if !p.lone[key] {
			both = append(both, key)
		}
	}
	slices.SortFunc(both, func(a, b string) int {
		return slices.Compare(p.marksOf(a), p.marksOf(b))
	})
	for part := range slices.Chunk(both, chunk) {
		c := &court{pairing: p, open: map[string]string{}, agreed: map[string]int{}, partial: true}
		marks := [2][]string{}
		for _, key := range part {
			c.open["row "+key] = ""
			for i, mark := range p.rows[key] {
				if !slices.Contains(marks[i], mark) {
					marks[i] = append(marks[i], mark)
				}
			}
		}
		if err := c.sit(ctx, marks[0], marks[1]); err != nil {
			return err
		}
		for _, key := range part {
			if _, left := c.open["row "+key]; !left {
				delete(p.rows, key)
			}
		}
	}
	return nil
}

func (p *pairing) marksOf(key string) []string {
	marks := p.rows[key]
	return marks[:]
}

// court settles suspects. An open one is a row, an order, a total or a status, with
// what was said of it at the last reading.
type court struct {
	*pairing
	open   map[string]string
	agreed map[string]int
	// partial says that only some pages are read: a row that is not there is left
	// open.
	partial bool
}

// sit reads the suspects again, round after round.
func (c *court) sit(ctx context.Context, marks1, marks2 []string) error {
	pause := firstPause
	for round := 1; round <= rounds && len(c.open) > 0; round++ {
		if round > 1 {
			if err := c.run.Wait(ctx, pause); err != nil {
				return err
			}
			pause *= 2
		}
		wanted := c.wanted()
		before, err := c.look(ctx, 0, marks1, wanted)
		if err != nil {
			return err
		}
		other, err := c.look(ctx, 1, marks2, wanted)
		if err != nil {
			return err
		}
		after, err := c.look(ctx, 0, marks1, wanted)
		if err != nil {
			return err
		}
		for what := range maps.Clone(c.open) {
			c.hear(what, before, other, after)
		}
	}
	if !c.partial && len(c.open) > 0 {
		c.run.report.unsettled(c.list.operation(), len(c.open))
	}
	return nil
}

// finding is what a reading says of a suspect: nothing where both sides agree.
type finding struct {
	verdict
	// said is what both sides said; it has to stay for a difference to count.
	said string
	// absent says that no side has the row any more.
	absent bool
}

// hear takes a reading of a suspect.
func (c *court) hear(what string, before, other, after view) {
	first, then := c.find(what, before, other), c.find(what, after, other)
	switch {
	case c.partial && (first.absent || then.absent):
		return
	case len(first.faults) == 0 || len(then.faults) == 0:
		agreed := first
		if len(first.faults) > 0 {
			agreed = then
		}
		if !agreed.absent {
			c.run.report.count(c.list.operation(), agreed.verdict)
		}
		delete(c.open, what)
		return
	case first.said != then.said || then.said != c.open[what]:
		c.agreed[what] = 0
	}
	if c.open[what] = then.said; first.said != then.said {
		return
	}
	if c.agreed[what]++; c.agreed[what] == agreeing {
		c.run.report.count(c.list.operation(), then.verdict, c.answers(what, other, after)...)
		delete(c.open, what)
	}
}

// wanted are the keys of the rows that are still open.
func (c *court) wanted() map[string]bool {
	wanted := map[string]bool{}
	for what := range c.open {
		switch kind, rest := cutKind(what); kind {
		case "row", "place":
			wanted[rest] = true
		case "order":
			a, b := cutPair(rest)
			wanted[a], wanted[b] = true, true
		}
	}
	return wanted
}

// answers are those that show a suspect.
func (c *court) answers(what string, other, v1 view) []answer {
	both := []answer{v1.of, other.of}
	kind, key := cutKind(what)
	if kind == "order" {
		key, _ = cutPair(key)
	}
	if r, ok := v1.rows[key]; ok {
		both[0] = r.of
	}
	if r, ok := other.rows[key]; ok {
		both[1] = r.of
	}
	return both
}

// find compares what two readings say of a suspect.
func (c *court) find(what string, v1, other view) finding {
	switch kind, rest := cutKind(what); kind {
	case "row":
		return c.findRow(rest, v1, other)
	case "order":
		return findOrder(rest, v1, other)
	case "place":
		return findPlace(rest, v1, other)
	case "status":
		return c.findStatus(v1, other)
	case "disorder":
		return finding{verdict: verdict{faults: v1.disorder}, said: "disorder"}
	}
	if c.sampled {
		v1.count = v1.total
	}
	if !v1.ok || !other.ok || v1.total == other.count && v1.total == v1.count && (other.total < 0 || other.total == v1.total) {
		return finding{verdict: verdict{equal: 1}, absent: !v1.ok || !other.ok}
	}
	want := other.count
	if want == v1.total {
		want = v1.count
	}
	return finding{
		verdict: verdict{faults: []fault{{"total", number(v1.total), number(want)}}},
		said:    string(number(v1.total)) + " " + string(number(v1.count)) + " " + string(number(other.count)),
	}
}

func (c *court) findRow(key string, v1, other view) finding {
	a, shown := v1.rows[key]
	b, wanted := other.rows[key]
	f := finding{said: string(a.value) + "\x00" + string(b.value) + "\x00" + string(b.raw)}
	switch {
	case !shown && !wanted:
		return finding{absent: true}
	case c.partial && (!shown || !wanted), c.sampled && !shown:
		return finding{absent: true}
	case !shown:
		f.faults = []fault{{"item", nil, b.value}}
	case !wanted:
		f.faults = []fault{{"item", a.value, nil}}
	case !c.sampled && v1.times[key] > 1 || other.times[key] > 1:
		f.faults = []fault{{"item", number(v1.times[key]), number(other.times[key])}}
	default:
		f.verdict = c.run.rules(c.list).compare(a.value, b.value)
	}
	return f
}

// findOrder compares the order of two rows.
func findOrder(keys string, v1, other view) finding {
	a, b := cutPair(keys)
	var all [4]row
	for i, v := range []view{v1, other} {
		for j, key := range []string{a, b} {
			r, ok := v.rows[key]
			if !ok {
				return finding{absent: true}
			}
			all[2*i+j] = r
		}
	}
	if (all[0].place < all[1].place) == (all[2].place < all[3].place) {
		return finding{verdict: verdict{equal: 1}}
	}
	first, then := text(a+" before "+b), text(b+" before "+a)
	if all[0].place > all[1].place {
		first, then = then, first
	}
	return finding{verdict: verdict{faults: []fault{{"order", first, then}}}, said: string(first)}
}

// findPlace compares the places of a row.
func findPlace(key string, v1, other view) finding {
	a, shown := v1.rows[key]
	b, wanted := other.rows[key]
	switch {
	case !shown || !wanted:
		return finding{absent: true}
	case a.place == b.place:
		return finding{verdict: verdict{equal: 1}}
	}
	said := fmt.Sprintf("%s at %d, at %d", key, a.place, b.place)
	return finding{verdict: verdict{faults: []fault{{"order", number(a.place), number(b.place)}}}, said: said}
}

// findStatus compares the statuses of two first pages.
func (c *court) findStatus(v1, other view) finding {
	c.readable = v1.ok && other.ok
	if c.readable || c.run.agree(v1.of, other.of) {
		return finding{verdict: verdict{equal: 1}}
	}
	return finding{
		verdict: verdict{faults: []fault{{"status", number(v1.of.status), number(other.of.status)}}},
		said:    string(number(v1.of.status)) + " " + string(number(other.of.status)),
	}
}

func cutKind(what string) (kind, rest string) {
	kind, rest, _ = strings.Cut(what, " ")
	return kind, rest
}

func cutPair(keys string) (a, b string) {
	a, b, _ = strings.Cut(keys, "\x00")
	return a, b
}
