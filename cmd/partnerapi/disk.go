package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const (
	// diskWarn and diskFail are how much of a folder's disk should be free, in bytes.
	diskWarn = 1 << 30
	diskFail = 100 << 20
	// diskWithin is how long a disk may take to say what is free.
	diskWithin = time.Second
	// diskAsked bounds how many calls to a disk are under way.
	diskAsked = 8
)

// freeBytes is how much an ordinary user may still write.
func freeBytes(dir string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", dir, err)
	}
	return stat.Bavail * uint64(stat.Bsize), nil // Bsize has another type elsewhere
}

// disk is the one that a folder is on. It is safe for concurrent use.
type disk struct {
	name string // of the folder, as a label
	dir  string
	free func(dir string) (uint64, error)
	// asked is how many calls are under way; those to a disk that hangs stay.
	asked atomic.Int32
}

// disks are those that a process writes to.
func disks(dataDir string, reports reportStoreFlag) []*disk {
	list := []*disk{{name: "data", dir: dataDir, free: freeBytes}, {name: "temporary", dir: os.TempDir(), free: freeBytes}}
	if dir, ofMachine := reports.folder(dataDir); ofMachine {
		list = append(list, &disk{name: "reports", dir: dir, free: freeBytes})
	}
	return list
}

// left is what is free, if that can be said now: not of a folder that is not there, nor
// of a disk that does not answer.
func (d *disk) left() (free uint64, known bool) {
	if d.asked.Add(1) > diskAsked {
		d.asked.Add(-1)
		return 0, false
	}
	answer := make(chan uint64, 1)
	go func() {
		defer d.asked.Add(-1)
		if free, err := d.free(d.dir); err == nil {
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

var diskDesc = description("disk_free_bytes", "How much may still be written to the disk of a folder.", "folder")

// diskFigures collects what is free.
type diskFigures []*disk

// Describe sends the description of what is collected.
func (f diskFigures) Describe(to chan<- *prometheus.Desc) { to <- diskDesc }

// Collect asks each disk.
func (f diskFigures) Collect(to chan<- prometheus.Metric) {
	for _, d := range f {
		if free, known := d.left(); known {
			to <- prometheus.MustNewConstMetric(diskDesc, prometheus.GaugeValue, float64(free), d.name)
		}
	}
}

// fullDisk says of a data directory that is nearly full what is still served, where the
// database answers or does not; empty where there is room. An embedded database refuses
// writes on a full disk, and stops when its log cannot grow.
func fullDisk(d *disk, embedded, answers bool) string {
	free, known := d.left()
	if !known || free >= diskFail {
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
	return fmt.Sprintf("the disk of %s is nearly full (%d MiB left): %s\n", d.dir, free>>20, served)
}
