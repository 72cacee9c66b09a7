package doctor_test

import (
	"testing"

	"partnerapi/db/doctor"
)

// TestHangingDisk verifies that a disk that hangs is not read again and again.
func TestHangingDisk(t *testing.T) {
	t.Parallel()
	d := &doctor.Disk{Dir: t.TempDir(), Free: doctor.FreeBytes}
	if _, known := d.FreeNow(); !known {
		t.Error("the free space is unknown")
	}
	d.Pending.Store(doctor.MaxPending)
	if _, known := d.FreeNow(); known || d.Pending.Load() != doctor.MaxPending {
		t.Error("a disk that hangs is read again")
	}
}
