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
// list, of offsets and of cursors with the time until which they hold. The hash
// goes when nothing was put for as long as a checkpoint lasts. While Redis
// cannot be reached there are no checkpoints, and walks count rows.
type Redis struct {
	client *redis.Client
	log    *slog.Logger
	clock  domain.Clock
	away   atomic.Bool // when it was last asked
}

// NewRedis keeps checkpoints in Redis.
func NewRedis(client *redis.Client, log *slog.Logger) *Redis {
	return &Redis{client: client, log: log, clock: domain.SystemClock{}}
}

func redisKey(list string) string { return "partnerapi/walk/" + list }

// Cursor returns what was put at the offset of a list in the last 15 minutes.
func (r *Redis) Cursor(ctx context.Context, list string, offset int) (string, error) {
	found, err := r.client.HGet(ctx, redisKey(list), strconv.Itoa(offset)).Result()
	r.report(ctx, err)
	text, cursor, _ := strings.Cut(found, " ")
	if until, err := strconv.ParseInt(text, 10, 64); err != nil || r.clock.Now().UnixMilli() > until {
		return "", nil
	}
	return cursor, nil
}

// Put remembers a cursor.
func (r *Redis) Put(ctx context.Context, list string, offset int, cursor string) error {
	until := strconv.FormatInt(r.clock.Now().Add(CheckpointLife).UnixMilli(), 10)
	_, err := r.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, redisKey(list), strconv.Itoa(offset), until+" "+cursor)
		p.Expire(ctx, redisKey(list), CheckpointLife)
		return nil
	})
	r.report(ctx, err)
	return nil
}

// Drop forgets all of a list.
func (r *Redis) Drop(ctx context.Context, list string) error {
	r.report(ctx, r.client.Del(ctx, redisKey(list)).Err())
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
