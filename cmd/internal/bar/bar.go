// Package bar shows the progress of the commands' long work.
package bar

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// New returns a function that shows the progress of some work as a bar on a terminal; it shows nothing elsewhere.
// The bar appears with the first call, and its line ends when done reaches total.
func New(to io.Writer, what string) func(done, total int) {
	if !IsTerminal(to) {
		return func(int, int) {}
	}
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

// IsTerminal reports whether to is a terminal.
func IsTerminal(to io.Writer) bool {
	file, ok := to.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
