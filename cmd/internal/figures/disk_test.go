package figures

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestDiskIsWatched: what is free is a metric, and readiness says of a full disk what
// is still served. A folder that is not there, or whose disk hangs, says nothing.
func TestDiskIsWatched(t *testing.T) {
	t.Parallel()
	free := uint64(99 << 20)
	full := &Disk{Name: "data", Dir: "/srv/data", Free: func(string) (uint64, error) { return free, nil }}
	away := &Disk{Name: "reports", Dir: "/away", Free: FreeBytes}
	want := "# HELP partnerapi_disk_free_bytes How much may still be written to the disk of a folder.\n" +
		"# TYPE partnerapi_disk_free_bytes gauge\npartnerapi_disk_free_bytes{folder=\"data\"} 1.03809024e+08\n"
	if err := testutil.CollectAndCompare(DiskFigures{full, away}, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	for _, want := range []struct {
		embedded, answers bool
		words             string
	}{
		{true, true, "reads are served; writes,"}, {true, false, "nothing is served; the database starts again"},
		{false, true, "reads and writes are served; reports,"}, {false, false, "nothing is served, as the database,"},
	} {
		said := FullDisk(full, want.embedded, want.answers)
		if !strings.Contains(said, "/srv/data is nearly full (99 MiB left): "+want.words) {
			t.Errorf("says %q", said)
		}
	}
	free = DiskFail
	if said := FullDisk(full, true, true) + FullDisk(away, true, true); said != "" {
		t.Errorf("with room it says %q", said)
	}
	full.Pending.Store(MaxPending)
	if _, known := full.FreeNow(); known || full.Pending.Load() != MaxPending {
		t.Error("a disk that hangs is asked again and again")
	}
}
