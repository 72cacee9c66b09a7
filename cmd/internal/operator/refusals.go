package operator

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
)

// The most refused lines and reasons that refusals prints, and the most reasons that it counts.
const (
	shownRefusals  = 20
	shownReasons   = 10
	countedReasons = 1000
)

// refusals reports the refused lines of an import: the first ones on the standard error stream, then how many there are by
// reason and, with a file, all of them there. One bad line may have thousands of others refused.
type refusals struct {
	env    cli.Env
	path   string       // of the file; empty for none
	file   *output.File // nil for none
	buffer *bufio.Writer
	lines  *json.Encoder

	total   int
	counts  map[string]int // by reason
	uncount int            // lines whose reasons are not among counts
}

// openRefusals returns the refusals of a command. path is the file of --errors; empty for none.
func openRefusals(s cli.Env, path string) (*refusals, error) {
	r := &refusals{env: s, path: path, counts: map[string]int{}}
	if path == "" {
		return r, nil
	}
	var err error
	if r.file, err = output.NewFile(path, nil); err != nil {
		return nil, err
	}
	r.buffer = bufio.NewWriter(r.file.To)
	r.lines = json.NewEncoder(r.buffer)
	r.lines.SetEscapeHTML(false)
	return r, nil
}

// refusedLine is a refused line as --errors writes it.
type refusedLine struct {
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// add reports a refused line.
func (r *refusals) add(line int, reason string) {
	r.total++
	if _, known := r.counts[reason]; known || len(r.counts) < countedReasons {
		r.counts[reason]++
	} else {
		r.uncount++
	}
	if r.file != nil {
		_ = r.lines.Encode(refusedLine{line, reason}) // the buffer keeps the error
	}
	if r.total <= shownRefusals {
		showRefused(r.env, line, reason)
	}
}

// finish prints the counts by reason, unless all lines were shown, and completes the file. It returns the first error of
// writing it.
func (r *refusals) finish() error {
	if r.total > shownRefusals {
		r.showReasons()
	}
	if r.file == nil {
		return nil
	}
	if err := r.buffer.Flush(); err != nil {
		return errors.Join(err, r.file.Discard())
	}
	return r.file.Keep()
}

// showReasons prints the most frequent reasons with their counts.
func (r *refusals) showReasons() {
	where := "use --errors FILE to list all of them"
	if r.path != "" {
		where = r.path + " lists all of them"
	}
	fmt.Fprintf(r.env.Err, "%d lines were rejected (%s):\n", r.total, where)
	reasons := slices.SortedFunc(maps.Keys(r.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.counts[b], r.counts[a]), cmp.Compare(a, b))
	})
	rest := r.uncount
	for i, reason := range reasons {
		if i < shownReasons {
			fmt.Fprintf(r.env.Err, "%8d  %s\n", r.counts[reason], domain.Visible(reason))
		} else {
			rest += r.counts[reason]
		}
	}
	if rest > 0 {
		fmt.Fprintf(r.env.Err, "%8d  other reasons\n", rest)
	}
}
