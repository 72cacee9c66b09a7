package doctor

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// DiskWarn and DiskFail are the free space, in bytes, below which a disk is low and nearly full.
	DiskWarn = 1 << 30
	DiskFail = 100 << 20
	// diskWithin bounds how long reading the free space may take.
	diskWithin = time.Second
	// MaxPending bounds how many calls to a disk are in progress.
	MaxPending = 8
)

// FreeBytes returns how many bytes an unprivileged user can still write to the disk of a folder.
func FreeBytes(dir string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	return stat.Bavail * uint64(stat.Bsize), nil // Bsize has another type elsewhere
}

// Disk is the disk of a folder. It is safe for concurrent use.
type Disk struct {
	Name string                           // the label of the folder
	Dir  string                           // the folder
	Free func(dir string) (uint64, error) // FreeBytes, except in tests
	// Pending is the number of calls of Free in progress. A call that hangs stays counted.
	Pending atomic.Int32
}

// FreeNow returns the free space; known is false if the folder does not exist, the disk does not respond within
// diskWithin, or MaxPending calls are in progress already.
func (d *Disk) FreeNow() (free uint64, known bool) {
	if d.Pending.Add(1) > MaxPending {
		d.Pending.Add(-1)
		return 0, false
	}
	answer := make(chan uint64, 1)
	go func() {
		defer d.Pending.Add(-1)
		defer close(answer) // without a value after an error
		if free, err := d.Free(d.Dir); err == nil {
			answer <- free
		}
	}()
	select {
	case free, known = <-answer:
		return free, known
	case <-time.After(diskWithin):
		return 0, false
	}
}
