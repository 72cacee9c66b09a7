package v2_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/v2test"
)

// pagedWalk is a walk through a list over HTTP, from its first page to its last.
type pagedWalk struct {
	p      *pagedTable
	list   pagedList
	cursor string
	last   *pagedRow // the last row read, as it was then
	done   bool
	pages  int
	seen   map[string]int
	// steady are the rows that were in the list throughout with an unchanged
	// sort key, as far as note was called.
	steady map[string]pagedRow
}

func (p *pagedTable) walk(l pagedList) *pagedWalk {
	w := &pagedWalk{p: p, list: l, seen: map[string]int{}, steady: map[string]pagedRow{}}
	for _, r := range p.listed(l) {
		w.steady[r.id] = r
	}
	return w
}

// read reads the next page.
func (w *pagedWalk) read(limit int) pagedPage {
	values := w.list.values()
	values.Set("limit", strconv.Itoa(limit))
	if w.cursor != "" {
		values.Set("cursor", w.cursor)
	}
	t := w.p.h.T.(*testing.T)
	page := w.p.page(t, w.p.h.Get(w.p.path(w.list, strings.Split(values.Encode(), "&")...), w.list.key).Want(200).Body)
	w.pages++
	for _, id := range page.ids {
		w.seen[id]++
	}
	w.done = !page.Page.HasMore
	if page.Page.NextCursor != nil {
		w.cursor = *page.Page.NextCursor
	}
	return page
}

// step reads the next page and holds it against what the model has after the
// last row that was read.
func (w *pagedWalk) step(t *testing.T, limit int) {
	t.Helper()
	want := w.p.listed(w.list)
	if w.last != nil {
		after := slices.IndexFunc(want, func(r pagedRow) bool { return r.compare(*w.last, w.list.order) > 0 })
		if after < 0 {
			after = len(want)
		}
		want = want[after:]
	}
	more := len(want) > limit
	want = want[:min(limit, len(want))]
	page := w.read(limit)
	checkPage(t, w.list.name, page, want)
	if page.Page.HasMore != more || (page.Page.NextCursor != nil) != more {
		t.Fatalf("%s: has_more is %t with the cursor %v, and there is more: %t", w.list.name, page.Page.HasMore, page.Page.NextCursor, more)
	}
	if len(want) > 0 {
		w.last = &want[len(want)-1]
	}
}

func checkPage(t *testing.T, name string, page pagedPage, want []pagedRow) {
	t.Helper()
	if got := page.ids; !slices.EqualFunc(got, want, func(id string, r pagedRow) bool { return id == r.id }) {
		t.Fatalf("%s: read\n%s\nnot\n%s", name, got, shownIDs(want))
	}
}

func shownIDs(rows []pagedRow) (ids []string) {
	for _, r := range rows {
		ids = append(ids, r.id)
	}
	return ids
}

// note takes the rows out of steady that have moved or gone.
func (w *pagedWalk) note() {
	now := map[string]pagedRow{}
	for _, r := range w.p.rows {
		now[r.id] = r
	}
	for id, r := range w.steady {
		if current, here := now[id]; !here || !w.list.holds(current) || current.compare(r, w.list.order) != 0 {
			delete(w.steady, id)
		}
	}
}

// finish holds what decisions 3.3 promises of a walk that is over.
func (w *pagedWalk) finish(t *testing.T) {
	t.Helper()
	for id := range w.steady {
		if w.seen[id] != 1 {
			t.Errorf("%s: %s was there throughout and was read %d times", w.list.name, id, w.seen[id])
		}
	}
}

// TestPaging walks the lists of two tables in every sort: while nothing changes, while rows change, and in parallel.
// The slow tests walk those of all tables.
func TestPaging(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"users", "deliveries"} {
		t.Run(name, func(t *testing.T) { walkStill(t, pagedTables[name]) })
		t.Run(name+" beside writers", func(t *testing.T) { walkWhileRowsChange(t, pagedTables[name]) })
		t.Run(name+" in parallel", func(t *testing.T) { walkInParallel(t, pagedTables[name]) })
	}
}

// walkStill walks every list of a table while nothing changes.
func walkStill(t *testing.T, table func(*pagedTable)) {
	p := newPagedTable(t, table, 60)
	for _, l := range p.lists {
		w := p.walk(l)
		for !w.done {
			again := *w
			again.seen = map[string]int{}
			w.step(t, 1+p.dice.IntN(40))
			if p.dice.IntN(4) == 0 { // a cursor is not used up
				again.step(t, 1+p.dice.IntN(40))
			}
		}
		w.finish(t)
		if len(w.seen) != len(w.steady) {
			t.Errorf("%s: read %d rows of %d", l.name, len(w.seen), len(w.steady))
		}
	}
}

// walkWhileRowsChange walks every list of a table, several walks at a time, while
// rows come, go and move between their pages.
func walkWhileRowsChange(t *testing.T, table func(*pagedTable)) {
	p := newPagedTable(t, table, 50)
	steady := 0
	for lists := range slices.Chunk(append(p.lists, p.lists...), 6) {
		var walks []*pagedWalk
		for _, l := range lists {
			walks = append(walks, p.walk(l))
		}
		for changes := 0; len(walks) > 0; {
			i := p.dice.IntN(len(walks))
			walks[i].step(t, 1+p.dice.IntN(12))
			if walks[i].done {
				walks[i].finish(t)
				steady += len(walks[i].steady)
				walks = slices.Delete(walks, i, i+1)
			}
			for ; changes < 60 && p.dice.IntN(3) > 0; changes++ { // in the end they find an end
				p.stir()
				for _, w := range walks {
					w.note()
				}
			}
		}
	}
	if steady == 0 {
		t.Error("no row stayed: the test shows nothing")
	}
}

// walkInParallel walks lists at once while others write: each walk sees once the
// rows that no writer moves.
func walkInParallel(t *testing.T, table func(*pagedTable)) {
	p := newPagedTable(t, table, 40)
	var walks []*pagedWalk
	for range 6 {
		walks = append(walks, p.walk(p.lists[p.dice.IntN(len(p.lists))]))
	}
	var all sync.WaitGroup
	for i, w := range walks {
		dice := rand.New(rand.NewPCG(4, uint64(i)))
		all.Go(func() {
			for !w.done {
				w.read(1 + dice.IntN(6))
			}
		})
	}
	all.Go(func() { // its rows are none of the walks' steady ones
		restless := *p
		restless.rows = nil
		for range 40 {
			for len(restless.rows) < 10 {
				restless.insert()
			}
			restless.stir()
		}
	})
	all.Wait()
	for _, w := range walks {
		w.finish(t)
	}
}

// TestPagingByScoreStandsStill holds decisions 3.7: a walk by risk_score that
// outlasts the summaries it began with goes on among the same scores.
func TestPagingByScoreStandsStill(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	p := &pagedTable{h: h, tenant: h.AddPartner("Scores"), op: api.ListClients, shown: []string{"id"}}
	for i := range 8 {
		client := h.AddClient(p.tenant, fmt.Sprint("Client ", i))
		user := h.AddUser(p.tenant, client.ID, v2test.Email(i))
		p.rows = append(p.rows, pagedRow{uuid: client.ID, id: client.ID.String(), name: client.Name, score: 500 + 50*(i/2)})
		h.Exec("UPDATE users SET score = $2 WHERE id = $1", user.ID, p.rows[i].score)
	}
	h.Clock.Advance(domain.SummaryAge + time.Second)
	walks := func() (all []*pagedWalk) {
		for _, query := range []string{"", "q=client", "updated_since=2026-01-01T00:00:00Z"} {
			for _, sort := range []string{"risk_score", "-risk_score", "name"} {
				values, _ := url.ParseQuery(query)
				all = append(all, p.walk(pagedList{
					name: query + " by " + sort, query: values, sort: sort, order: sort, key: p.tenant.Key, holds: func(pagedRow) bool { return true },
				}))
			}
		}
		return all
	}
	under := walks()
	for _, w := range under {
		w.step(t, 3) // the first of these refreshes them all
	}
	h.Exec("UPDATE users SET score = 1200 - score")
	h.Clock.Advance(domain.SummaryAge + time.Second)
	refreshed := h.Number("SELECT count(*) FROM clients WHERE summarized_at = $1", h.Clock.Now())
	for _, w := range under {
		for !w.done {
			w.step(t, 2)
		}
		w.finish(t)
	}
	if n := h.Number("SELECT count(*) FROM clients WHERE summarized_at = $1", h.Clock.Now()); n != refreshed {
		t.Errorf("pages after a cursor refreshed %d summaries", n-refreshed)
	}
	for i := range p.rows {
		p.rows[i].score = 1200 - p.rows[i].score
	}
	for _, w := range walks() {
		for !w.done {
			w.step(t, 3)
		}
		w.finish(t)
	}
}
