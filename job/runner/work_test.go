package runner_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/domain"
	"partnerapi/job"
	"partnerapi/job/runner"
	"partnerapi/v2/v2test"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func open(t *testing.T) *db.DB {
	t.Helper()
	d, err := db.Open(dbtest.URL(t, v2test.Schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// enqueue asks for n mails.
func enqueue(t *testing.T, d *db.DB, n int) {
	t.Helper()
	mails := make([]job.SendMail, n)
	for i := range mails {
		mails[i].Request = db.NewID[domain.MessageKind]()
	}
	err := d.Tx(t.Context(), func(ctx context.Context) error {
		return job.NewQueue(d).Enqueue(ctx, job.Now(mails...)...)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// states counts the jobs by state.
func states(t *testing.T, d *db.DB, state string) (n int) {
	t.Helper()
	if err := d.SQL().QueryRowContext(t.Context(), "SELECT count(*) FROM river_job WHERE state::text = $1", state).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// start runs work until stop, which returns what Run returned.
func start(t *testing.T, d *db.DB, workers int, do func(context.Context, job.SendMail) error) (stop func() error) {
	t.Helper()
	pool := d.Beside(runner.Conns(workers))
	runner, err := runner.New(pool, workers, slog.New(slog.NewTextHandler(t.Output(), nil)), func(all *river.Workers) {
		river.AddWorker(all, river.WorkFunc(func(ctx context.Context, j *river.Job[job.SendMail]) error { return do(ctx, j.Args) }))
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		defer pool.Close()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// TestEachOnce: two processes share the work, and nothing is done twice.
func TestEachOnce(t *testing.T) {
	const n = 300
	d := open(t)
	enqueue(t, d, n)
	done := make(chan domain.MessageID, 2*n)
	do := func(_ context.Context, m job.SendMail) error {
		done <- m.Request
		return nil
	}
	stops := []func() error{start(t, d, 10, do), start(t, d, 10, do)}
	seen := map[domain.MessageID]bool{}
	for range n {
		seen[<-done] = true
	}
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	if len(seen) != n || len(done) != 0 || states(t, d, "completed") != n {
		t.Errorf("%d of %d mails, %d more, %d completed", len(seen), n, len(done), states(t, d, "completed"))
	}
}

// TestStopFinishes: a stop tells jobs not to begin anything. One that had begun
// finishes, one that had not is put back, and no other is taken.
func TestStopFinishes(t *testing.T) {
	d := open(t)
	enqueue(t, d, 2)
	begun, release := make(chan struct{}, 2), make(chan struct{})
	var first atomic.Bool
	stop := start(t, d, 2, func(ctx context.Context, _ job.SendMail) error {
		mine := first.CompareAndSwap(false, true)
		begun <- struct{}{}
		<-ctx.Done()
		if mine {
			<-release
			return nil
		}
		return river.JobSnooze(time.Hour)
	})
	<-begun
	<-begun
	enqueue(t, d, 1)
	stopped := make(chan error)
	go func() { stopped <- stop() }()
	for states(t, d, "scheduled") == 0 { // until the second is put back
		if t.Context().Err() != nil {
			t.Fatal("nothing is put back")
		}
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	if states(t, d, "completed") != 1 || states(t, d, "scheduled") != 1 || states(t, d, "available") != 1 {
		t.Errorf("%d completed, %d put back, %d not taken", states(t, d, "completed"), states(t, d, "scheduled"), states(t, d, "available"))
	}
}

// TestDeadProcess: a job that a process took and did not finish, because it was
// killed, is done by the next one, although it has failed often before.
func TestDeadProcess(t *testing.T) {
	d := open(t)
	enqueue(t, d, 1)
	_, err := d.SQL().ExecContext(t.Context(), "UPDATE river_job SET state = 'running', attempt = 20, attempted_by = '{dead}', attempted_at = now() - interval '76 seconds'")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 1)
	stop := start(t, d, 5, func(context.Context, job.SendMail) error {
		done <- struct{}{}
		return nil
	})
	<-done
	if err := stop(); err != nil || states(t, d, "completed") != 1 {
		t.Errorf("%v, %d completed", err, states(t, d, "completed"))
	}
}
