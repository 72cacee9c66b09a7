// Package lastout lets processes share something that the first one opens and
// the last one closes. Their count is kept by file locks, which the kernel
// drops with the process, so that a killed process never counts.
package lastout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// retry is how often a lock that another process holds is asked for again.
const retry = 10 * time.Millisecond

// Lease is one use of the shared thing. It is not safe for concurrent use.
type Lease struct {
	door  string
	users *os.File
}

// Enter takes part in what is shared under dir, a folder that exists. open
// runs while no other process can enter or leave, and whether or not others are in:
// it opens the thing or finds it open. When open fails, so does Enter. It waits
// for others entering or leaving until ctx ends.
func Enter(ctx context.Context, dir string, open func() error) (*Lease, error) {
	l := &Lease{door: filepath.Join(dir, "door.lock")}
	door, err := lock(ctx, l.door, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer door.Close()
	// Only one who holds the door locks this exclusively: no wait here.
	if l.users, err = lock(ctx, filepath.Join(dir, "users.lock"), syscall.LOCK_SH); err != nil {
		return nil, err
	}
	if err := open(); err != nil {
		l.users.Close()
		return nil, err
	}
	return l, nil
}

// Leave gives the use up. If it was the last one, shut runs before another process can
// enter. To leave twice does nothing the second time.
func (l *Lease) Leave(shut func() error) error {
	if l.users == nil {
		return nil
	}
	door, err := lock(context.Background(), l.door, syscall.LOCK_EX)
	if err != nil {
		return err
	}
	defer door.Close()
	defer func() {
		l.users.Close()
		l.users = nil
	}()
	err = syscall.Flock(int(l.users.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.users.Name(), err)
	}
	return shut()
}

// lock opens the file and locks it as how says; closing it unlocks it.
func lock(ctx context.Context, path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("wait for the lock %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}
