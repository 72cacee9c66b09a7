package lease_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"partnerapi/platform/lease"
)

// A loop polls: a step says how long to wait for the next one.
func ExampleLoop() {
	ctx, cancel := context.WithCancel(context.Background())
	steps := 0
	lease.NewLoop(slog.New(slog.DiscardHandler), "count", time.Second, func(context.Context) (time.Duration, error) {
		if steps++; steps == 3 {
			cancel()
		}
		return 0, nil
	}).Run(ctx)
	fmt.Println(steps)
	// Output: 3
}

// A mark whose lease had ended is an error of the call that marks that row, and of no other.
func ExampleMarks() {
	marks := lease.NewMarks(lease.MarksConfig[string]{
		Log: slog.New(slog.DiscardHandler), Doing: "mark mails", MaxBatch: 100, Within: time.Second,
		Write: func(_ context.Context, rows []string) (lost func(string) error, err error) {
			return func(row string) error {
				if row == "late" {
					return fmt.Errorf("the lease of %s has ended", row)
				}
				return nil
			}, nil
		},
	})
	fmt.Println(marks.Mark(context.Background(), "a"))
	fmt.Println(marks.Mark(context.Background(), "late"))
	// Output:
	// <nil>
	// the lease of late has ended
}

// The last pause repeats; each is a tenth more or less.
func ExampleBackoff() {
	backoff := lease.Backoff{time.Minute, time.Hour}
	fmt.Println(backoff.After(1).Round(30*time.Second), backoff.After(9).Round(30*time.Minute))
	// Output: 1m0s 1h0m0s
}
