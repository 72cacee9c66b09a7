package db_test

import (
	"context"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// following adds a client with a user, which follows frameworks, and returns its assignments too.
func (w *world) following(frameworks ...domain.Framework) (domain.ClientID, []domain.FrameworkAssignmentID) {
	w.T.Helper()
	e, ids := newEvaluatedRows(w.AddClient()), make([]domain.FrameworkAssignmentID, len(frameworks))
	e.user(nil)
	for i, f := range frameworks {
		ids[i] = e.follow(f.ID, nil)
	}
	w.store(e)
	return e.client, ids
}

// evaluations are those of a client's framework assignments, as they are stored.
func (w *world) evaluations(client domain.ClientID) map[domain.FrameworkAssignmentID]domain.Evaluation {
	w.T.Helper()
	all, err := db.Evaluations(context.Background(), w.DB, client)
	w.Must(err)
	return all
}

// TestEvaluateStale: evaluations older than five minutes are made again, in one
// statement after a look, and others are not.
func TestEvaluateStale(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	client, _ := w.following(domain.Frameworks[:3]...)
	another, never := w.following(domain.Frameworks[0])
	stale := func(wantStatements int, wantAt time.Time) {
		t.Helper()
		tenant, err := w.Tenant(w.caller(), client)
		w.Must(err)
		if n := counter.During(func() { w.Must(tenant.EvaluateStale(w.caller())) }); n != wantStatements {
			t.Errorf("%d statements, want %d", n, wantStatements)
		}
		for _, e := range w.evaluations(client) {
			if !e.At.Equal(wantAt) {
				t.Errorf("evaluated at %v, want %v", e.At, wantAt)
			}
		}
	}
	const evaluated = 3 // the check, the stamp and the evaluation
	stale(evaluated, noon)
	w.Clock.Advance(domain.SummaryAge)
	stale(1, noon)
	w.Clock.Advance(time.Microsecond)
	stale(evaluated, w.Clock.Now())
	w.Clock.Step(-10 * time.Minute) // an evaluation that lies ahead of the clock is stale
	stale(evaluated, w.Clock.Now())
	if e := w.evaluations(another)[never[0]]; e.At.Unix() != 0 || len(e.Requirements) != 0 {
		t.Errorf("another client's was evaluated: %+v", e)
	}
}

// TestEvaluateInAChange: one assignment is evaluated at once, with what the change
// wrote before; another evaluator waits for it and finds it fresh.
func TestEvaluateInAChange(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w := newWorld(t)
	gdpr, _ := domain.FrameworkByID("gdpr")
	client, ids := w.following(gdpr, domain.Frameworks[0])
	second := make(chan error, 1)
	w.Must(w.ChangeOf(ctx, client, func(ctx1 context.Context, c *db.Change, tenant *db.Tenant) error {
		if err := w.ExecIn(ctx1, `INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
			VALUES (?, ?, 'compliance', 'pdf', 'ready', ?, ?)`, client, db.NewID[domain.ReportKind](), noon, noon); err != nil {
			return err
		}
		if err := c.Evaluate(ctx1, tenant, ids[0]); err != nil {
			return err
		}
		w.Clock.Advance(time.Second)
		go func() { second <- tenant.EvaluateStale(w.As(ctx)) }()
		return w.waitForLock(ctx)
	}))
	w.Must(<-second)

	all := w.evaluations(client)
	if got := all[ids[0]]; !got.At.Equal(noon) || said(got, "R1") != "1 compliance report generated within 90 days; 1; true" {
		t.Errorf("%+v", got)
	}
	if got := all[ids[1]]; !got.At.Equal(noon.Add(time.Second)) {
		t.Errorf("the other one was evaluated at %v", got.At)
	}
}

// waitForLock waits until a statement waits for a lock.
func (w *world) waitForLock(ctx context.Context) error {
	for waiting := false; !waiting; {
		err := w.SQL().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
			WHERE NOT l.granted AND a.datname = current_database())`).Scan(&waiting)
		if err != nil {
			return err
		}
	}
	return nil
}

// TestEvaluatorsAtOnce: evaluators and those who remove assignments never
// deadlock.
func TestEvaluatorsAtOnce(t *testing.T) {
	w := newWorld(t)
	var clients []domain.ClientID
	for range 3 {
		client, _ := w.following(domain.Frameworks...)
		clients = append(clients, client)
	}
	w.atOnce(8, func(i int) error {
		for n := range 6 {
			w.Clock.Advance(domain.SummaryAge / 2)
			tenant, err := w.Tenant(w.caller(), clients[(i+n)%3])
			if err == nil {
				err = tenant.EvaluateStale(w.caller())
			}
			if err == nil && i == 0 {
				_, err = w.SQL().ExecContext(t.Context(), `DELETE FROM framework_assignments WHERE id =
					(SELECT id FROM framework_assignments WHERE client_id = $1 ORDER BY id DESC LIMIT 1)`, tenant.ID)
			}
			if err == nil && i == 1 {
				err = db.EvaluateAll(t.Context(), w.DB)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, client := range clients {
		all := w.evaluations(client)
		if len(all) != 9 {
			t.Errorf("%d evaluations", len(all))
		}
		for _, e := range all {
			if e.Total == 0 || e.At.Before(noon) {
				t.Errorf("not evaluated: %+v", e)
			}
		}
	}
}
