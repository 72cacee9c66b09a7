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

// OpenInput opens the standard input if name is -, otherwise a file. It also returns a display of the progress of
// reading, whose bar has the label, and a function that closes the file.
func OpenInput(s cli.Env, name, label string) (in io.Reader, progress *Progress, shut func() error, err error) {
	if name == "-" { // its size is unknown: no bar
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
	progress = NewProgress(s.Err, label, "lines")
	progress.Size = info.Size()
	return file, progress, file.Close, nil
}

// ProgressEvery is the number of lines between two progress messages if there is no bar.
const ProgressEvery = 100_000

// Progress shows the progress of an import: as a bar, or by a message every ProgressEvery lines.
type Progress struct {
	To      io.Writer
	Unit    string                // of the messages, such as lines
	Size    int64                 // the bar's total
	Bar     func(done, total int) // nil if there is none
	open    bool                  // the bar's line has not ended
	printed int                   // the number of lines in the last message
}

// NewProgress returns a Progress. On a terminal it has a bar with the label; the caller then sets Size.
func NewProgress(to io.Writer, label, unit string) *Progress {
	p := &Progress{To: to, Unit: unit}
	if IsTerminal(to) {
		p.Bar = NewBar(to, label)
	}
	return p
}

// Update shows the number of lines that are done or, on the bar, how much of Size is done.
func (p *Progress) Update(lines int, done int64) {
	switch {
	case p.Bar != nil:
		p.Bar(int(done), int(p.Size))
		p.open = done < p.Size // the bar itself ends its line at Size
	case lines >= p.printed+ProgressEvery:
		p.printed = lines
		fmt.Fprintf(p.To, "%d %s\n", lines, p.Unit)
	}
}

// EndLine ends the bar's line, unless it has ended, before other output.
func (p *Progress) EndLine() {
	if p.open {
		p.open = false
		fmt.Fprintln(p.To)
	}
}
