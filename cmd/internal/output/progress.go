package output

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"

	"partnerapi/cmd/internal/cli"
)

// NewBar returns a function that shows the progress of some work as a bar on a terminal; it shows nothing elsewhere.
// The bar appears with the first call, and its line ends when done reaches total.
func NewBar(to io.Writer, what string) func(done, total int) {
	if !IsTerminal(to) {
		return func(int, int) {}
	}
	to = raw(to)
	var bar *progressbar.ProgressBar
	return func(done, total int) {
		if bar == nil {
			bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(to), progressbar.OptionSetDescription(what),
				progressbar.OptionShowCount(), progressbar.OptionThrottle(100*time.Millisecond),
				progressbar.OptionOnCompletion(func() { fmt.Fprintln(to) }))
		}
		_ = bar.Set(done)
	}
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(to io.Writer) bool {
	file, ok := raw(to).(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// OpenInput opens the named input, the standard input or a file, with a progress display.
func OpenInput(s cli.Env, name, label string) (in io.Reader, shown *Progress, shut func() error, err error) {
	if name == "-" { // of an unknown size: without a bar
		return s.In, &Progress{To: s.Err, Unit: "lines"}, func() error { return nil }, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder", name)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, file.Close())
	}
	shown = NewProgress(s.Err, label, "lines")
	shown.Size = info.Size()
	return file, shown, file.Close, nil
}

// ProgressEvery is the number of lines between two progress messages where there is no bar.
const ProgressEvery = 100_000

// Progress shows the progress of an import: as a bar, or by a message now and then.
type Progress struct {
	To      io.Writer
	Unit    string                // of the messages, such as lines
	Size    int64                 // the bar's total
	Bar     func(done, total int) // nil if there is none
	open    bool                  // the bar's line has not ended
	printed int                   // the number of lines in the last message
}

// NewProgress returns a Progress, with a bar on a terminal.
func NewProgress(to io.Writer, label, unit string) *Progress {
	p := &Progress{To: to, Unit: unit}
	if IsTerminal(to) {
		p.Bar = NewBar(to, label)
	}
	return p
}

// Update shows how many lines are done, and how much of the size.
func (p *Progress) Update(lines int, done int64) {
	switch {
	case p.Bar != nil:
		p.Bar(int(done), int(p.Size))
		p.open = done < p.Size
	case lines >= p.printed+ProgressEvery:
		p.printed = lines
		fmt.Fprintf(p.To, "%d %s\n", lines, p.Unit)
	}
}

// EndLine ends the bar's line before other output.
func (p *Progress) EndLine() {
	if p.open {
		p.open = false
		fmt.Fprintln(p.To)
	}
}
