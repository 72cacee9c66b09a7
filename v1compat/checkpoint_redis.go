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

// Redis keeps checkpoints where several replicas find them: a hash for each
// list, of offsets and of cursors with the time until which they hold, and a
// sorted set for each key, of its checkpoints by that time. Both expire when
// nothing was put for as long as a checkpoint lasts. While Redis cannot be
// reached there are no checkpoints, and the log says so.
type Redis struct {
	connections RedisConnections
	log         *slog.Logger
	clock       domain.Clock
	perKey      int         // keyCheckpoints, or less in tests
	away        atomic.Bool // when it was last asked
}

// RedisConnections lends connections to Redis.
type RedisConnections interface {
	// Use calls fn with a connection, again where that was closed, and returns its error.
	Use(ctx context.Context, fn func(redis.Conn) error) error
}

// NewRedis keeps checkpoints in Redis.
func NewRedis(connections RedisConnections, log *slog.Logger) *Redis {
	return &Redis{connections: connections, log: log, clock: domain.SystemClock{}, perKey: keyCheckpoints}
}

// redisSet is the sorted set of a key's checkpoints. The braces put all of a key
// into one slot of a cluster.
func redisSet(key string) string { return "partnerapi/walk/{" + key + "}" }

func redisHash(list List) string { return redisSet(list.Key) + "/" + list.Name }

// putScript puts a checkpoint, and removes those of the key that are too old or,
// oldest first, too many. Its keys are the list's hash and the key's set; its
// arguments the offset, the cursor, the time, the time until which the checkpoint
// holds (both in milliseconds), how long that is, and how many a key may have.
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

// Cursor returns what was put at the offset of a list in the last 15 minutes.
func (r *Redis) Cursor(ctx context.Context, list List, offset int) (string, error) {
	var found string
	r.use(ctx, func(c redis.Conn) (err error) {
		found, err = redis.String(c.Do("HGET", redisHash(list), offset))
		return err
	})
	text, cursor, _ := strings.Cut(found, " ")
	if until, err := strconv.ParseInt(text, 10, 64); err != nil || r.clock.Now().UnixMilli() > until {
		return "", nil
	}
	return cursor, nil
}

// Put remembers a cursor.
func (r *Redis) Put(ctx context.Context, list List, offset int, cursor string) error {
	now, life := r.clock.Now().UnixMilli(), CheckpointLife.Milliseconds()
	r.use(ctx, func(c redis.Conn) error {
		_, err := putScript.Do(c, redisHash(list), redisSet(list.Key), offset, cursor, now, now+life, life, r.perKey)
		return err
	})
	return nil
}

// Drop forgets all checkpoints of a list. Their marks in the key's set count
// until they are too old.
func (r *Redis) Drop(ctx context.Context, list List) error {
	r.use(ctx, func(c redis.Conn) error {
		_, err := c.Do("DEL", redisHash(list))
		return err
	})
	return nil
}

// use calls Redis, and logs when it goes away, and when it is back.
func (r *Redis) use(ctx context.Context, fn func(redis.Conn) error) {
	err := r.connections.Use(ctx, fn)
	switch {
	case err == nil || errors.Is(err, redis.ErrNil):
		if r.away.CompareAndSwap(true, false) {
			r.log.InfoContext(ctx, "checkpoints can be reached again")
		}
	case r.away.CompareAndSwap(false, true):
		r.log.WarnContext(ctx, "checkpoints cannot be reached; walks count rows", "error", err)
	}
}
