package v1compat

import (
	"context"
	"errors"
	"log/slog"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// Redis keeps checkpoints where several replicas find them: a hash for each
// list, which lasts as long as its walk goes on. While Redis cannot be reached
// there are no checkpoints, and walks count rows.
type Redis struct {
	client *redis.Client
	log    *slog.Logger
}

// NewRedis keeps checkpoints in Redis.
func NewRedis(client *redis.Client, log *slog.Logger) *Redis { return &Redis{client, log} }

func redisKey(list string) string { return "partnerapi/walk/" + list }

// Cursor returns what was put at the offset of a list.
func (r *Redis) Cursor(ctx context.Context, list string, offset int) (string, error) {
	cursor, err := r.client.HGet(ctx, redisKey(list), strconv.Itoa(offset)).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		r.report(ctx, err)
	}
	return cursor, nil
}

// Put remembers a cursor.
func (r *Redis) Put(ctx context.Context, list string, offset int, cursor string) error {
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, redisKey(list), strconv.Itoa(offset), cursor)
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

func (r *Redis) report(ctx context.Context, err error) {
	if err != nil {
		r.log.WarnContext(ctx, "checkpoints cannot be reached; walks count rows", "error", err)
	}
}
