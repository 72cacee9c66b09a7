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

// Progress is called with how many lines of a kind of objects an export has written: every
// progressEvery lines, and with done after the last one.
type Progress func(object string, lines int, done bool)

// progressEvery is after how many lines of a kind an export reports its progress.
const progressEvery = 10_000

// list writes all objects of a kind as lines; add appends one with its end.
func list[T any](
	w io.Writer, object string, of iter.Seq2[T, error], add func(line []byte, of T) ([]byte, error), progress Progress,
) error {
	var line []byte
	n := 0
	for record, err := range of {
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

// addSignal appends a signal as a line.
func addSignal(line []byte, s records.SignalLine) ([]byte, error) {
	text, err := json.Marshal(s)
	return append(append(line, text...), '\n'), err
}

// Output is where an export is written to.
type Output struct {
	// Objects gets the lines that an import takes.
	Objects io.Writer
	// Signals gets what users did besides, as signals that Ingest accepts. It may
	// be nil.
	Signals io.Writer
}

// Export writes all objects that an import can take, of one partner or, if of is zero, of
// all. Each line comes after those that it refers to, and the same objects give the same
// bytes. It reads in one snapshot: a read-only transaction that lasts until all lines are
// written. It holds a few thousand objects in memory. progress may be nil.
func Export(ctx context.Context, d *db.DB, of domain.PartnerID, to Output, progress Progress) error {
	if progress == nil {
		progress = func(string, int, bool) {}
	}
	objects := bufio.NewWriterSize(to.Objects, 256<<10)
	err := d.Snapshot(ctx, func(ctx context.Context) error {
		for _, k := range kinds {
			if k == users.then {
				continue // they are in the records of collections
			}
			if err := list(objects, k.object, k.Export(ctx, d, of), k.append, progress); err != nil {
				return err
			}
		}
		if to.Signals == nil {
			return nil
		}
		signals := bufio.NewWriterSize(to.Signals, 256<<10)
		if err := list(signals, "signal", records.ExportSignals(ctx, d, of), addSignal, progress); err != nil {
			return err
		}
		return signals.Flush()
	})
	if err != nil {
		return err
	}
	return objects.Flush()
}
