package output

import (
	"errors"
	"fmt"
	"io"
	"os"

	"partnerapi/cmd/internal/bar"
	"partnerapi/cmd/internal/cli"
)

// OpenInput opens the named input, the standard input or a file, with a progress display.
func OpenInput(s cli.Env, name, label string) (in io.Reader, shown *Progress, shut func() error, err error) {
	if name == "-" {
		return s.In, &Progress{To: s.Err}, func() error { return nil }, nil
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
	shown = &Progress{To: s.Err, Size: info.Size()}
	if IsTerminal(s.Err) {
		shown.Bar = bar.New(Raw(s.Err), label)
	}
	return file, shown, file.Close, nil
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(to io.Writer) bool { return bar.IsTerminal(Raw(to)) }

// ProgressEvery is the number of lines between two progress messages where there is no bar.
const ProgressEvery = 100_000

// Progress shows the progress of an import.
type Progress struct {
	To          io.Writer
	Size        int64                 // of the input in bytes; 0 where it is unknown
	Bar         func(done, total int) // of bytes; nil where none is to be drawn
	open        bool                  // the bar's line has not ended
	LastPrinted int                   // the number of lines that was written last
}

// Update shows how many lines and bytes of the input are done.
func (p *Progress) Update(lines int, bytes int64) {
	switch {
	case p.Bar != nil:
		p.Bar(int(bytes), int(p.Size))
		p.open = bytes < p.Size
	case lines >= p.LastPrinted+ProgressEvery:
		p.LastPrinted = lines
		fmt.Fprintf(p.To, "%d lines\n", lines)
	}
}

// EndLine ends the bar's line before other output.
func (p *Progress) EndLine() {
	if p.open {
		p.open = false
		fmt.Fprintln(p.To)
	}
}
