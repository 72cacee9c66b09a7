package v1compat

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"partnerapi/domain"
)

// Redis keeps checkpoints where several replicas find them: a hash for each
// list, of offsets and of cursors with the time until which they hold, and a
// sorted set for each key, of its checkpoints by that time. Both expire when
// nothing was put for as long as a checkpoint lasts. While Redis cannot be
// reached there are no checkpoints, and the log says so.
type Redis struct {
	client *redis.Client
	log    *slog.Logger
	clock  domain.Clock
	perKey int         // keyCheckpoints, or less in tests
	away   atomic.Bool // when it was last asked
}

// NewRedis keeps checkpoints in Redis.
func NewRedis(client *redis.Client, log *slog.Logger) *Redis {
	return &Redis{client: client, log: log, clock: domain.SystemClock{}, perKey: keyCheckpoints}
}

// redisSet is the sorted set of a key's checkpoints. The braces put all of a key
// into one slot of a cluster.
func redisSet(key string) string { return "partnerapi/walk/{" + key + "}" }

func redisHash(list List) string { return redisSet(list.Key) + "/" + list.Name }

// putScript puts a checkpoint, and removes those of the key that are too old or,
// oldest first, too many. Its keys are the list's hash and the key's set; its
// arguments the offset, the cursor, the time, the time until which the checkpoint
// holds (both in milliseconds), how long that is, and how many a key may have.
var putScript = redis.NewScript(`
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
	found, err := r.client.HGet(ctx, redisHash(list), strconv.Itoa(offset)).Result()
	r.report(ctx, err)
	text, cursor, _ := strings.Cut(found, " ")
	if until, err := strconv.ParseInt(text, 10, 64); err != nil || r.clock.Now().UnixMilli() > until {
		return "", nil
	}
	return cursor, nil
}

// Put remembers a cursor.
func (r *Redis) Put(ctx context.Context, list List, offset int, cursor string) error {
	now, life := r.clock.Now().UnixMilli(), CheckpointLife.Milliseconds()
	err := putScript.Run(ctx, r.client, []string{redisHash(list), redisSet(list.Key)},
		offset, cursor, now, now+life, life, r.perKey).Err()
	r.report(ctx, err)
	return nil
}

// Drop forgets all checkpoints of a list. Their marks in the key's set count
// until they are too old.
func (r *Redis) Drop(ctx context.Context, list List) error {
	r.report(ctx, r.client.Del(ctx, redisHash(list)).Err())
	return nil
}

// report tells when Redis goes away, and when it is back.
func (r *Redis) report(ctx context.Context, err error) {
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		if r.away.CompareAndSwap(true, false) {
			r.log.InfoContext(ctx, "checkpoints can be reached again")
		}
	case r.away.CompareAndSwap(false, true):
		r.log.WarnContext(ctx, "checkpoints cannot be reached; walks count rows", "error", err)
	}
}
