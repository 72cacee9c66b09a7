package main

import (
	"context"
	"time"

	"partnerapi/domain"
)

// useEvery is how often the last use of keys is recorded.
const useEvery = 15 * time.Second

// dailyRetry is when a daily refresh that failed, or that another process had
// begun, is looked at again.
const dailyRetry = 5 * time.Minute

// background starts what serve does beside answering requests. It ends with
// ctx.
func (s *service) background(ctx context.Context) {
	s.group.Go(func() { s.recordUses(ctx) })
	if !s.config.NoWork {
		s.group.Go(func() { s.refreshDaily(ctx) })
	}
}

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
		s.edge.Keys.Unrecorded(used)
		s.log.WarnContext(ctx, "the use of keys was not recorded; it will be tried again", "error", err)
	}
}

// refreshDaily runs the daily refresh when it is due: at the start, and after
// each midnight (UTC).
func (s *service) refreshDaily(ctx context.Context) {
	for {
		timer := time.NewTimer(s.refreshOnce(ctx))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// refreshOnce refreshes what is due and returns how long to wait for the next.
func (s *service) refreshOnce(ctx context.Context) time.Duration {
	now := s.clock.Now()
	today := domain.DateOf(now)
	if due, err := s.db.RefreshDue(ctx); err != nil || !due {
		if err != nil {
			s.log.WarnContext(ctx, "whether the daily refresh is due cannot be read; it will be tried again", "error", err)
			return dailyRetry
		}
		return today.AddDays(1).Time().Sub(now)
	}
	start := time.Now()
	ran, err := s.db.DailyRefresh(ctx, today, func(done, total int) {
		s.log.DebugContext(ctx, "daily refresh", "users", done, "of", total)
	})
	switch {
	case err != nil:
		s.log.WarnContext(ctx, "the daily refresh failed; it will be tried again", "error", err)
		return dailyRetry
	case !ran: // another process is at it
		return dailyRetry
	}
	s.log.InfoContext(ctx, "daily refresh done", "day", today.String(), "took", time.Since(start))
	return today.AddDays(1).Time().Sub(s.clock.Now())
}
