package idmap

import (
	"context"
	"log/slog"
	"time"

	"partnerapi/db/pg"
)

// heartbeat is how long the listening connection may be silent before it is
// pinged: the longest that numbers in the cache are stale after a connection
// was lost without an error.
const heartbeat = 10 * time.Second

// An event is a change of what Watch knows.
type event int

const (
	listening event = iota // from now on the cache is used
	changed                // numbers were moved or retired
	lost                   // from now on the cache is bypassed
)

// Watch keeps the cache from becoming stale: it listens, on a connection of its
// own, for numbers that an import moves or a deletion retires, in
// any process, and invalidates the cache. While it is not listening the cache is
// bypassed. It returns when the context is done; a lost connection is logged and
// retried.
func (r *Registry) Watch(ctx context.Context, log *slog.Logger) {
	bypass := func() {
		r.cache.reset(false)
		r.observe(lost)
	}
	defer bypass()
	r.db.Follow(ctx, "id_registry", heartbeat, func(why pg.ListenEvent) error {
		switch why {
		case pg.Listening:
			r.cache.reset(true)
			r.observe(listening)
		case pg.Notified:
			r.cache.reset(true)
			r.observe(changed)
		}
		return nil
	}, func(err error) {
		bypass()
		log.WarnContext(ctx, "the id registry cannot listen for changes; its cache is bypassed", "error", err)
	})
}
