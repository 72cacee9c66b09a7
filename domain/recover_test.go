package domain_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"partnerapi/domain"
)

// TestRecover: a panic is an error whose text has nothing of it, and a line of the
// log with the stack; what returns is passed on.
func TestRecover(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, nil))
	own := errors.New("own")
	n, err := domain.RecoverValue(t.Context(), log, "count", func() (int, error) { return 7, own })
	if n != 7 || !errors.Is(err, own) || lines.Len() > 0 {
		t.Errorf("%d, %v, %s", n, err, &lines)
	}
	err = domain.Recover(t.Context(), log, "divide by nothing", func() error { panic("a secret") })
	if !errors.Is(err, domain.ErrPanicked) || strings.Contains(err.Error(), "secret") {
		t.Errorf("the error is %v", err)
	}
	for _, part := range []string{"level=ERROR", "divide by nothing", "a secret", "TestRecover"} {
		if !strings.Contains(lines.String(), part) {
			t.Errorf("no %q in %s", part, &lines)
		}
	}
}

// TestCarry: a panic of a goroutine is one of who waits for it, with both stacks; an
// error is an error.
func TestCarry(t *testing.T) {
	t.Parallel()
	var lines bytes.Buffer
	log := slog.New(slog.NewTextHandler(&lines, nil))
	wait := func(work func() error) error {
		return domain.Recover(t.Context(), log, "work in a group", func() error {
			var group errgroup.Group
			group.Go(domain.PanicToError(work))
			return domain.Repanic(group.Wait())
		})
	}
	own := errors.New("own")
	if err := wait(func() error { return own }); !errors.Is(err, own) || lines.Len() > 0 {
		t.Errorf("%v, %s", err, &lines)
	}
	if err := wait(planted); !errors.Is(err, domain.ErrPanicked) || !strings.Contains(lines.String(), "domain_test.planted") {
		t.Errorf("%v, %s", err, &lines)
	}
}

func planted() error { panic("planted") }
