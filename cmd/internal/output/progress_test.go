package output

import (
	"bytes"
	"fmt"
	"testing"
)

// TestProgress: a bar where there is one, which leaves its line to what is
// written beside it; else a word now and then.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Progress{To: &out, Size: 200, Bar: func(done, total int) { fmt.Fprintf(&out, "\r%d/%d", done, total) }}
	p.EndLine()
	p.Update(1, 100)
	p.EndLine()
	p.EndLine()
	p.Update(2, 200)
	p.EndLine() // the bar ended its line
	if got := out.String(); got != "\r100/200\n\r200/200" {
		t.Errorf("%q", got)
	}
	out.Reset()
	p = &Progress{To: &out, Size: 200}
	for _, lines := range []int{1, ProgressEvery - 1, ProgressEvery + 5, 2*ProgressEvery + 4, 2*ProgressEvery + 5} {
		p.Update(lines, 1)
	}
	if got := out.String(); got != "100005 lines\n200005 lines\n" {
		t.Errorf("%q", got)
	}
	if IsTerminal(&out) {
		t.Error("a buffer is a terminal")
	}
}
