package v1compat

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// row is a row of a list as the model knows it.
type row struct {
	name    string // what v1 shows it by
	created time.Time
	id      string
	status  domain.UserStatus
	// born is when it came into the list, in steps of the world; a row that
	// comes and goes is a new one.
	born int
}

func (r *row) compare(o *row) int {
	return cmp.Or(r.created.Compare(o.created), cmp.Compare(r.id, o.id))
}

// world is a list of v1 beside a naive model of it, and what changes it.
type world struct {
	*service
	rnd    *rand.Rand
	rows   []*row
	step   int
	path   string
	member string
	insert func(*row)
	remove func(*row)
	move   func(*row) // to the other state; nil where there is none
}

// shown are the rows that a filter shows, in their order.
func (w *world) shown(status string) []*row {
	var list []*row
	for _, r := range w.rows {
		if status == "" || status == "all" || string(r.status) == status {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, (*row).compare)
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
		status: domain.Active, born: w.step,
	}
	if w.move != nil && w.rnd.IntN(4) == 0 {
		r.status = domain.Inactive
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
		if moved.status == domain.Active {
			moved.status = domain.Inactive
		} else {
			moved.status = domain.Active
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
	query  string // of the list, for example &status=all
	status string
	offset int
	began  int
	after  *row // the last row of the page before
	seen   []string
	done   bool
}

func (k *walker) get(limit int) page {
	return k.w.list(fmt.Sprintf("%s?limit=%d&offset=%d%s", k.w.path, limit, k.offset, k.query), k.key)
}

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
	all := k.w.shown(k.status)
	rest := all
	if k.after != nil {
		rest = slices.DeleteFunc(slices.Clone(all), func(r *row) bool { return r.compare(k.after) <= 0 })
	}
	want := rest[:min(limit, len(rest))]
	got := p.texts(k.w.member)
	if !slices.EqualFunc(got, want, func(name string, r *row) bool { return name == r.name }) {
		t.Fatalf("at %d: %q, not %v", k.offset, got, want)
	}
	total, reached := len(all), k.offset+len(want)
	if k.offset > 0 {
		total = max(total, reached+min(1, len(rest)-len(want)))
	}
	if p.Total != total || p.Offset != k.offset || p.Limit != limit {
		t.Fatalf("at %d of %d rows: total %d not %d, offset %d, limit %d", k.offset, len(all), p.Total, total, p.Offset, p.Limit)
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
	for _, r := range k.w.shown(k.status) {
		if r.born <= k.began && times[r.name] != 1 {
			t.Fatalf("walk %s %s: %s came %d times", k.w.path, k.query, r.name, times[r.name])
		}
	}
}

// userWorld is a list of users that the world changes.
func userWorld(s *service, t v2test.Tenant, rnd *rand.Rand) *world {
	client := s.Client(t, fmt.Sprint("client ", rnd.Uint64())).ID
	w := &world{service: s, rnd: rnd, path: "/v1/clients/" + s.number(client) + "/users", member: "id"}
	w.insert = func(r *row) {
		id, err := domain.ParseUUID[domain.UserKind](r.id)
		if err != nil {
			s.T.Fatal(err)
		}
		s.insertUser(client, id, r.status, r.created)
	}
	w.remove = func(r *row) {
		s.Exec("DELETE FROM users WHERE client_id = $1 AND id = $2::text::uuid", client, r.id)
		s.count(client, r.status, -1)
	}
	w.move = func(r *row) {
		s.Exec(`UPDATE users SET status = CASE status WHEN 'active' THEN 'inactive' ELSE 'active' END
			WHERE client_id = $1 AND id = $2::text::uuid`, client, r.id)
		s.count(client, r.status, -1)
		s.count(client, map[domain.UserStatus]domain.UserStatus{domain.Active: domain.Inactive, domain.Inactive: domain.Active}[r.status], 1)
	}
	return w
}

// clientWorld is the list of a new partner's clients. Some go by being
// archived, some altogether.
func clientWorld(s *service, rnd *rand.Rand) (*world, v2test.Tenant) {
	t := s.Tenant(fmt.Sprint("partner ", rnd.Uint64()))
	w := &world{service: s, rnd: rnd, path: "/v1/clients", member: "client_name"}
	id := func(r *row) domain.ClientID {
		id, err := domain.ParseUUID[domain.ClientKind](r.id)
		if err != nil {
			s.T.Fatal(err)
		}
		return id
	}
	w.insert = func(r *row) { s.insertClient(t.ID, id(r), r.name, r.created) }
	w.remove = func(r *row) {
		if rnd.IntN(2) == 0 {
			s.archive(id(r))
			return
		}
		s.Exec("DELETE FROM clients WHERE id = $1", id(r))
	}
	return w, t
}

// TestPagesOfAQuietList: when nothing changes, any offset shows what a naive
// model does: on walks, on cold jumps, and when the checkpoints are too old.
func TestPagesOfAQuietList(t *testing.T) {
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	for seed := range uint64(4) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := userWorld(s, tenant, rnd)
		key := tenant.Key
		if seed%2 == 1 {
			var own v2test.Tenant
			w, own = clientWorld(s, rnd)
			key = own.Key
		}
		for range 10 + rnd.IntN(20) {
			w.add()
		}
		for range 60 {
			status := []string{"active", "inactive", "all"}[rnd.IntN(3)]
			if w.move == nil {
				status = ""
			}
			all := w.shown(status)
			limit, offset := 1+rnd.IntN(12), rnd.IntN(len(all)+5)
			p := w.list(fmt.Sprintf("%s?limit=%d&offset=%d&status=%s", w.path, limit, offset, status), key)
			want := all[min(offset, len(all)):min(offset+limit, len(all))]
			if !slices.EqualFunc(p.texts(w.member), want, func(name string, r *row) bool { return name == r.name }) || p.Total != len(all) {
				t.Fatalf("seed %d: %d at %d of %s: %q of %d, not %v of %d", seed, limit, offset, status, p.texts(w.member), p.Total, want, len(all))
			}
			if rnd.IntN(8) == 0 {
				s.Clock.Advance(time.Duration(rnd.IntN(20)) * time.Minute)
			}
		}
	}
}

// TestWalksOfAMovingList: walks by several keys and over several lists at once,
// while rows come, change and go, and others jump about.
func TestWalksOfAMovingList(t *testing.T) {
	s := start(t, setup{})
	tenant := s.Tenant("Partner")
	scopes := []domain.Scope{domain.Read}
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		var w *world
		var walkers []*walker
		var jumper string
		if seed%2 == 0 {
			w = userWorld(s, tenant, rnd)
			other := s.NewKey(tenant, scopes, nil)
			jumper = s.NewKey(tenant, scopes, nil)
			for _, key := range []string{tenant.Key, other} {
				walkers = append(walkers, &walker{w: w, key: key, query: "&status=all", status: "all"}, &walker{w: w, key: key, status: "active"},
					&walker{w: w, key: key, query: "&status=inactive", status: "inactive"})
			}
		} else {
			var own v2test.Tenant
			w, own = clientWorld(s, rnd)
			jumper = s.NewKey(own, scopes, nil)
			walkers = []*walker{{w: w, key: own.Key}, {w: w, key: s.NewKey(own, scopes, nil)}}
		}
		for range 15 + rnd.IntN(15) {
			w.add()
		}
		for live := walkers; len(live) > 0; live = slices.DeleteFunc(slices.Clone(live), func(k *walker) bool { return k.done }) {
			for range rnd.IntN(3) {
				w.change()
			}
			if rnd.IntN(5) == 0 {
				w.jump(jumper)
			}
			k := live[rnd.IntN(len(live))]
			if k.read(); k.done {
				k.verdict()
			}
		}
	}
}

// jump reads a page that no walk leads to: by position, its total exact.
func (w *world) jump(key string) {
	w.T.Helper()
	status := "active"
	if w.move == nil {
		status = ""
	}
	w.list(w.path+"?limit=1", key) // drops the checkpoints of the jump before
	all := w.shown(status)
	offset, limit := 2+w.rnd.IntN(len(all)+3), 1+w.rnd.IntN(6)
	p := w.list(fmt.Sprintf("%s?limit=%d&offset=%d", w.path, limit, offset), key)
	want := all[min(offset, len(all)):min(offset+limit, len(all))]
	if !slices.EqualFunc(p.texts(w.member), want, func(name string, r *row) bool { return name == r.name }) || p.Total != len(all) {
		w.T.Fatalf("jump to %d: %q of %d, not %v of %d", offset, p.texts(w.member), p.Total, want, len(all))
	}
}
