package v1compat

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/gomodule/redigo/redis"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// pool lends connections without a circuit breaker, and calls no function twice.
type pool struct{ *redis.Pool }

func (p pool) Use(ctx context.Context, fn func(redis.Conn) error) error {
	c, err := p.GetContext(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

// redisAt is a store on a Redis server.
func redisAt(t testing.TB, address string, clock domain.Clock, log io.Writer) *Redis {
	connections := pool{&redis.Pool{MaxIdle: 1, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", address) }}}
	t.Cleanup(func() { connections.Close() })
	store := NewRedis(connections, slog.New(slog.NewTextHandler(log, nil)))
	store.clock = clock
	return store
}

// stores are all that checkpoints can be kept in, each on a clock.
func stores(t testing.TB, clock domain.Clock) map[string]Store {
	return map[string]Store{
		"memory": newMemory(clock),
		"redis":  redisAt(t, miniredis.RunT(t).Addr(), clock, t.Output()),
	}
}

func TestStores(t *testing.T) {
	t.Parallel()
	clock := domain.NewManualClock(v2test.Noon)
	for name, store := range stores(t, clock) {
		t.Run(name, func(t *testing.T) { storeContract(t, store, clock) })
	}
}

// storeContract is what decisions 5.7 asks of a store.
func storeContract(t *testing.T, store Store, clock *domain.ManualClock) {
	ctx := t.Context()
	want := func(list string, offset int, cursor string) {
		t.Helper()
		if got, err := store.Cursor(ctx, List{"key", list}, offset); err != nil || got != cursor {
			t.Errorf("%s at %d: %q, %v, not %q", list, offset, got, err, cursor)
		}
	}
	put := func(list string, offset int, cursor string) {
		t.Helper()
		if err := store.Put(ctx, List{"key", list}, offset, cursor); err != nil {
			t.Error(err)
		}
	}
	drop := func(list string) {
		t.Helper()
		if err := store.Drop(ctx, List{"key", list}); err != nil {
			t.Error(err)
		}
	}
	want("a", 20, "")
	put("a", 20, "early") // of a cold jump: nothing was begun
	want("a", 20, "early")
	drop("a")
	want("a", 20, "")
	put("a", 20, "x")
	put("b", 20, "y")
	want("a", 20, "x")
	want("a", 20, "x") // not used up
	want("a", 40, "")
	want("b", 20, "y")
	put("a", 20, "z")
	want("a", 20, "z")
	drop("b")
	want("a", 20, "z")
	want("b", 20, "")

	clock.Advance(10 * time.Minute)
	put("a", 40, "w") // going on does not keep the checkpoints before alive
	clock.Advance(5 * time.Minute)
	want("a", 20, "z")
	clock.Advance(time.Second)
	want("a", 20, "")
	want("a", 40, "w")
	put("a", 20, "again")
	want("a", 20, "again")
	clock.Advance(16 * time.Minute)
	want("a", 20, "")
	want("a", 40, "")
}

// TestKeyIsBounded: beyond its bound, a key loses its oldest checkpoints, and no
// other key's.
func TestKeyIsBounded(t *testing.T) {
	t.Parallel()
	const most = 30
	clock := domain.NewManualClock(v2test.Noon)
	memory, redis := newMemory(clock), redisAt(t, miniredis.RunT(t).Addr(), clock, t.Output())
	memory.perKey, redis.perKey = most, most
	for name, store := range map[string]Store{"memory": memory, "redis": redis} {
		t.Run(name, func(t *testing.T) {
			put := func(key string, list, offset int) {
				t.Helper()
				if err := store.Put(t.Context(), List{key, strconv.Itoa(list)}, offset, "c"); err != nil {
					t.Fatal(err)
				}
			}
			want := func(key string, list, offset int, cursor string) {
				t.Helper()
				if got, err := store.Cursor(t.Context(), List{key, strconv.Itoa(list)}, offset); err != nil || got != cursor {
					t.Errorf("list %d of %s: %q, %v, not %q", list, key, got, err, cursor)
				}
			}
			put("quiet", 0, 50)
			put("busy", 0, 50)
			for i := range most {
				clock.Advance(time.Millisecond)
				put("busy", 1+i%3, i)
			}
			want("quiet", 0, 50, "c")
			want("busy", 0, 50, "")
			want("busy", 1, 0, "c")
			clock.Advance(time.Millisecond)
			put("busy", 2, 1) // the same again is not one more
			want("busy", 1, 0, "c")
			want("busy", 3, most-1, "c")

			clock.Advance(CheckpointLife)
			put("busy", 5, 1)
			want("busy", 3, most-1, "")
			want("busy", 5, 1, "c")
		})
	}
}

// TestMemoryIsBounded: beyond the bound of all keys together, the one that has
// the most loses its oldest; what is too old goes with what is put.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	clock := domain.NewManualClock(v2test.Noon)
	m, ctx := newMemory(clock), t.Context()
	put := func(key, list string, offset int) {
		t.Helper()
		if err := m.Put(ctx, List{key, list}, offset, "c"); err != nil {
			t.Fatal(err)
		}
	}
	put("walker", "w", 50)
	for key := range 2 * memoryCheckpoints / keyCheckpoints {
		for i := range keyCheckpoints {
			put(strconv.Itoa(key), "l", i)
		}
	}
	if m.total != memoryCheckpoints {
		t.Errorf("%d checkpoints", m.total)
	}
	if got, err := m.Cursor(ctx, List{"walker", "w"}, 50); err != nil || got != "c" {
		t.Errorf("the walker's: %q, %v", got, err)
	}

	clock.Advance(CheckpointLife + time.Second)
	put("0", "l", 1)
	if m.keys["0"].marks.Len() != 1 {
		t.Errorf("%d are kept that are too old", m.keys["0"].marks.Len()-1)
	}
	for key := range m.keys {
		for _, list := range []string{"l", "w"} {
			if err := m.Drop(ctx, List{key, list}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if m.total != 0 || len(m.keys) != 0 {
		t.Errorf("%d checkpoints of %d keys are left", m.total, len(m.keys))
	}
}

// TestRedisForgets: what no walk goes on with leaves Redis by itself.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	store := redisAt(t, server.Addr(), domain.NewManualClock(v2test.Noon), t.Output())
	if err := store.Put(t.Context(), List{"key", "a"}, 20, "x"); err != nil {
		t.Fatal(err)
	}
	server.FastForward(CheckpointLife - time.Second)
	if err := store.Put(t.Context(), List{"key", "a"}, 40, "y"); err != nil {
		t.Fatal(err)
	}
	server.FastForward(CheckpointLife - time.Second)
	if keys := server.Keys(); len(keys) != 2 { // the hash and the set
		t.Errorf("kept: %q", keys)
	}
	server.FastForward(2 * time.Second)
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("kept: %q", keys)
	}
}

// crowd adds a client with n users, oldest first.
func crowd(s *service, t v2test.Tenant, n int) (path string, ids []string, client domain.ClientID) {
	client = s.Client(t, "Client").ID
	for i := range n {
		id := db.NewID[domain.UserKind]()
		s.insertUser(client, id, domain.Active, v2test.Noon.AddDate(0, 0, i-n))
		ids = append(ids, id.UUID())
	}
	return "/v1/clients/" + s.number(client) + "/users", ids, client
}

func (s *service) deleteUser(client domain.ClientID, id string) {
	s.T.Helper()
	s.Exec("DELETE FROM users WHERE client_id = $1 AND id = $2::text::uuid", client, id)
	s.count(client, domain.Active, -1)
}

// TestRedisWalk: a walk goes on from checkpoints that another replica left.
func TestRedisWalk(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	clock := domain.NewManualClock(v2test.Noon)
	s := start(t, setup{store: redisAt(t, server.Addr(), clock, t.Output())})
	tenant := s.Tenant("Partner")
	path, ids, client := crowd(s, tenant, 9)
	s.list(path+"?limit=3", tenant.Key)
	s.facade.checkpoints.store = redisAt(t, server.Addr(), clock, t.Output()) // as of another replica
	s.deleteUser(client, ids[0])
	p := s.list(path+"?limit=3&offset=3", tenant.Key)
	if got := fmt.Sprint(p.texts("id")); got != fmt.Sprint(ids[3:6]) || p.Total != 8 {
		t.Errorf("%s of %d", got, p.Total)
	}
	clock.Advance(16 * time.Minute)
	if got := fmt.Sprint(s.list(path+"?limit=3&offset=3", tenant.Key).texts("id")); got != fmt.Sprint(ids[4:7]) {
		t.Errorf("after 16 minutes: %s", got)
	}
}

// TestRedisDown: without Redis, walks count rows, and the log says so.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	var log bytes.Buffer
	s := start(t, setup{store: redisAt(t, server.Addr(), domain.NewManualClock(v2test.Noon), &log)})
	tenant := s.Tenant("Partner")
	path, ids, client := crowd(s, tenant, 9)
	s.list(path+"?limit=3", tenant.Key)
	server.Close()
	for offset := 3; offset < 9; offset += 3 {
		p := s.list(fmt.Sprintf("%s?limit=3&offset=%d", path, offset), tenant.Key)
		if got := fmt.Sprint(p.texts("id")); got != fmt.Sprint(ids[offset:offset+3]) || p.Total != 9 {
			t.Errorf("at %d: %s of %d", offset, got, p.Total)
		}
	}
	s.deleteUser(client, ids[0])
	if got := fmt.Sprint(s.list(path+"?limit=3&offset=3", tenant.Key).texts("id")); got != fmt.Sprint(ids[4:7]) {
		t.Errorf("by position: %s", got)
	}
	if !strings.Contains(log.String(), "checkpoints cannot be reached") {
		t.Errorf("log: %s", &log)
	}
}
