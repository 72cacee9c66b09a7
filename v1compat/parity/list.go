package parity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// maxPending bounds how many rows wait for the other side's. Lists that differ in
// more are not read to their end.
const maxPending = 10_000

// tries is how often a list is begun that could not be read at first, and then could.
const tries = 3

// pairing pairs the rows of both sides of a list, page by page. What is not equal at
// once is suspected, and settled when the list has been read.
type pairing struct {
	run  *run
	list *list
	side [2]side
	read [2]progress
	// pending are the rows without a partner so far.
	pending [2]map[string]row
	// last is the place on the second side of the pair before.
	last    int
	lastKey string
	suspects
	// sampled says that not all of the first side is read.
	sampled bool
	// readable says that a list which could not be read then could.
	readable bool
	// each is called with each pair; nil for nothing to do.
	each func(ctx context.Context, v1, other row) error
}

// progress is how far a side has been read.
type progress struct {
	mark  string
	rows  int
	total int // that the first page says
	first answer
	ended bool
	// previous is what the row before is ordered by.
	previous string
}

// suspects are what is to be read again.
type suspects struct {
	// rows are the suspected rows by their keys, with the marks of their pages.
	rows map[string][2]string
	// order are pairs of keys whose rows are in another order on the second side.
	order [][2]string
	// misplaced are rows that are in another place on the second side, by their keys,
	// with the marks of their pages on the first.
	misplaced map[string]string
	// lone are keys that one side only has; total and status are those of the list.
	lone          map[string]bool
	total, status bool
	// disorder says that v1's rows are not in the order that v1 documents.
	disorder bool
}

// compareList compares all of a list, or a sample of its rows.
func (r *run) compareList(ctx context.Context, l *list, each func(ctx context.Context, v1, other row) error) error {
	for range tries {
		p := newPairing(r, l, each)
		read := p.all
		if r.Sample > 0 && l.reading.List && l.arrange == nil {
			read = p.sample
		}
		if err := read(ctx); err != nil {
			return err
		}
		if err := p.settle(ctx); err != nil || !p.readable || p.read[0].rows+p.read[1].rows > 0 {
			return err
		}
	}
	return nil
}

func newPairing(r *run, l *list, each func(ctx context.Context, v1, other row) error) *pairing {
	return &pairing{
		run: r, list: l, side: r.sides(l), each: each, last: -1,
		pending: [2]map[string]row{{}, {}},
		suspects: suspects{
			rows: map[string][2]string{}, lone: map[string]bool{}, misplaced: map[string]string{},
		},
	}
}

// all reads both sides to their ends, the one that is behind first.
func (p *pairing) all(ctx context.Context) error {
	for !p.read[0].ended || !p.read[1].ended {
		i := 0
		if p.read[0].ended || !p.read[1].ended && p.read[1].rows < p.read[0].rows {
			i = 1
		}
		rows, err := p.next(ctx, i)
		if err != nil {
			return err
		}
		if err := p.add(ctx, i, rows); err != nil {
			return err
		}
		if p.status || len(p.pending[0])+len(p.pending[1]) > maxPending {
			break
		}
	}
	for i := range p.pending {
		for key, r := range p.pending[i] {
			p.suspect(key, i, r)
		}
	}
	if p.list.reading.List && !p.status && p.read[0].ended && p.read[1].ended {
		p.checkTotal(p.read[0].rows)
	}
	return nil
}

// suspect notes a row that one side only has.
func (p *pairing) suspect(key string, side int, r row) {
	marks := p.rows[key]
	marks[side] = r.page
	p.rows[key], p.lone[key] = marks, true
}

// next reads a side's next page, and checks what can be checked of it alone.
func (p *pairing) next(ctx context.Context, i int) ([]row, error) {
	at := &p.read[i]
	got, err := p.side[i].page(ctx, at.mark)
	if err != nil {
		return nil, err
	}
	p.run.checkHeaders(p.list.operation(), got.of)
	if got.of.status != p.list.expectedStatus(got.of) {
		p.status, at.ended = true, true
		return nil, nil
	}
	if at.mark == "" {
		at.total, at.first = got.total, got.of
		if both := p.read[0].first.from != nil && p.read[1].first.from != nil; both && p.run.old != nil {
			p.run.compareHeaders(p.list.operation(), p.read[0].first, p.read[1].first)
		}
	}
	at.mark, at.ended = got.next, got.last
	if len(got.faults) > 0 {
		p.run.report.count(p.list.operation(), verdict{faults: got.faults}, got.of)
	}
	if len(p.list.disorder(&at.previous, got.rows)) > 0 {
		p.suspects.disorder = true
	}
	return got.rows, nil
}

// expectedStatus is that of a page; of v2 it is 200.
func (l *list) expectedStatus(a answer) int {
	if strings.HasPrefix(a.path, "/v1/") {
		return l.reading.Status
	}
	return 200
}

// disorder is a fault where rows are not in the order that v1 documents; previous is
// what the row before is ordered by, empty for the first, and is kept up.
func (l *list) disorder(previous *string, rows []row) (faults []fault) {
	name, descending := strings.CutPrefix(l.order, "-")
	for _, r := range rows {
		if name == "" || r.raw != nil {
			return nil
		}
		value := memberOf(r.value, name)
		by := cmp.Or(cmp.Compare(len(*previous), len(value)), strings.Compare(*previous, value))
		if descending {
			by = -by
		}
		if *previous != "" && by > 0 {
			faults = append(faults, fault{"order", text(name + " " + value + " after " + *previous), nil})
		}
		*previous = value
	}
	return faults
}

// add pairs rows of a side with those of the other that wait.
func (p *pairing) add(ctx context.Context, i int, rows []row) error {
	var pairs [][2]row
	for _, r := range rows {
		if i == 1 && p.run.old == nil {
			r.place = p.read[i].rows
		}
		p.read[i].rows++
		other, ok := p.pending[1-i][r.key]
		if _, twice := p.pending[i][r.key]; twice {
			p.suspect(r.key, i, r)
			continue
		}
		if !ok {
			p.pending[i][r.key] = r
			continue
		}
		delete(p.pending[1-i], r.key)
		both := [2]row{r, other}
		if i == 1 {
			both = [2]row{other, r}
		}
		pairs = append(pairs, both)
	}

	slices.SortFunc(pairs, func(a, b [2]row) int { return cmp.Compare(a[0].place, b[0].place) })
	for _, pair := range pairs {
		key := pair[0].key
		switch {
		case p.sampled && pair[0].place != pair[1].place:
			p.misplaced[key] = pair[0].page
		case p.sampled:
		case pair[1].place < p.last:
			p.order = append(p.order, [2]string{p.lastKey, key})
		default:
			p.last, p.lastKey = pair[1].place, key
		}
		p.compare(pair)
		if p.each == nil {
			continue
		}
		if err := p.each(ctx, pair[0], pair[1]); err != nil {
			return err
		}
	}
	return nil
}

// compare compares a pair, and suspects what differs.
func (p *pairing) compare(rows [2]row) {
	v := p.run.rules(p.list).compare(rows[0].value, rows[1].value)
	if len(v.faults) > 0 {
		p.rows[rows[0].key] = [2]string{rows[0].page, rows[1].page}
		return
	}
	p.run.report.count(p.list.operation(), v)
}

// checkTotal compares v1's total with the numbers of rows.
func (p *pairing) checkTotal(rows int) {
	total := p.read[0].total
	if p.read[1].rows != total || rows != total || p.run.old != nil && p.read[1].total != total {
		p.total = true
		return
	}
	p.run.report.count(p.list.operation(), verdict{equal: 1})
}

// sample reads rows of v1 that are spread evenly over the list, and finds them on the
// other side.
func (p *pairing) sample(ctx context.Context) error {
	first, err := p.next(ctx, 0)
	if err != nil || p.status {
		return err
	}
	total := p.read[0].total
	if total <= p.run.Sample || total < 0 {
		if err := p.add(ctx, 0, first); err != nil {
			return err
		}
		return p.all(ctx)
	}

	p.sampled = true
	wanted := map[string]bool{}
	for i := range p.run.Sample {
		offset := i * (total - 1) / max(p.run.Sample-1, 1)
		rows := first[min(offset, len(first)):]
		if len(rows) == 0 {
			got, err := p.side[0].page(ctx, fmt.Sprintf("%d:1", offset))
			if err != nil {
				return err
			}
			rows = got.rows
		}
		if len(rows) > 0 && !wanted[rows[0].key] {
			wanted[rows[0].key] = true
			if err := p.add(ctx, 0, rows[:1]); err != nil {
				return err
			}
		}
	}
	return p.find(ctx, wanted)
}

// find reads all of the second side, and pairs the rows that are wanted.
func (p *pairing) find(ctx context.Context, wanted map[string]bool) error {
	for !p.read[1].ended {
		rows, err := p.next(ctx, 1)
		if err != nil || p.status {
			return err
		}
		for _, r := range rows {
			if !wanted[r.key] {
				p.read[1].rows++
				continue
			}
			delete(wanted, r.key)
			if err := p.add(ctx, 1, []row{r}); err != nil {
				return err
			}
		}
	}
	for key, r := range p.pending[0] {
		p.suspect(key, 0, r)
	}
	p.checkTotal(p.read[0].total)
	return nil
}
