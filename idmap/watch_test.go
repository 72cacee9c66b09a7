package idmap

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"partnerapi/domain"
)

func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newCache(10)
	c.reset(true)
	for n := range 100 {
		_, generation := c.getIDs(domain.KeyID{}, nil, nil)
		c.put(generation, domain.KeyID{}, []pair{{Client, int64(n + 1), object(n + 1)}})
	}
	if c.size() != 10 {
		t.Errorf("a cache for 10 pairs holds %d", c.size())
	}
}

func TestCacheTakesNothingFromBeforeAChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		before, after bool // whether it is listening
		want          int
	}{
		{"nothing happens", true, true, 1},
		{"the registry changes", true, true, 0},
		{"listening ends", true, false, 0},
		{"listening begins", false, true, 0},
	} {
		cache := newCache(10)
		cache.reset(c.before)
		_, generation := cache.getNumbers(domain.KeyID{}, []IDKey{{Client, object(1)}}, map[IDKey]int64{})
		if c.want == 0 {
			cache.reset(c.after)
		}
		cache.put(generation, domain.KeyID{}, []pair{{Client, 1, object(1)}})
		if cache.size() != c.want {
			t.Errorf("%s during a lookup: %d pairs are kept, want %d", c.name, cache.size(), c.want)
		}
	}
}

// watch runs r's Watch until the test ends, and returns what it hears.
func watch(t *testing.T, r *Registry) <-chan event {
	t.Helper()
	events := make(chan event, 10)
	r.observe = func(e event) { events <- e }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Watch(ctx, slog.New(slog.NewTextHandler(io.Discard, nil)))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return events
}

func expect(t *testing.T, events <-chan event, want event) {
	t.Helper()
	select {
	case got := <-events:
		if got != want {
			t.Fatalf("events %d, want %d", got, want)
		}
	case <-t.Context().Done():
		t.Fatal("events nothing")
	}
}

// TestWatchSeesAnotherProcess: while it listens, the cache answers without the database, until
// another process changes a number.
func TestWatchSeesAnotherProcess(t *testing.T) {
	t.Parallel()
	address := databaseURL(t, true)
	otherDB := openURL(t, address)
	other := otherDB.SQL()
	r := New(openURL(t, address), 100)
	create(t, other, Client, 1, 2)
	if number(t, r, Client, 1); r.cache.size() != 0 {
		t.Fatalf("%d pairs are cached without a listener", r.cache.size())
	}
	events := watch(t, r)
	expect(t, events, listening)
	if number(t, r, Client, 1); r.cache.size() != 1 {
		t.Fatalf("%d pairs are kept", r.cache.size())
	}

	// No lookup could get through this lock.
	lock, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Rollback()
	exec(t, lock, `LOCK TABLE id_registry IN ACCESS EXCLUSIVE MODE`)
	ids, _, err := r.IDs(t.Context(), []NumberKey{{Client, 1}})
	if got := number(t, r, Client, 1); got != 1 || err != nil || ids[NumberKey{Client, 1}] != object(1) {
		t.Errorf("from memory: client 1 is number %d, and number 1 is %v, %v", got, ids, err)
	}
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}

	file := "client,77," + kindInfos[Client].show(object(1))
	if _, err := Import(t.Context(), otherDB, strings.NewReader(file), false); err != nil {
		t.Fatal(err)
	}
	expect(t, events, changed)
	if got := number(t, r, Client, 1); got != 77 {
		t.Errorf("after the import the client has number %d", got)
	}
	ids, _, err = r.IDs(t.Context(), []NumberKey{{Client, 1}, {Client, 77}})
	if err != nil || len(ids) != 1 || ids[NumberKey{Client, 77}] != object(1) {
		t.Errorf("1 and 77 are %v, %v", ids, err)
	}
	remove(t, other, Client, 1)
	expect(t, events, changed)
	ids, _, err = r.IDs(t.Context(), []NumberKey{{Client, 77}})
	if err != nil || len(ids) != 0 {
		t.Errorf("the number of a deleted client is %v, %v", ids, err)
	}
}

func TestWatchSurvivesALostConnection(t *testing.T) {
	t.Parallel()
	address := databaseURL(t, true)
	other := openURL(t, address).SQL()
	r := New(openURL(t, address), 100)
	create(t, other, Client, 1)
	events := watch(t, r)
	expect(t, events, listening)
	number(t, r, Client, 1)
	exec(t, other, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND query = 'LISTEN id_registry'`)
	expect(t, events, lost)
	if r.cache.size() != 0 {
		t.Errorf("%d pairs are cached without a listener", r.cache.size())
	}
	expect(t, events, listening)
	if number(t, r, Client, 1); r.cache.size() != 1 {
		t.Errorf("listening again, %d pairs are kept", r.cache.size())
	}
}

// TestCacheAnswersWhoReached: the cache answers for a number only to callers that
// reached its object, by name or because it was shown to them. All others ask the
// database each time, as they do for unused numbers.
func TestCacheAnswersWhoReached(t *testing.T) {
	t.Parallel()
	address := databaseURL(t, true)
	other := openURL(t, address).SQL()
	r := New(openURL(t, address), 100)
	create(t, other, Client, 1, 2, 3)
	expect(t, watch(t, r), listening)

	as := func(key byte) context.Context {
		return domain.WithCaller(t.Context(), &domain.Caller{Key: domain.KeyID{key}})
	}
	type ref = Ref[domain.ClientKind]
	cached := func(caller byte, number int64) bool {
		found := map[NumberKey]UUID{}
		r.cache.getIDs(domain.KeyID{caller}, []NumberKey{{Client, number}}, found)
		return len(found) > 0
	}

	named, list := ref{Number: 1}, []ref{{Number: 2}, {Number: 3}, {Number: 9}}
	lookup, err := Resolve(as(1), r, &named, &list)
	if err != nil || named.ID != object(1) || list[1].ID != object(3) {
		t.Fatalf("%v, %v: %v", named, list, err)
	}
	if cached(1, 1) {
		t.Error("number 1 is cached before the caller reached it")
	}
	lookup.Cache()
	shown := RefTo(domain.ClientID(object(2)))
	if err := Number(as(1), r, &shown); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int64]bool{1: true, 2: true, 3: false, 9: false} {
		if cached(1, number) != want || cached(2, number) {
			t.Errorf("number %d is cached: %v for the caller, %v for another", number, cached(1, number), cached(2, number))
		}
	}
	if err := Number(as(2), r, &shown); err != nil || !cached(2, 2) {
		t.Errorf("number 2 is not cached for who was shown it too: %v", err)
	}

	// A number that was unused is found at once when it is given.
	create(t, other, Client, 4)
	if late := (ref{Number: 4}); true {
		if _, err := Resolve(as(1), r, &late); err != nil || late.ID != object(4) {
			t.Errorf("the new number 4 is %v, %v", late.ID, err)
		}
	}
}

// size returns the number of cached pairs.
func (c *cache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		return 0
	}
	return max(c.ids.Len(), c.numbers.Len())
}
