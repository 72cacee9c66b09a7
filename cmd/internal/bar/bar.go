// Package bar shows the progress of the commands' long work.
package bar

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// New returns what shows, as a bar, how much of the total of some work is done.
// The bar appears with the first call, and its line ends with the work.
func New(to io.Writer, what string) func(done, total int) {
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
