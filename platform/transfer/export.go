package transfer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"

	"github.com/go-json-experiment/json"

	"partnerapi/db"
	"partnerapi/domain"
)

// Progress is called with how many lines of a kind of objects an export has written: now and then,
// and, done, when they are all.
type Progress func(object string, lines int, done bool)

// lister writes all objects of a kind as lines.
type lister func(ctx context.Context, d *db.DB, of domain.PartnerID, w io.Writer, progress Progress) error

// listers write the kinds of objects in the order in which an import applies them.
var listers = []lister{
	listing((*db.DB).ExportPartners),
	listing((*db.DB).ExportCourses),
	listing((*db.DB).ExportClients),
	listing((*db.DB).ExportAdmins),
	listing((*db.DB).ExportGroups),
	listing((*db.DB).ExportUsers),
	listing((*db.DB).ExportCollections),
	listing((*db.DB).ExportPolicies),
	listing((*db.DB).ExportFrameworkAssignments),
	listing((*db.DB).ExportResults),
	listing((*db.DB).ExportSentEmails),
	listing((*db.DB).ExportExposures),
}

// listSignals writes what users did beside, as signals.
var listSignals = listed("signal", (*db.DB).ExportSignals, func(line []byte, s *db.SignalLine) ([]byte, error) {
	text, err := json.Marshal(s)
	return append(append(line, text...), '\n'), err
})

// progressEvery is after how many lines of a kind an export reports its progress.
const progressEvery = 10_000

func listing[T any](read func(*db.DB, context.Context, domain.PartnerID) iter.Seq2[T, error]) lister {
	return func(ctx context.Context, d *db.DB, of domain.PartnerID, w io.Writer, progress Progress) error {
		plan, err := planFor(reflect.TypeFor[T]())
		if err != nil {
			return err
		}
		return listed(plan.object, read, func(line []byte, record *T) ([]byte, error) {
			return plan.append(line, reflect.ValueOf(record).Elem())
		})(ctx, d, of, w, progress)
	}
}

// listed is the lister of what is read, where add appends a line with its end.
func listed[T any](
	object string, read func(*db.DB, context.Context, domain.PartnerID) iter.Seq2[T, error],
	add func(line []byte, of *T) ([]byte, error),
) lister {
	return func(ctx context.Context, d *db.DB, of domain.PartnerID, w io.Writer, progress Progress) error {
		var line []byte
		n := 0
		for record, err := range read(d, ctx, of) {
			if err == nil {
				line, err = add(line[:0], &record)
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
}

// Output is where an export is written to.
type Output struct {
	// Objects gets the lines that an import takes.
	Objects io.Writer
	// Signals gets what users did beside, as the signals that Ingest takes. It
	// may be nil.
	Signals io.Writer
}

// Export writes all objects that an import can take, of one partner or, where it is
// zero, of all: as lines, each after those that it refers to. The same objects are the
// same bytes. It reads in one snapshot, which is a transaction that changes nothing and
// lasts as long as the lines take to be written; it holds a few thousand objects in
// memory. progress may be nil.
func Export(ctx context.Context, d *db.DB, of domain.PartnerID, to Output, progress Progress) error {
	if progress == nil {
		progress = func(string, int, bool) {}
	}
	objects := bufio.NewWriterSize(to.Objects, 256<<10)
	err := d.Snapshot(ctx, func(ctx context.Context) error {
		for _, list := range listers {
			if err := list(ctx, d, of, objects, progress); err != nil {
				return err
			}
		}
		if to.Signals == nil {
			return nil
		}
		signals := bufio.NewWriterSize(to.Signals, 256<<10)
		if err := listSignals(ctx, d, of, signals, progress); err != nil {
			return err
		}
		return signals.Flush()
	})
	if err != nil {
		return err
	}
	return objects.Flush()
}
