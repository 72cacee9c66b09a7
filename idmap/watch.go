package idmap

import (
	"context"
	"log/slog"
	"time"

	"partnerapi/db/pg"
)

// heartbeat is how long the listening connection may be silent before it is pinged. If the connection is lost without
// an error, cached numbers may be stale for this time.
const heartbeat = 10 * time.Second

// An event is an event of Watch, for Registry.observe.
type event int

const (
	listening event = iota // the cache is used after this event
	changed                // an import or a deletion changed numbers
	lost                   // the cache is bypassed after this event
)

// Watch keeps the cache from becoming stale: it listens, on its own connection, for changes of numbers by imports
// and deletions of any process, and empties the cache after each. While it is not listening, the cache is bypassed.
// After an error it logs a warning and connects again. It returns when the context is done.
func (r *Registry) Watch(ctx context.Context, log *slog.Logger) {
	bypass := func() {
		r.cache.reset(false)
		r.observe(lost)
	}
	defer bypass()
	r.db.Follow(ctx, "id_registry", heartbeat, func(e pg.ListenEvent) error {
		switch e {
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
		log.WarnContext(ctx, "the ID registry cannot listen for changes; its cache is bypassed", "error", err)
	})
}
