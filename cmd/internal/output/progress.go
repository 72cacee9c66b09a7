package output

import (
	"errors"
	"fmt"
	"io"
	"os"

	"partnerapi/cmd/internal/bar"
	"partnerapi/cmd/internal/cli"
)

// InputOf opens what is to be read, the standard input or a file, with what shows the
// progress of it.
func InputOf(s cli.Env, name, label string) (in io.Reader, shown *Progress, shut func() error, err error) {
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

// IsTerminal reports whether what is written to a stream goes to a terminal.
func IsTerminal(to io.Writer) bool { return bar.IsTerminal(Raw(to)) }

// LinesBetween is how many lines there are between two words on how far it is,
// where no bar can show that.
const LinesBetween = 100_000

// Progress shows how far an ingestion is.
type Progress struct {
	To   io.Writer
	Size int64                 // of the input in bytes; 0 where it is unknown
	Bar  func(done, total int) // of bytes; nil where none is to be drawn
	open bool                  // the bar's line has not ended
	Told int                   // the number of lines that was written last
}

// Applied shows how many lines and bytes of the input are done.
func (p *Progress) Applied(lines int, bytes int64) {
	switch {
	case p.Bar != nil:
		p.Bar(int(bytes), int(p.Size))
		p.open = bytes < p.Size
	case lines >= p.Told+LinesBetween:
		p.Told = lines
		fmt.Fprintf(p.To, "%d lines\n", lines)
	}
}

// MakeRoom ends the line of a bar before something else is written.
func (p *Progress) MakeRoom() {
	if p.open {
		p.open = false
		fmt.Fprintln(p.To)
	}
}
