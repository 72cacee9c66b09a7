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
	// DiskWarn and DiskFail are how much of a folder's disk should be free, in bytes.
	DiskWarn = 1 << 30
	DiskFail = 100 << 20
	// diskWithin is how long a disk may take to say what is free.
	diskWithin = time.Second
	// DiskAsked bounds how many calls to a disk are under way.
	DiskAsked = 8
)

// FreeBytes is how much an ordinary user may still write.
func FreeBytes(dir string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	return stat.Bavail * uint64(stat.Bsize), nil // Bsize has another type elsewhere
}

// Disk is the one that a folder is on. It is safe for concurrent use.
type Disk struct {
	Name string // of the folder, as a label
	Dir  string
	Free func(dir string) (uint64, error)
	// Asked is how many calls are under way; those to a disk that hangs stay.
	Asked atomic.Int32
}

// Disks are those that a process writes to.
func Disks(dataDir string, reports config.StoreFlag) []*Disk {
	list := []*Disk{{Name: "data", Dir: dataDir, Free: FreeBytes}, {Name: "temporary", Dir: os.TempDir(), Free: FreeBytes}}
	if dir, ofMachine := reports.Folder(dataDir); ofMachine {
		list = append(list, &Disk{Name: "reports", Dir: dir, Free: FreeBytes})
	}
	return list
}

// Left is what is free, if that can be said now: not of a folder that is not there, nor
// of a disk that does not answer.
func (d *Disk) Left() (free uint64, known bool) {
	if d.Asked.Add(1) > DiskAsked {
		d.Asked.Add(-1)
		return 0, false
	}
	answer := make(chan uint64, 1)
	go func() {
		defer d.Asked.Add(-1)
		if free, err := d.Free(d.Dir); err == nil {
			answer <- free
			return
		}
		close(answer)
	}()
	select {
	case free, known = <-answer:
		return free, known
	case <-time.After(diskWithin):
		return 0, false
	}
}

var diskDesc = Describe("disk_free_bytes", "How much may still be written to the disk of a folder.", "folder")

// DiskFigures collects what is free.
type DiskFigures []*Disk

// Describe sends the description of what is collected.
func (f DiskFigures) Describe(to chan<- *prometheus.Desc) { to <- diskDesc }

// Collect asks each disk.
func (f DiskFigures) Collect(to chan<- prometheus.Metric) {
	for _, d := range f {
		if free, known := d.Left(); known {
			to <- prometheus.MustNewConstMetric(diskDesc, prometheus.GaugeValue, float64(free), d.Name)
		}
	}
}

// FullDisk says of a data directory that is nearly full what is still served, where the
// database answers or does not; empty where there is room. An embedded database refuses
// writes on a full disk, and stops when its log cannot grow.
func FullDisk(d *Disk, embedded, answers bool) string {
	free, known := d.Left()
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
