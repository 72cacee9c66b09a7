package directory_test

import (
	"fmt"
	"testing"

	"partnerapi/domain"
)

// BenchmarkSyncFirst50000 syncs a directory of 50,000 accounts for the first time.
func BenchmarkSyncFirst50000(b *testing.B) { benchmarkFirst(b, 50_000) }

func benchmarkFirst(b *testing.B, n int) {
	w := newWorld(b)
	full := crowd(n)
	for i := 0; b.Loop(); i++ {
		w.client = w.Client(w.tenant, fmt.Sprint("Client ", i)).ID
		s := newScripted(true, full)
		s.page = 1000
		w.connect(w.client, s)
		wantCounts(b, w.sync(), domain.SyncCounts{Created: n})
	}
}

// BenchmarkSyncUnchanged50000 syncs it again, by a comparison of everything, while
// nothing has changed.
func BenchmarkSyncUnchanged50000(b *testing.B) {
	const n = 50_000
	w := newWorld(b)
	s := newScripted(true, crowd(n))
	s.page = 1000
	w.connect(w.client, s)
	wantCounts(b, w.sync(), domain.SyncCounts{Created: n})
	for b.Loop() {
		wantCounts(b, w.sync(), domain.SyncCounts{Unchanged: n})
	}
}
