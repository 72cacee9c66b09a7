package main

import (
	"context"
	"time"

	"partnerapi/platform/lease"
)

// useEvery is how often the last use of keys is recorded.
const useEvery = 15 * time.Second

// recordWithin is how long the last record may take when the service stops.
const recordWithin = 5 * time.Second

// restart is how long after a panic what runs beside the requests begins again.
const restart = time.Second

// beside runs work, which lasts until ctx ends, beside the requests. After a panic it
// begins again.
func (s *service) beside(ctx context.Context, doing string, work func(context.Context)) {
	s.group.Go(func() {
		lease.NewLoop(s.log, doing, restart, func(ctx context.Context) (time.Duration, error) {
			work(ctx)
			return restart, nil
		}).Run(ctx)
	})
}

// recordUses writes now and then when keys were last used, until ctx ends.
func (s *service) recordUses(ctx context.Context) {
	tick := time.NewTicker(useEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.recordUse(ctx)
		}
	}
}

// recordUse writes when each key was last used.
func (s *service) recordUse(ctx context.Context) {
	used := s.edge.Keys.Used()
	if len(used) == 0 {
		return
	}
	if err := s.db.TouchKeys(ctx, used); err != nil {
		s.edge.Keys.Requeue(used)
		s.log.WarnContext(ctx, "the use of keys was not recorded; it will be tried again", "error", err)
	}
}
