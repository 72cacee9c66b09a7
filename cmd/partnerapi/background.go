package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/db/move"
	"partnerapi/domain"
	"partnerapi/platform/lease"
	"partnerapi/platform/mail"
)

// This file is what a process does every so often, and is no queue.

const (
	// aheadEvery is how often summaries are refreshed that are about to be stale:
	// often enough that none is stale before its turn comes.
	aheadEvery = 30 * time.Second
	// assignEvery is how often the background work polls for users who wait for a
	// course.
	assignEvery = time.Second
)

// refreshAhead keeps the summaries fresh of the clients that are read, so that
// reads do not have to.
func (w *background) refreshAhead(ctx context.Context) {
	lease.NewLoop(w.log, "refresh summaries ahead", aheadEvery, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		n, err := w.db.RefreshAhead(ctx)
		if n > 0 || err != nil {
			w.traces.Done(ctx, "refresh summaries ahead", began, err, slog.Int("clients", n))
			w.log.DebugContext(ctx, "summaries refreshed ahead", "clients", n)
		}
		return aheadEvery, err
	}).Run(ctx)
}

// assignWaiting gives courses to the users of large audiences, batch after batch.
func (w *background) assignWaiting(ctx context.Context) {
	lease.NewLoop(w.log, "assign courses", assignEvery, func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		n, err := w.db.AssignWaiting(ctx)
		if n == 0 && err == nil {
			return assignEvery, nil
		}
		w.traces.Done(ctx, "assign courses", began, err, slog.Int("users", n))
		return 0, err
	}).Run(ctx)
}

// dailyRetry is when a daily refresh that failed, or that another process had
// begun, is looked at again.
const dailyRetry = 5 * time.Minute

// refreshDaily runs the daily refresh when it is due: at the start, and after
// each midnight (UTC).
func (w *background) refreshDaily(ctx context.Context) {
	_ = domain.Recover(ctx, w.log, "recount", func() error { recountDue(ctx, w.db, w.log); return nil }) // it is logged
	lease.NewLoop(w.log, "refresh daily", dailyRetry, w.refreshOnce).Run(ctx)
}

// refreshOnce refreshes what is due and returns how long to wait for the next.
func (w *background) refreshOnce(ctx context.Context) (wait time.Duration, err error) {
	now := w.db.Now()
	today := domain.DateOf(now)
	if due, err := w.db.RefreshDue(ctx); err != nil || !due {
		return today.AddDays(1).Time().Sub(now), err
	}
	start := time.Now()
	ran, err := w.db.DailyRefresh(ctx, today, func(done, total int) {
		w.log.DebugContext(ctx, "daily refresh", "users", done, "of", total)
	})
	if ran || err != nil {
		w.traces.Done(ctx, "daily refresh", start, err)
	}
	if err != nil || !ran { // another process is at it
		return dailyRetry, err
	}
	w.log.InfoContext(ctx, "daily refresh done", "day", today.String(), "took", time.Since(start))
	recountDue(ctx, w.db, w.log)
	return today.AddDays(1).Time().Sub(w.db.Now()), nil
}

// recountDue recounts what an upgrade asked for. What fails is tried again after the
// next daily refresh, or by the next start.
func recountDue(ctx context.Context, d *db.DB, log *slog.Logger) {
	wrong, err := doctor.RecountDue(ctx, d)
	for _, m := range wrong {
		log.WarnContext(ctx, "a stored count was wrong and is corrected", "counter", m.Counter, "key", string(m.Key),
			"stored", m.Stored, "counted", m.Counted)
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "stored counts were not recounted; it will be tried again", "error", err)
	}
}

// movedEvery is how often partners that moved to another cell are looked for.
const movedEvery = time.Minute

// careForMoved puts to rest what partners left that moved to another cell, and deletes it
// when it was kept long enough.
func (w *background) careForMoved(ctx context.Context) {
	stuck := stuckMoves{log: w.log}
	lease.NewLoop(w.log, "care for partners that moved", movedEvery, func(ctx context.Context) (time.Duration, error) {
		if err := stuck.look(ctx, w.db); err != nil {
			return movedEvery, err
		}
		rested, err := move.Rest(ctx, w.db, db.MovesKnown)
		if err != nil {
			return movedEvery, err
		}
		deleted, err := move.CleanUp(ctx, w.db)
		if rested+deleted > 0 {
			w.log.InfoContext(ctx, "partners that moved to another cell", "rest", rested, "deleted", deleted)
		}
		return movedEvery, err
	}).Run(ctx)
}

// stuckMoves logs the moves that are stuck, with the partner's name: metrics and alerts
// have none.
type stuckMoves struct {
	log *slog.Logger
	// told has the step of each that was logged.
	told map[domain.PartnerID]move.Step
}

// look logs each move that is stuck, once for a step at which it is.
func (m *stuckMoves) look(ctx context.Context, d *db.DB) error {
	moves, err := move.List(ctx, d)
	if err != nil {
		return err
	}
	told := map[domain.PartnerID]move.Step{}
	for _, s := range moves {
		if !s.Stuck(d.Now()) {
			continue
		}
		if told[s.Partner] = s.Step; m.told[s.Partner] != s.Step {
			m.log.WarnContext(ctx, "the move of a partner is stuck; run the command move again", "partner", s.Name,
				"partner_id", s.Partner.String(), "step", string(s.Step), "cell", s.Cell, "began", s.BeganAt)
		}
	}
	m.told = told
	return nil
}

// overdueEvery is how often assignments that became overdue are looked up: their
// events are recorded within 10 minutes (decisions 8.1).
const overdueEvery = 2 * time.Minute

// noteOverdue records the events of assignments that became overdue.
func (w *background) noteOverdue(ctx context.Context) {
	lease.NewLoop(w.log, "note overdue assignments", overdueEvery, func(ctx context.Context) (time.Duration, error) {
		n, more, err := w.db.NoteOverdue(ctx)
		if n > 0 {
			w.log.DebugContext(ctx, "overdue assignments noted", "assignments", n)
		}
		if more {
			return 0, err
		}
		return overdueEvery, err
	}).Run(ctx)
}

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

// mailServerEvery is how often the mail server is asked whether it takes mail. With the
// 20 seconds that it may take to answer, scrapes and rules each minute, and the 2 minutes
// of the alert, an operator knows within 5 minutes.
const mailServerEvery = 30 * time.Second

// mailWatch is the server that mail is handed to, as an operator watches it: also
// while no mail is due. Nil is none.
type mailWatch struct {
	up  prometheus.Gauge
	log *slog.Logger
	// check connects as for a mail, and sends none.
	check func(context.Context) (string, error)
	away  bool
}

// newMailWatch watches the server of a sender; nil for a sender that has none.
func newMailWatch(sender mail.Sender, log *slog.Logger) *mailWatch {
	server, ok := sender.(interface {
		Check(context.Context) (string, error)
	})
	if !ok {
		return nil
	}
	up := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "partnerapi_mail_server_up",
		Help: "1 where the mail server let this process in when it was last asked, else 0.",
	})
	up.Set(1) // until it is asked
	return &mailWatch{up: up, log: log, check: server.Check}
}

// watch asks now and then, until ctx ends.
func (m *mailWatch) watch(ctx context.Context) {
	if m == nil {
		return
	}
	lease.NewLoop(m.log, "ask the mail server", mailServerEvery, func(ctx context.Context) (time.Duration, error) {
		m.ask(ctx)
		return mailServerEvery, nil
	}).Run(ctx)
}

// ask connects once, and logs what has changed.
func (m *mailWatch) ask(ctx context.Context) {
	_, err := domain.RecoverValue(ctx, m.log, "ask the mail server", func() (string, error) { return m.check(ctx) })
	switch {
	case ctx.Err() != nil:
	case err != nil:
		m.up.Set(0)
		if !m.away {
			m.log.WarnContext(ctx, "the mail server cannot be used; mail waits", "error", err)
		}
		m.away = true
	default:
		m.up.Set(1)
		if m.away {
			m.log.InfoContext(ctx, "the mail server can be used again")
		}
		m.away = false
	}
}
