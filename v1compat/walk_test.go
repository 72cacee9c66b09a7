package v1compat

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// row is a row of a list as the model knows it.
type row struct {
	name    string    // what v1 shows it by
	created time.Time // or what else the list is sorted by
	id      string
	state   string // what filters distinguish
	// born is when it came into the list, in steps of the world; a row that
	// comes and goes is a new one.
	born int
}

func (r *row) compare(o *row) int {
	return cmp.Or(r.created.Compare(o.created), cmp.Compare(r.id, o.id))
}

// listing is a list with a filter: in the query, or in the body of a POST.
type listing struct {
	query string // for example &status=all
	body  string
	state string // whose rows it shows; "" for all
}

// world is a list of v1 beside a naive model of it, and what changes it.
type world struct {
	*service
	rnd    *rand.Rand
	rows   []*row
	step   int
	path   string
	member string // what identifies the row of an item
	newest bool   // the order is the other way round
	// listings are the list's filters, the usual one first.
	listings []listing
	states   [2]string
	insert   func(*row)
	remove   func(*row)
	move     func(*row) // to the other state; nil where there is none
}

// shown are the rows that a listing shows, in their order.
func (w *world) shown(l listing) []*row {
	var list []*row
	for _, r := range w.rows {
		if l.state == "" || r.state == l.state {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, w.compare)
	return list
}

func (w *world) compare(a, b *row) int {
	if w.newest {
		return b.compare(a)
	}
	return a.compare(b)
}

func (w *world) page(l listing, limit, offset int, key string) (p page) {
	w.T.Helper()
	path := fmt.Sprintf("%s?limit=%d&offset=%d%s", w.path, limit, offset, l.query)
	if l.body == "" {
		return w.list(path, key)
	}
	w.Do(http.MethodPost, path, key, l.body).Want(http.StatusOK).Into(&p)
	return p
}

// cold reads a page that no walk leads to: by position, its total exact.
func (w *world) cold(l listing, limit, offset int, key string) {
	w.T.Helper()
	all := w.shown(l)
	p := w.page(l, limit, offset, key)
	want := all[min(offset, len(all)):min(offset+limit, len(all))]
	if !slices.EqualFunc(p.texts(w.member), want, func(name string, r *row) bool { return name == r.name }) || p.Total != len(all) {
		w.T.Fatalf("%s %+v: %d at %d: %q of %d, not %v of %d", w.path, l, limit, offset, p.texts(w.member), p.Total, names(want), len(all))
	}
}

func names(rows []*row) (list []string) {
	for _, r := range rows {
		list = append(list, r.name)
	}
	return list
}

// add makes a row; few times of creation make many of them the same.
func (w *world) add() {
	w.step++
	id := domain.UserID{}
	for i := range id {
		id[i] = byte(w.rnd.UintN(256))
	}
	r := &row{
		name: id.UUID(), id: id.UUID(), created: v2test.Noon.Add(-time.Duration(w.rnd.IntN(6)) * time.Hour),
		state: w.states[0], born: w.step,
	}
	if w.move != nil && w.rnd.IntN(4) == 0 {
		r.state = w.states[1]
	}
	w.rows = append(w.rows, r)
	w.insert(r)
}

// change does one random thing to the list.
func (w *world) change() {
	kind := w.rnd.IntN(5)
	switch {
	case len(w.rows) == 0 || kind < 2:
		w.add()
	case kind < 4 || w.move == nil:
		i := w.rnd.IntN(len(w.rows))
		w.remove(w.rows[i])
		w.rows = slices.Delete(w.rows, i, i+1)
	default:
		w.step++
		i := w.rnd.IntN(len(w.rows))
		moved := *w.rows[i]
		w.move(&moved)
		if moved.state == w.states[0] {
			moved.state = w.states[1]
		} else {
			moved.state = w.states[0]
		}
		moved.born = w.step
		w.rows[i] = &moved
	}
}

// walker reads a list from its start to its end, as callers do: on by what came,
// until the offset reaches the total.
type walker struct {
	w      *world
	key    string
	list   listing
	offset int
	began  int
	after  *row // the last row of the page before
	seen   []string
	done   bool
}

func (k *walker) get(limit int) page { return k.w.page(k.list, limit, k.offset, k.key) }

// read reads the next page, sometimes twice, as after an answer that was lost.
func (k *walker) read() {
	t := k.w.T
	t.Helper()
	if k.offset == 0 {
		k.began = k.w.step
	}
	limit := 1 + k.w.rnd.IntN(6)
	if k.w.rnd.IntN(6) == 0 {
		k.get(1 + k.w.rnd.IntN(6))
		for range k.w.rnd.IntN(3) {
			k.w.change()
		}
		if k.offset == 0 {
			k.began = k.w.step
		}
	}
	p := k.get(limit)
	all := k.w.shown(k.list)
	rest := all
	if k.after != nil {
		rest = slices.DeleteFunc(slices.Clone(all), func(r *row) bool { return k.w.compare(r, k.after) <= 0 })
	}
	want := rest[:min(limit, len(rest))]
	got := p.texts(k.w.member)
	if !slices.EqualFunc(got, want, func(name string, r *row) bool { return name == r.name }) {
		t.Fatalf("%s %+v at %d: %q, not %v", k.w.path, k.list, k.offset, got, names(want))
	}
	total, reached := len(all), k.offset+len(want)
	if k.offset > 0 {
		if total = max(total, reached+1); len(rest) == len(want) {
			total = reached
		}
	}
	if p.Total != total || p.Offset != k.offset || p.Limit != limit {
		t.Fatalf("%s %+v at %d of %d rows: total %d not %d, offset %d, limit %d", k.w.path, k.list, k.offset, len(all), p.Total, total, p.Offset, p.Limit)
	}
	k.seen = append(k.seen, got...)
	if len(want) > 0 {
		k.after = want[len(want)-1]
	}
	k.offset = reached
	k.done = len(got) == 0 || k.offset >= p.Total
}

// verdict holds the promise of decisions 5.7: what was there throughout came
// exactly once.
func (k *walker) verdict() {
	t := k.w.T
	t.Helper()
	times := map[string]int{}
	for _, name := range k.seen {
		times[name]++
	}
	for _, r := range k.w.shown(k.list) {
		if r.born <= k.began && times[r.name] != 1 {
			t.Fatalf("walk %s %+v: %s came %d times", k.w.path, k.list, r.name, times[r.name])
		}
	}
}

// TestWalksOfAMovingList: walks by two keys and over several lists at once, while rows come,
// change and go, and others jump about: what no walk leads to is read by position.
func TestWalksOfAMovingList(t *testing.T) {
	t.Parallel()
	for i, newWorld := range worlds {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			s := start(t, setup{})
			for seed := range uint64(3) {
				moving(newWorld(s, rand.New(rand.NewPCG(seed, 200+uint64(i)))))
			}
		})
	}
}

func moving(w *world, tenant v2test.Partner) {
	other, jumper := w.AddKey(tenant, []domain.Scope{domain.Read}, nil), w.AddKey(tenant, []domain.Scope{domain.Read}, nil)
	var walkers []*walker
	for _, l := range w.listings {
		walkers = append(walkers, &walker{w: w, key: tenant.Key, list: l}, &walker{w: w, key: other, list: l})
	}
	for range 15 + w.rnd.IntN(15) {
		w.add()
	}

	for live := walkers; len(live) > 0; live = slices.DeleteFunc(slices.Clone(live), func(k *walker) bool { return k.done }) {
		for range w.rnd.IntN(3) {
			w.change()
		}
		if w.rnd.IntN(3) == 0 {
			w.jump(jumper)
		}
		k := live[w.rnd.IntN(len(live))]
		if k.read(); k.done {
			k.verdict()
		}
	}
}

// jump reads a page from the middle or past the end of a list.
func (w *world) jump(key string) {
	w.T.Helper()
	l := w.listings[w.rnd.IntN(len(w.listings))]
	w.page(l, 1, 0, key) // drops the checkpoints of the jump before
	w.cold(l, 1+w.rnd.IntN(6), 2+w.rnd.IntN(len(w.shown(l))+3), key)
}
