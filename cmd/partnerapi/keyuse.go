package main

import (
	"context"
	"time"
)

// useEvery is how often the last use of keys is recorded.
const useEvery = 15 * time.Second

// recordWithin is how long the last record may take when the service stops.
const recordWithin = 5 * time.Second

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
