package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/db"
	"partnerapi/db/cells"
	"partnerapi/db/doctor"
	"partnerapi/db/move"
	"partnerapi/domain"
	"partnerapi/platform/lease"
	"partnerapi/platform/mail"
)

// This file has the periodic work of a process that is not a queue.

const (
	// aheadEvery is the interval between refreshes of summaries that are about to be stale: short enough that none is.
	aheadEvery = 30 * time.Second
	// assignEvery is how often the background work polls for users who wait for a course.
	assignEvery = time.Second
)

// refreshAhead refreshes the summaries of clients that callers read, before they are stale, so that reads need not.
func (w *background) refreshAhead(ctx context.Context) {
	lease.NewLoop(w.log, "refresh summaries ahead", aheadEvery, func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		n, err := w.db.RefreshAhead(ctx)
		if n > 0 || err != nil {
			w.traces.RecordSpan(ctx, "refresh summaries ahead", start, err, slog.Int("clients", n))
			w.log.DebugContext(ctx, "summaries refreshed ahead", "clients", n)
		}
		return aheadEvery, err
	}).Run(ctx)
}

// assignWaiting assigns courses to the users of large audiences, in batches: without a pause while users wait.
func (w *background) assignWaiting(ctx context.Context) {
	lease.NewLoop(w.log, "assign courses", assignEvery, func(ctx context.Context) (time.Duration, error) {
		start := time.Now()
		n, err := w.db.AssignWaiting(ctx)
		if n == 0 && err == nil {
			return assignEvery, nil
		}
		w.traces.RecordSpan(ctx, "assign courses", start, err, slog.Int("users", n))
		return 0, err
	}).Run(ctx)
}

// settleEvery is the interval between searches for addresses and other texts of users without a key. An earlier release,
// which may run alongside this one during an upgrade, stores such texts.
const settleEvery = 5 * time.Second

// settleEmails computes the keys of addresses that an earlier release stored.
func (w *background) settleEmails(ctx context.Context) {
	w.settle(ctx, "email addresses", "addresses", w.db.SettleEmails)
}

// settleUsers computes the keys of the last names, departments and managers that an earlier release stored.
func (w *background) settleUsers(ctx context.Context) {
	w.settle(ctx, "users", "users", w.db.SettleSortKeys)
}

// settle computes keys of some kind by batch, which returns how many it has computed.
func (w *background) settle(ctx context.Context, of, counted string, batch func(context.Context) (int, error)) {
	lease.NewLoop(w.log, "compute keys of "+of, settleEvery, func(ctx context.Context) (time.Duration, error) {
		n, err := batch(ctx)
		if n == 0 || err != nil {
			return settleEvery, err
		}
		w.log.DebugContext(ctx, "keys of "+of+" computed", counted, n)
		return 0, nil
	}).Run(ctx)
}

// dailyRetry is the delay until a failed daily refresh, or one that another process started, is checked again. It is
// also the longest time until the date is read again: the clock may be set, or stand still in a suspension.
const dailyRetry = 5 * time.Minute

// refreshDaily runs the daily refresh at the start, if it is due, and after each midnight (UTC). At the start it also
// runs due recounts.
func (w *background) refreshDaily(ctx context.Context) {
	_ = domain.Recover(ctx, w.log, "recount", func() error { recountDue(ctx, w.db, w.log); return nil }) // a panic is logged
	lease.NewLoop(w.log, "refresh daily", dailyRetry, w.refreshIfDue).Run(ctx)
}

// refreshIfDue runs the daily refresh if it is due, and then due recounts. It returns how long to wait until the next
// call: until midnight (UTC), and at most dailyRetry. With an error, the wait is unused.
func (w *background) refreshIfDue(ctx context.Context) (wait time.Duration, err error) {
	today := domain.DateOf(w.db.Now())
	if due, err := w.db.RefreshDue(ctx); err != nil || !due {
		return w.untilTomorrow(), err
	}
	start := time.Now()
	ran, err := w.db.DailyRefresh(ctx, today, func(done, total int) {
		w.log.DebugContext(ctx, "daily refresh", "users", done, "of", total)
	})
	if ran || err != nil {
		w.traces.RecordSpan(ctx, "daily refresh", start, err)
	}
	if err != nil || !ran { // without an error, another process runs it
		return dailyRetry, err
	}
	w.log.InfoContext(ctx, "daily refresh done", "day", today.String(), "took", time.Since(start))
	recountDue(ctx, w.db, w.log)
	return w.untilTomorrow(), nil
}

// untilTomorrow returns the time until the next midnight (UTC), at most dailyRetry.
func (w *background) untilTomorrow() time.Duration {
	now := w.db.Now()
	return min(domain.DateOf(now).AddDays(1).Time().Sub(now), dailyRetry)
}

// recountDue runs the recounts that an upgrade scheduled. A failure is retried after the next daily refresh, or at
// the next start.
func recountDue(ctx context.Context, d *db.DB, log *slog.Logger) {
	miscounts, err := doctor.RecountDue(ctx, d)
	for _, m := range miscounts {
		log.WarnContext(ctx, "a stored count was wrong and has been corrected", "counter", m.Counter, "key", string(m.Key),
			"stored", m.Stored, "counted", m.Counted)
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "stored counts were not recounted; the recount will be retried", "error", err)
	}
}

// movedEvery is the polling interval for partners that moved to another cell.
const movedEvery = time.Minute

// cleanUpMoved suspends the background work for partners that moved to another cell, deletes their rows when the time
// to keep them is over, and logs stuck moves.
func (w *background) cleanUpMoved(ctx context.Context) {
	stuck := stuckMoves{log: w.log}
	lease.NewLoop(w.log, "care for partners that moved", movedEvery, func(ctx context.Context) (time.Duration, error) {
		if err := stuck.logNew(ctx, w.db); err != nil {
			return movedEvery, err
		}
		suspended, err := move.Suspend(ctx, w.db, cells.MovesKnown) // once all processes know of the move
		if err != nil {
			return movedEvery, err
		}
		deleted, err := move.CleanUp(ctx, w.db)
		if suspended+deleted > 0 {
			w.log.InfoContext(ctx, "partners that moved to another cell", "suspended", suspended, "deleted", deleted)
		}
		return movedEvery, err
	}).Run(ctx)
}

// stuckMoves logs stuck moves. The lines have the partner's name, which metrics and alerts lack.
type stuckMoves struct {
	log *slog.Logger
	// logged maps partners to the last logged step.
	logged map[domain.PartnerID]move.Step
}

// logNew logs each stuck move, once per step.
func (m *stuckMoves) logNew(ctx context.Context, d *db.DB) error {
	moves, err := move.List(ctx, d)
	if err != nil {
		return err
	}
	logged := map[domain.PartnerID]move.Step{}
	for _, s := range moves {
		if !s.Stuck(d.Now()) {
			continue
		}
		logged[s.Partner] = s.Step
		if m.logged[s.Partner] != s.Step {
			m.log.WarnContext(ctx, "the move of a partner is stuck; run partnerapi move again", "partner", s.Name,
				"partner_id", s.Partner.String(), "step", string(s.Step), "cell", s.Cell, "began", s.BeganAt)
		}
	}
	m.logged = logged
	return nil
}

// overdueEvery is the polling interval for overdue assignments: their events are due in 10 minutes (decisions 8.1).
const overdueEvery = 2 * time.Minute

// recordOverdue records the events of assignments that became overdue.
func (w *background) recordOverdue(ctx context.Context) {
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

// useEvery is the interval between writes of keys' last use.
const useEvery = 15 * time.Second

// recordWithin is the timeout of the last write when the service stops.
const recordWithin = 5 * time.Second

// restartDelay is the delay after a panic before background work restarts.
const restartDelay = time.Second

// runInBackground runs work in a goroutine until ctx ends. If work returns or panics before, it is run again.
func (s *service) runInBackground(ctx context.Context, action string, work func(context.Context)) {
	s.group.Go(func() {
		lease.NewLoop(s.log, action, restartDelay, func(ctx context.Context) (time.Duration, error) {
			work(ctx)
			return restartDelay, nil
		}).Run(ctx)
	})
}

// recordUse writes the last use of keys. If that fails, the uses are kept for the next write.
func (s *service) recordUse(ctx context.Context) {
	used := s.edge.Keys.Used()
	if len(used) == 0 {
		return
	}
	if err := s.db.TouchKeys(ctx, used); err != nil {
		s.edge.Keys.Requeue(used)
		if !errors.Is(err, context.Canceled) { // else the service stops, and records them at its end
			s.log.WarnContext(ctx, "the last uses of keys were not recorded; the write will be retried", "error", err)
		}
	}
}

// clockEvery is the interval between readings of the clock. If an implausible day is over sooner, no process may have
// noticed it: work asks for itself whether the clock is trusted.
const clockEvery = 15 * time.Second

// clockWatch reads the clock, counts how long an implausible day lasts, and tells operators why work waits.
type clockWatch struct {
	db   *db.DB
	log  *slog.Logger
	held *prometheus.GaugeVec
	hold db.ClockHold // the last one
}

// newClockWatch returns a watch of the database's clock.
func newClockWatch(d *db.DB, log *slog.Logger) *clockWatch {
	w := &clockWatch{db: d, log: log, held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "partnerapi_clock_held",
		Help: "1 if work that cannot be undone waits because of the clock: a step forward, or a date far from the last daily refresh.",
	}, []string{"reason"})}
	w.set("")
	return w
}

// watch reads the clock until ctx ends: periodically, and when it was set.
func (w *clockWatch) watch(ctx context.Context) {
	loop := lease.NewLoop(w.log, "watch the clock", clockEvery, func(ctx context.Context) (time.Duration, error) {
		return clockEvery, w.read(ctx)
	})
	stepped := w.db.Stepped()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-stepped:
				stepped = w.db.Stepped() // before waking, so that no step is missed
				loop.Wake()
			}
		}
	}()
	loop.Run(ctx)
}

// read reads the clock once, sets the metric, and logs a change.
func (w *clockWatch) read(ctx context.Context) error {
	state, err := w.db.WatchClock(ctx)
	if err != nil {
		return err
	}
	hold := state.Hold()
	if hold == w.hold {
		return nil
	}
	switch hold {
	case db.HoldDay:
		w.log.WarnContext(ctx, "the clock's date is far from the last daily refresh, so deletions, renewals and scheduled simulations wait; "+
			"correct the clock or, if it is right, start serve or work with --accept-clock",
			"now", state.Now, "last_refresh", state.LastRefresh.String(), "until", state.Until())
	case db.HoldStep:
		w.log.WarnContext(ctx, "the clock was set forward, so deletions, renewals and scheduled simulations wait for two minutes", "now", state.Now)
	default:
		w.log.InfoContext(ctx, "work no longer waits because of the clock", "now", state.Now)
	}
	w.set(hold)
	return nil
}

// set notes the hold, and sets the metric.
func (w *clockWatch) set(hold db.ClockHold) {
	w.hold = hold
	for _, h := range db.ClockHolds {
		value := 0.0
		if h == hold {
			value = 1
		}
		w.held.WithLabelValues(string(h)).Set(value)
	}
}

// mailServerEvery is the interval between probes of the mail server. With the probe's timeout of 20 seconds,
// scrapes and rules each minute, and the alert's 2 minutes, an operator knows within 5 minutes.
const mailServerEvery = 30 * time.Second

// mailWatch monitors the mail server, even while no email is due. A nil mailWatch does nothing.
type mailWatch struct {
	up  prometheus.Gauge
	log *slog.Logger
	// check connects as for an email, and sends none.
	check func(context.Context) (string, error)
	down  bool // the last probe failed
}

// newMailWatch returns a monitor of the sender's mail server; nil if the sender has none, as it writes files.
func newMailWatch(sender mail.Sender, log *slog.Logger) *mailWatch {
	server, ok := sender.(interface {
		Check(context.Context) (string, error)
	})
	if !ok {
		return nil
	}
	up := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "partnerapi_mail_server_up",
		Help: "1 if this process could log in to the mail server at the last check, otherwise 0.",
	})
	up.Set(1) // until the first probe
	return &mailWatch{up: up, log: log, check: server.Check}
}

// watch probes the server periodically until ctx ends. It does nothing if m is nil: there is no server.
func (m *mailWatch) watch(ctx context.Context) {
	if m == nil {
		return
	}
	lease.NewLoop(m.log, "ask the mail server", mailServerEvery, func(ctx context.Context) (time.Duration, error) {
		m.probe(ctx)
		return mailServerEvery, nil
	}).Run(ctx)
}

// probe connects to the server once, sets the metric, and logs a change of state.
func (m *mailWatch) probe(ctx context.Context) {
	_, err := domain.RecoverValue(ctx, m.log, "ask the mail server", func() (string, error) { return m.check(ctx) })
	switch {
	case ctx.Err() != nil: // the process stops: the error says nothing about the server
	case err != nil:
		m.up.Set(0)
		if !m.down {
			m.log.WarnContext(ctx, "the mail server is unavailable; emails wait", "error", err)
		}
		m.down = true
	default:
		m.up.Set(1)
		if m.down {
			m.log.InfoContext(ctx, "the mail server is available again")
		}
		m.down = false
	}
}
