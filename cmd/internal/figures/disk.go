package figures

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"partnerapi/cmd/internal/config"
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

// Disks returns the disks that a process writes to: of the data directory, of the temporary directory and of the
// report store, if it is a local folder.
func Disks(dataDir string, reports config.StoreFlag) []*Disk {
	list := []*Disk{{Name: "data", Dir: dataDir, Free: FreeBytes}, {Name: "temporary", Dir: os.TempDir(), Free: FreeBytes}}
	if dir, isLocal := reports.Folder(dataDir); isLocal {
		list = append(list, &Disk{Name: "reports", Dir: dir, Free: FreeBytes})
	}
	return list
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

var diskDesc = Describe("disk_free_bytes", "How much may still be written to the disk of a folder.", "folder")

// DiskFigures collects the free space of disks.
type DiskFigures []*Disk

// Describe implements prometheus.Collector.
func (f DiskFigures) Describe(to chan<- *prometheus.Desc) { to <- diskDesc }

// Collect implements prometheus.Collector. A disk whose free space is unknown has no metric.
func (f DiskFigures) Collect(to chan<- prometheus.Metric) {
	for _, d := range f {
		if free, known := d.FreeNow(); known {
			to <- prometheus.MustNewConstMetric(diskDesc, prometheus.GaugeValue, float64(free), d.Name)
		}
	}
}

// FullDisk describes what the service can still do while the data disk is nearly full, given whether the database is
// embedded and whether it answers. It is empty if there is room, or the free space is unknown. An embedded database
// refuses writes on a full disk, and stops when its log cannot grow.
func FullDisk(d *Disk, embedded, answers bool) string {
	free, known := d.FreeNow()
	if !known || free >= DiskFail {
		return ""
	}
	served := "reads and writes are served; reports, and mails in files, may wait until there is room"
	switch {
	case embedded && !answers:
		served = "nothing is served; the database starts again when there is room"
	case !answers:
		served = "nothing is served, as the database, which is elsewhere, cannot be used"
	case embedded:
		served = "reads are served; writes, reports and mails may fail until there is room"
	}
	return fmt.Sprintf("the disk of %s is nearly full (%d MiB left): %s\n", d.Dir, free>>20, served)
}
