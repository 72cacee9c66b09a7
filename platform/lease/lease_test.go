package lease_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"partnerapi/domain"
	"partnerapi/platform/lease"
)

var (
	quiet     = slog.New(slog.DiscardHandler)
	errAway   = &domain.Error{Code: domain.Unavailable, Message: "the database is away"}
	errBroken = errors.New("broken")
)

// table is a table of rows, each of which is claimed once.
type table struct {
	mu   sync.Mutex
	rows []int
}

func (t *table) add(rows ...int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, rows...)
}

func (t *table) claim(_ context.Context, free int) ([]int, time.Duration, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(free, len(t.rows))
	claimed := t.rows[:n:n]
	t.rows = t.rows[n:]
	if n > 0 {
		return claimed, 0, nil
	}
	return nil, time.Minute, nil
}

// TestQueue: all rows are done, never more at a time than may be, and a row that
// panics ends nothing.
func TestQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rows table
		var running, most, done atomic.Int32
		q := lease.NewQueue(lease.Config[int]{
			Name: "rows", Log: quiet, Claim: rows.claim, Concurrency: 3, StopWithin: time.Minute,
			Do: func(_ context.Context, row int) {
				defer running.Add(-1)
				if n := running.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Second)
				if row%10 == 0 {
					panic("planted")
				}
				done.Add(1)
			},
		})
		for row := range 100 {
			rows.add(row)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		began := time.Now()
		go func() { ended <- q.Run(ctx) }()
		time.Sleep(34*time.Second + time.Millisecond)
		synctest.Wait()
		if done.Load() != 90 || most.Load() != 3 {
			t.Errorf("%d are done after %s, %d at a time", done.Load(), time.Since(began), most.Load())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestWakes: a queue with nothing to do claims when it is woken, by itself or by a
// notification, and else when its wait is over.
func TestWakes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rows table
		var done atomic.Int32
		var notify func()
		var listened atomic.Int32
		q := lease.NewQueue(lease.Config[int]{
			Name: "rows", Log: quiet, Claim: rows.claim, Concurrency: 1, StopWithin: time.Minute,
			Do: func(context.Context, int) { done.Add(1) },
			Listen: func(ctx context.Context, wake func()) error {
				if listened.Add(1) == 1 {
					panic("planted")
				}
				notify = wake
				<-ctx.Done()
				return ctx.Err()
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- q.Run(ctx) }()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for n, wake := range []func(){q.Wake, notify, func() { time.Sleep(time.Minute) }} {
			rows.add(n)
			wake()
			synctest.Wait()
			if got := int(done.Load()); got != n+1 {
				t.Errorf("%d are done, want %d", got, n+1)
			}
		}
		stop()
		if err := <-ended; err != nil || listened.Load() != 2 {
			t.Errorf("%v, listened %d times", err, listened.Load())
		}
	})
}

// TestStop: a stop waits for rows in progress, but not for ever; Outlast has them go on
// for a while.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rows table
		rows.add(1, 2)
		release := make(chan struct{})
		q := lease.NewQueue(lease.Config[int]{
			Name: "rows", Log: quiet, Claim: rows.claim, Concurrency: 2, StopWithin: 10 * time.Second,
			Do: func(ctx context.Context, row int) {
				ctx, cancel := lease.Outlast(ctx, 5*time.Second)
				defer cancel()
				<-ctx.Done()
				if row == 2 {
					<-release
				}
			},
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- q.Run(ctx) }()
		synctest.Wait()
		began := time.Now()
		stop()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "rows are still in progress") || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		close(release)
	})
}

// TestLoop: a step that fails or panics is done again after the pause, which a wake-up
// does not shorten. Of errors in a row the log warns once.
func TestLoop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		var steps []time.Duration
		began := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		var loop *lease.Loop
		loop = lease.NewLoop(slog.New(slog.NewTextHandler(&lines, nil)), "count steps", time.Minute, func(context.Context) (time.Duration, error) {
			steps = append(steps, time.Since(began))
			loop.Wake()
			switch len(steps) {
			case 1, 2:
				return 0, errBroken
			case 3:
				panic("planted")
			case 4:
				return time.Hour, nil // woken at once
			case 5:
				return 0, nil
			}
			stop()
			return 0, nil
		})
		loop.Run(ctx)
		if got := fmt.Sprint(steps); got != "[0s 1m0s 2m0s 3m0s 3m0s 3m0s]" {
			t.Errorf("steps at %s", got)
		}
		for text, want := range map[string]int{"it will be retried": 1, "panicked": 1, "work continues": 1} {
			if n := strings.Count(lines.String(), text); n != want {
				t.Errorf("%q is logged %d times: %s", text, n, &lines)
			}
		}
	})
}

// TestMarks: marks that arrive while a group is written are one group; a mark that
// cannot be written fails alone, a lost lease is its own mark's error.
func TestMarks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var groups []int
		m := lease.NewMarks(lease.MarksConfig[int]{Log: quiet, Doing: "mark rows", MaxBatch: 4, Within: time.Minute})
		m.Write = func(_ context.Context, marks []int) (func(int) error, error) {
			groups = append(groups, len(marks))
			time.Sleep(time.Second)
			for _, mark := range marks {
				if mark == 7 {
					panic("planted")
				}
			}
			return func(mark int) error {
				if mark == 3 {
					return errBroken
				}
				return nil
			}, nil
		}
		var marking sync.WaitGroup
		for mark := range 9 {
			marking.Go(func() {
				time.Sleep(time.Duration(mark) * time.Millisecond)
				err := m.Mark(t.Context(), mark)
				if want := map[int]error{3: errBroken, 7: domain.ErrPanicked}[mark]; !errors.Is(err, want) {
					t.Errorf("%d: %v", mark, err)
				}
			})
		}
		marking.Wait()
		if got := fmt.Sprint(groups); got != "[1 4 4 1 1 1 1]" {
			t.Errorf("groups of %s", got)
		}
	})
}

// TestMarksOutlastOneAnother: a mark whose context ends takes no others of its group along,
// and is written itself where that has begun.
func TestMarksOutlastOneAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := lease.NewMarks(lease.MarksConfig[int]{Log: quiet, Doing: "mark rows", MaxBatch: 10, Within: time.Minute})
		groups := 0
		m.Write = func(ctx context.Context, _ []int) (func(int) error, error) {
			groups++
			time.Sleep(time.Second)
			return func(int) error { return nil }, ctx.Err()
		}
		var marking sync.WaitGroup
		for mark := range 5 {
			marking.Go(func() {
				time.Sleep(time.Duration(mark) * time.Millisecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for of, within := range map[int]time.Duration{1: 10 * time.Millisecond, 2: 1500 * time.Millisecond} { // in the second group
					if mark == of {
						ctx, cancel = context.WithTimeout(t.Context(), within)
						defer cancel()
					}
				}
				if err := m.Mark(ctx, mark); (err != nil) != (mark == 1) {
					t.Errorf("%d: %v", mark, err)
				}
			})
		}
		if marking.Wait(); groups != 2 {
			t.Errorf("%d groups", groups)
		}
	})
}

// TestMarkOutage: a mark is tried again while the database is away, for a bounded time.
func TestMarkOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for away, want := range map[int]error{2: nil, 100: errAway} {
			tries := 0
			m := lease.NewMarks(lease.MarksConfig[int]{Log: quiet, Doing: "mark rows", MaxBatch: 4, Within: 9900 * time.Millisecond})
			m.Write = func(ctx context.Context, _ []int) (func(int) error, error) {
				if tries++; tries <= away {
					return nil, errAway
				}
				return func(int) error { return nil }, ctx.Err()
			}
			if err := m.Mark(t.Context(), 1); !errors.Is(err, want) || tries != min(away+1, 50) {
				t.Errorf("away for %d tries: %v after %d", away, err, tries)
			}
		}
	})
}

// TestRenewsAfterSteps: rows in progress are renewed when the clock was set, also if that was while they were claimed, or
// after a stop, and again while the database is away.
func TestRenewsAfterSteps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var rows table
		var steps domain.Steps
		var mu sync.Mutex
		var renewed [][]int
		step := func() {
			steps.Note(time.Hour, time.Hour, 0)
			steps.Announce()
		}
		release, duringClaim, away := make(chan struct{}), false, 0
		q := lease.NewQueue(lease.Config[int]{
			Name: "rows", Log: quiet, Concurrency: 9, StopWithin: time.Minute, Stepped: steps.Next,
			Claim: func(ctx context.Context, free int) ([]int, time.Duration, error) {
				if duringClaim {
					step()
				}
				return rows.claim(ctx, free)
			},
			Do: func(context.Context, int) { <-release },
			Renew: func(_ context.Context, rows []int) error {
				mu.Lock()
				defer mu.Unlock()
				if away > 0 {
					away--
					return &domain.Error{Code: domain.Unavailable}
				}
				slices.Sort(rows)
				renewed = append(renewed, rows)
				return nil
			},
		})
		want := func(want ...int) {
			t.Helper()
			time.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if len(renewed) == 0 && want == nil {
				return
			}
			if len(renewed) == 0 || !slices.Equal(renewed[len(renewed)-1], want) {
				t.Errorf("renewed %v, want %v", renewed, want)
			}
			renewed = nil
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- q.Run(ctx) }()
		step()
		want() // none is in progress
		rows.add(1, 2)
		q.Wake()
		want()
		away = 3
		step()
		want(1, 2)
		rows.add(3)
		synctest.Wait()
		duringClaim = true
		q.Wake()
		want(1, 2, 3)
		stop()
		synctest.Wait()
		step()
		want(1, 2, 3)
		close(release)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
