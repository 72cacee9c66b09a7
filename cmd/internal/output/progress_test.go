package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestProgress: a bar where there is one, which leaves its line to what is
// written beside it; else a word now and then.
func TestProgress(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := &Progress{To: &out, Unit: "lines", Size: 200, Bar: func(done, total int) { fmt.Fprintf(&out, "\r%d/%d", done, total) }}
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
	p = NewProgress(&out, "reading", "lines")
	for _, lines := range []int{1, ProgressEvery - 1, ProgressEvery + 5, 2*ProgressEvery + 4, 2*ProgressEvery + 5} {
		p.Update(lines, 1)
	}
	if got := out.String(); got != "100005 lines\n200005 lines\n" {
		t.Errorf("%q", got)
	}

	out.Reset()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, to := range []io.Writer{&out, file, NewVisible(file, false)} {
		NewBar(to, "seeding")(1, 3)
	}
	if info, err := file.Stat(); err != nil || info.Size() > 0 || out.Len() > 0 {
		t.Errorf("%d bytes of a bar in a file (%v), and %q", info.Size(), err, &out)
	}
}
