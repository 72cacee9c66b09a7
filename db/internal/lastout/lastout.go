// Package lastout lets processes share a resource, which the first process opens and the last one closes. It counts
// processes with file locks, which the kernel releases when a process ends, so that killed processes do not count.
package lastout

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"partnerapi/domain"
)

// retry is the time between two tries to get a lock that another process holds.
const retry = 10 * time.Millisecond

// Lease is one use of the shared resource. It is not safe for concurrent use.
type Lease struct {
	door  string   // the path of the lock for entering and leaving
	users *os.File // locked as shared by each user; nil after Leave
}

// Enter begins a use of the resource that is shared under dir, an existing folder. It calls open while no other process
// can enter or leave; open must open the resource unless another process has done so. If open returns an error, Enter
// returns it. Enter waits for other processes that are entering or leaving until ctx ends.
func Enter(ctx context.Context, dir string, open func() error) (*Lease, error) {
	l := &Lease{door: filepath.Join(dir, "door.lock")}
	door, err := lock(ctx, l.door, syscall.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer door.Close()
	// This does not wait: only a process that holds the door locks the file exclusively.
	if l.users, err = lock(ctx, filepath.Join(dir, "users.lock"), syscall.LOCK_SH); err != nil {
		return nil, err
	}
	if err := open(); err != nil {
		l.users.Close()
		return nil, err
	}
	return l, nil
}

// Leave ends the use. If no other process uses the resource, it calls shut before another process can enter. A second
// call does nothing.
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
		return nil // another process uses the resource
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.users.Name(), err)
	}
	return shut()
}

// lock opens the file, and locks it with mode, LOCK_EX or LOCK_SH. It tries again until it has the lock or ctx ends.
// Closing the file releases the lock.
func lock(ctx context.Context, path string, mode int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), mode|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if domain.Pause(ctx, retry) != nil {
			f.Close()
			return nil, fmt.Errorf("wait for the lock %s: %w", path, context.Cause(ctx))
		}
	}
}
