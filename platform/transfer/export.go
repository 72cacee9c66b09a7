package transfer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/go-json-experiment/json"

	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
)

// Progress is called with the number of lines of a kind of objects that an export has written: every progressEvery
// lines, and with done after the last line.
type Progress func(object string, lines int, done bool)

// progressEvery is the number of lines of a kind between two calls of Progress.
const progressEvery = 10_000

// writeLines writes records as lines. add appends a record to line as a line with its line end. object is the name of
// the records' kind, for progress, which is called every progressEvery lines and, with done, after the last line.
func writeLines[T any](
	w io.Writer, object string, all iter.Seq2[T, error],
	add func(line []byte, record T) ([]byte, error), progress Progress,
) error {
	var line []byte
	n := 0
	for record, err := range all {
		if err == nil {
			line, err = add(line[:0], record)
		}
		if err == nil {
			_, err = w.Write(line)
		}
		if err != nil {
			return fmt.Errorf("export lines of %ss: %w", object, err)
		}
		if n++; n%progressEvery == 0 {
			progress(object, n, false)
		}
	}
	progress(object, n, true)
	return nil
}

// addSignal appends a signal to line as a line with its line end.
func addSignal(line []byte, s records.SignalLine) ([]byte, error) {
	text, err := json.Marshal(s)
	return append(append(line, text...), '\n'), err
}

// Output holds the writers of an export.
type Output struct {
	// Objects gets the lines for Import.
	Objects io.Writer
	// Signals gets the actions of users that no object contains, as lines for Ingest. It may be nil.
	Signals io.Writer
}

// Export writes all objects for Import, of one partner or, if partner is zero, of all partners. A line comes after the
// lines to which it refers, and the same objects give the same bytes. Export reads in one snapshot: a read-only
// transaction that lasts until all lines are written. It holds a few thousand objects in memory.
func Export(ctx context.Context, d *db.DB, partner domain.PartnerID, to Output, progress Progress) error {
	objects := bufio.NewWriterSize(to.Objects, 256<<10)
	err := d.Snapshot(ctx, func(ctx context.Context) error {
		for _, k := range kinds {
			if k == users.then {
				continue // memberships are exported in the records of collections
			}
			if err := writeLines(objects, k.Object(), k.Export(ctx, d, partner), k.appendRecord, progress); err != nil {
				return err
			}
		}
		if to.Signals == nil {
			return nil
		}
		signals := bufio.NewWriterSize(to.Signals, 256<<10)
		if err := writeLines(signals, "signal", records.ExportSignals(ctx, d, partner), addSignal, progress); err != nil {
			return err
		}
		return signals.Flush()
	})
	if err != nil {
		return err
	}
	return objects.Flush()
}
