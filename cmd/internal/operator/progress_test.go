package operator

import (
	"bytes"
	"fmt"
	"testing"

	"partnerapi/cmd/internal/output"
)

// TestImportProgress: a word now and then where there is no bar.
func TestImportProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	words := &lineProgress{output.Progress{To: &out}}
	for _, n := range []int{1, 100_000, 150_000, 200_000} {
		words.applied(n, 300_000)
	}
	bar := &lineProgress{output.Progress{To: &out, Bar: func(done, total int) { fmt.Fprintf(&out, "\r%d/%d", done, total) }}}
	bar.applied(2, 4)
	bar.EndLine()
	if got := out.String(); got != "100000 of 300000 lines applied\n200000 of 300000 lines applied\n\r2/4\n" {
		t.Errorf("%q", got)
	}
}
