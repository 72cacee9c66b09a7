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
	store := NewRedis(connections, clock, slog.New(slog.NewTextHandler(log, nil)))
	store.clock = clock
	return store
}

// marks are the checkpoints of a store.
type marks struct {
	*testing.T
	Store
}

func (m marks) put(key, list string, offset int, cursor string) {
	m.Helper()
	if err := m.Put(m.Context(), List{key, list}, offset, cursor); err != nil {
		m.Fatal(err)
	}
}

func (m marks) drop(key, list string) {
	m.Helper()
	if err := m.Drop(m.Context(), List{key, list}); err != nil {
		m.Fatal(err)
	}
}

// want wants a checkpoint to have a cursor; "" for none.
func (m marks) want(key, list string, offset int, cursor string) {
	m.Helper()
	if got, err := m.Cursor(m.Context(), List{key, list}, offset); err != nil || got != cursor {
		m.Errorf("list %s of %s at %d: %q, %v, not %q", list, key, offset, got, err, cursor)
	}
}

// TestStores: what decisions 5.7 asks of each store of checkpoints.
func TestStores(t *testing.T) {
	t.Parallel()
	clock := domain.NewManualClock(v2test.Noon)
	for name, store := range map[string]Store{
		"memory": newMemory(clock), "redis": redisAt(t, miniredis.RunT(t).Addr(), clock, t.Output()),
	} {
		t.Run(name, func(t *testing.T) { storeContract(marks{t, store}, clock) })
	}
}

func storeContract(m marks, clock *domain.ManualClock) {
	m.want("key", "a", 20, "")
	m.put("key", "a", 20, "early") // of a cold jump: nothing was begun
	m.want("key", "a", 20, "early")
	m.drop("key", "a")
	m.want("key", "a", 20, "")
	m.put("key", "a", 20, "x")
	m.put("key", "b", 20, "y")
	m.put("another", "a", 20, "another's")
	m.want("key", "a", 20, "x")
	m.want("key", "a", 20, "x") // not used up
	m.want("key", "a", 40, "")
	m.want("key", "b", 20, "y")
	m.put("key", "a", 20, "z")
	m.want("key", "a", 20, "z")
	m.drop("key", "b")
	m.want("key", "a", 20, "z")
	m.want("key", "b", 20, "")
	m.want("another", "a", 20, "another's")

	clock.Advance(10 * time.Minute)
	m.put("key", "a", 40, "w") // going on does not keep the checkpoints before alive
	clock.Advance(5 * time.Minute)
	m.want("key", "a", 20, "z")
	clock.Advance(time.Second)
	m.want("key", "a", 20, "")
	m.want("key", "a", 40, "w")
	m.put("key", "a", 20, "again")
	m.want("key", "a", 20, "again")
	clock.Advance(16 * time.Minute)
	m.want("key", "a", 20, "")
	m.want("key", "a", 40, "")

	m.put("key", "a", 60, "ahead") // and the clock is set back after that
	clock.Step(-time.Hour)
	m.want("key", "a", 60, "ahead")
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
			m := marks{t, store}
			m.put("quiet", "0", 50, "c")
			m.put("busy", "0", 50, "c")
			for i := range most {
				clock.Advance(time.Millisecond)
				m.put("busy", strconv.Itoa(1+i%3), i, "c")
			}
			m.want("quiet", "0", 50, "c")
			m.want("busy", "0", 50, "")
			m.want("busy", "1", 0, "c")
			clock.Advance(time.Millisecond)
			m.put("busy", "2", 1, "c") // the same again is not one more
			m.want("busy", "1", 0, "c")
			m.want("busy", "3", most-1, "c")

			clock.Advance(CheckpointLife)
			m.put("busy", "5", 1, "c")
			m.want("busy", "3", most-1, "")
			m.want("busy", "5", 1, "c")
		})
	}
}

// TestMemoryIsBounded: beyond the bound of all keys together, the one that has
// the most loses its oldest; what is too old goes with what is put.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	clock := domain.NewManualClock(v2test.Noon)
	memory := newMemory(clock)
	m := marks{t, memory}
	m.put("walker", "w", 50, "c")
	for key := range 2 * memoryCheckpoints / keyCheckpoints {
		for i := range keyCheckpoints {
			m.put(strconv.Itoa(key), "l", i, "c")
		}
	}
	if memory.total != memoryCheckpoints {
		t.Errorf("%d checkpoints", memory.total)
	}
	m.want("walker", "w", 50, "c")

	clock.Advance(CheckpointLife + time.Second)
	m.put("0", "l", 1, "c")
	if memory.keys["0"].marks.Len() != 1 {
		t.Errorf("%d are kept that are too old", memory.keys["0"].marks.Len()-1)
	}
	for key := range memory.keys {
		m.drop(key, "l")
		m.drop(key, "w")
	}
	if memory.total != 0 || len(memory.keys) != 0 {
		t.Errorf("%d checkpoints of %d keys are left", memory.total, len(memory.keys))
	}
}

// TestRedisForgets: what no walk goes on with leaves Redis by itself.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	m := marks{t, redisAt(t, server.Addr(), domain.NewManualClock(v2test.Noon), t.Output())}
	m.put("key", "a", 20, "x")
	server.FastForward(CheckpointLife - time.Second)
	m.put("key", "a", 40, "y")
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
func crowd(s *service, t v2test.Partner, n int) (path string, ids []string, client domain.ClientID) {
	client = s.AddClient(t, "Client").ID
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
	tenant := s.AddPartner("Partner")
	path, ids, client := crowd(s, tenant, 9)
	s.list(path+"?limit=3", tenant.Key)
	s.facade.Store = redisAt(t, server.Addr(), clock, t.Output()) // as of another replica
	s.deleteUser(client, ids[0])
	p := s.list(path+"?limit=3&offset=3", tenant.Key)
	if got := fmt.Sprint(p.texts("id")); got != fmt.Sprint(ids[3:6]) || p.Total != 8 {
		t.Errorf("%s of %d", got, p.Total)
	}
	clock.Advance(16 * time.Minute)
	if got := fmt.Sprint(s.list(path+"?limit=3&offset=3", tenant.Key).texts("id")); got != fmt.Sprint(ids[4:7]) {
		t.Errorf("after 16 minutes: %s", got)
	}
	s.list(path+"?limit=2", tenant.Key) // a new walk drops what the old one left
	s.deleteUser(client, ids[1])
	if got := fmt.Sprint(s.list(path+"?limit=3&offset=6", tenant.Key).texts("id")); got != fmt.Sprint(ids[8:]) {
		t.Errorf("in a new walk: %s", got)
	}
}

// TestRedisDown: without Redis, walks count rows, and the log says so.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	var log bytes.Buffer
	s := start(t, setup{store: redisAt(t, server.Addr(), domain.NewManualClock(v2test.Noon), &log)})
	tenant := s.AddPartner("Partner")
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
	if !strings.Contains(log.String(), "checkpoints are unavailable") {
		t.Errorf("log: %s", &log)
	}
}
