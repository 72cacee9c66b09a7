package v1compat

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"partnerapi/domain"
)

// Redis keeps checkpoints that replicas share: a hash per list, of offsets to cursors with their expiry, and a
// sorted set per key, of its checkpoints by expiry. Both expire CheckpointLife after the last write. While Redis is
// unreachable there are no checkpoints, and the log says so.
type Redis struct {
	connections RedisConnections
	log         *slog.Logger
	clock       domain.Clock
	perKey      int         // keyCheckpoints, or less in tests
	failed      atomic.Bool // the last use failed
}

// RedisConnections provides connections to Redis.
type RedisConnections interface {
	// Use calls fn with a connection, again if Redis had closed that, and returns its error.
	Use(ctx context.Context, fn func(redis.Conn) error) error
}

// NewRedis returns a store in Redis. The clock should be that of the other replicas.
func NewRedis(connections RedisConnections, clock domain.Clock, log *slog.Logger) *Redis {
	return &Redis{connections: connections, log: log, clock: clock, perKey: keyCheckpoints}
}

// redisSet returns the name of the set of a key's checkpoints. Braces keep a key's entries in one slot of a cluster.
func redisSet(key string) string { return "partnerapi/walk/{" + key + "}" }

// redisHash returns the name of the hash of a list's checkpoints.
func redisHash(list List) string { return redisSet(list.Key) + "/" + list.Name }

// putScript stores a checkpoint, and deletes those of the key that are expired or, oldest first, too many. Its keys
// are the list's hash and the key's set; its arguments the offset, the cursor, now, the expiry (both in
// milliseconds), the lifetime, and the maximum per key.
var putScript = redis.NewScript(2, `
local hash, set = KEYS[1], KEYS[2]
local offset, cursor, now, till, life, most = unpack(ARGV)

redis.call('HSET', hash, offset, till .. ' ' .. cursor)
redis.call('PEXPIRE', hash, life)
redis.call('ZADD', set, till, hash .. ' ' .. offset)
redis.call('PEXPIRE', set, life)

local gone = redis.call('ZRANGEBYSCORE', set, '-inf', '(' .. now)
local over = redis.call('ZCARD', set) - most
if over > #gone then
	gone = redis.call('ZRANGE', set, 0, over - 1)
end
for _, mark in ipairs(gone) do
	local space = string.find(mark, ' ', 1, true)
	redis.call('HDEL', string.sub(mark, 1, space - 1), string.sub(mark, space + 1))
	redis.call('ZREM', set, mark)
end
`)

// Cursor returns the cursor at the offset of a list; empty if it is absent or expired, or Redis is unreachable.
func (r *Redis) Cursor(ctx context.Context, list List, offset int) (string, error) {
	var found string
	r.use(ctx, func(c redis.Conn) (err error) {
		found, err = redis.String(c.Do("HGET", redisHash(list), offset))
		return err
	})
	expiry, cursor, _ := strings.Cut(found, " ") // as putScript joins them; both empty for none
	if until, err := strconv.ParseInt(expiry, 10, 64); err != nil || r.clock.Now().UnixMilli() > until {
		return "", nil
	}
	return cursor, nil
}

// Put stores a cursor. If Redis is unreachable, it is not stored, which is no error.
func (r *Redis) Put(ctx context.Context, list List, offset int, cursor string) error {
	now, life := r.clock.Now().UnixMilli(), CheckpointLife.Milliseconds()
	r.use(ctx, func(c redis.Conn) error {
		_, err := putScript.Do(c, redisHash(list), redisSet(list.Key), offset, cursor, now, now+life, life, r.perKey)
		return err
	})
	return nil
}

// Drop deletes all checkpoints of a list. Until they expire, their entries in the key's set count towards perKey.
func (r *Redis) Drop(ctx context.Context, list List) error {
	r.use(ctx, func(c redis.Conn) error {
		_, err := c.Do("DEL", redisHash(list))
		return err
	})
	return nil
}

// use calls fn with a connection, and logs when Redis becomes unreachable and when it is back.
func (r *Redis) use(ctx context.Context, fn func(redis.Conn) error) {
	err := r.connections.Use(ctx, fn)
	switch {
	case err == nil || errors.Is(err, redis.ErrNil):
		if r.failed.CompareAndSwap(true, false) {
			r.log.InfoContext(ctx, "checkpoints are available again")
		}
	case r.failed.CompareAndSwap(false, true):
		r.log.WarnContext(ctx, "checkpoints are unavailable; pages skip rows by offset", "error", err)
	}
}
