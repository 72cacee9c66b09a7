package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/ndjson"
)

// Report counts the lines that were read, empty ones left out.
type Report struct {
	Lines     int
	Created   int
	Updated   int
	Unchanged int
	Refused   int
}

// Watcher is told how an import goes. Its fields may be nil; one call of them ends
// before the next begins.
type Watcher struct {
	// Refused is told of each bad line, by its number from 1 on: first of those that
	// are no good by themselves, and then of those that cannot be applied.
	Refused func(line int, reason string)
	// Read is told, now and then, how many lines and bytes of the input are read.
	Read func(lines int, bytes int64)
	// Applied is told, after each transaction, how many lines are done of those that
	// are to be applied.
	Applied func(done, total int)
}

// ErrImporting says that another process is importing into the database.
var ErrImporting = errors.New("another import into this database is running: wait for it to end")

// Import reads lines to the end of r, and then applies them: kind by kind, each after
// those that it refers to, in batches, each in a transaction. The lines of one object
// are applied in their order; those of different objects may come in any, and users
// and their history are applied client by client and user by user. Bad lines are
// skipped. It keeps what it reads in files without names, which need twice the room of
// the input in the folder for temporary files, and holds a few batches in memory.
//
// An error ends it, and so does the end of ctx, which leaves a read of r waiting; the
// report then tells of what is applied. The same input may be given again from its
// beginning: what is applied changes nothing then.
func Import(ctx context.Context, d *db.DB, r io.Reader, w Watcher) (Report, error) {
	return importIn(ctx, d, r, w, batchLines)
}

// importIn is Import in batches of up to so many lines.
func importIn(ctx context.Context, d *db.DB, r io.Reader, w Watcher, lines int) (Report, error) {
	in := &run{
		db: d, watcher: w, batchLines: lines, sortBytes: sortBytes,
		waiting: map[kind]*stage{}, later: map[kind]*stage{}, seen: map[kind]*seen{},
	}
	var failed error
	ran, err := d.Importing(ctx, func(ctx context.Context) error {
		failed = in.all(ctx, r)
		return nil
	})
	switch {
	case failed != nil || err != nil:
		return in.reported(), errors.Join(failed, err)
	case !ran:
		return Report{}, ErrImporting
	}
	return in.reported(), nil
}

// run is an import under way.
type run struct {
	db         *db.DB
	watcher    Watcher
	batchLines int
	sortBytes  int

	// mu guards what follows while lines are read.
	mu      sync.Mutex
	report  Report
	over    bool // ended while a read of the input waits
	waiting map[kind]*stage
	// later are the lines of objects that earlier lines are of, too, where lines are
	// applied by their places: each object has one in waiting then.
	later map[kind]*stage
	seen  map[kind]*seen
	total int // lines to be applied
	done  int
}

func (r *run) reported() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.report
}

func (r *run) all(ctx context.Context, in io.Reader) (err error) {
	read := make(chan error, 1)
	go func() { read <- r.read(ctx, ndjson.NewReader(in, MaxLine)) }()
	select {
	case err = <-read:
	case <-ctx.Done():
		r.mu.Lock()
		r.over = true
		r.mu.Unlock()
		err = ctx.Err()
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if err != nil {
		return err
	}
	r.seen = nil
	began := r.db.Now()
	for _, k := range kinds {
		if err := k.apply(ctx, r); err != nil {
			return fmt.Errorf("apply lines of %ss: %w", k.plan().object, err)
		}
	}
	return r.db.StaleSummaries(ctx, began)
}

// readStep is after how many lines Watcher.Read is told.
const readStep = 10_000

// read reads the input to its end, and sets the lines aside by their kinds.
func (r *run) read(ctx context.Context, in *ndjson.Reader) error {
	for {
		text, tooLong, err := in.Next()
		r.mu.Lock()
		if r.over || ctx.Err() != nil {
			r.mu.Unlock()
			return ctx.Err()
		}
		switch {
		case err != nil:
		case tooLong:
			r.refuse(in.Number, fmt.Sprintf("is longer than %d bytes", MaxLine))
		case len(text) > 0:
			err = r.sort(in.Number, text)
		}
		if r.watcher.Read != nil && (err != nil || in.Number%readStep == 0) {
			r.watcher.Read(in.Number, in.Bytes)
		}
		r.mu.Unlock()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read line %d: %w", in.Number+1, err)
		}
	}
}

// sort judges a line, and puts a good one where it waits.
func (r *run) sort(number int, text []byte) error {
	object, err := objectOf(text)
	if err != nil {
		r.refuse(number, err.Error())
		return nil
	}
	k, known := kindCalled(object)
	if !known {
		r.refuse(number, fmt.Sprintf("object: %.40q is unknown", object))
		return nil
	}
	id, at, err := k.judge(text, r.db.Now())
	if err != nil {
		r.refuse(number, err.Error())
		return nil
	}
	r.report.Lines++
	r.total++
	where := r.waiting
	if k.placed() {
		if r.seen[k] == nil {
			r.seen[k] = &seen{}
		}
		if r.seen[k].before(id) {
			where = r.later
		}
	}
	return setAside(where, k, staged{number: number, place: at, text: text})
}

// wait sets a line aside until its kind is applied.
func (r *run) wait(k kind, l staged) error { return setAside(r.waiting, k, l) }

func setAside(where map[kind]*stage, k kind, l staged) error {
	s := where[k]
	if s == nil {
		var err error
		if s, err = newStage(); err != nil {
			return err
		}
		where[k] = s
	}
	return s.add(l)
}

// refuse counts a line that was not counted yet as refused.
func (r *run) refuse(number int, reason string) {
	r.report.Lines++
	r.count(number, domain.RefuseImport("%s", reason))
}

// count counts what became of a line.
func (r *run) count(number int, result domain.ImportResult) {
	switch result.Outcome {
	case domain.ImportCreated:
		r.report.Created++
	case domain.ImportUpdated:
		r.report.Updated++
	case domain.ImportUnchanged:
		r.report.Unchanged++
	default:
		r.report.Refused++
		if r.watcher.Refused != nil {
			r.watcher.Refused(number, result.Refusal)
		}
	}
}

func (r *run) close() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, where := range []map[kind]*stage{r.waiting, r.later} {
		for _, s := range where {
			err = errors.Join(err, s.close())
		}
	}
	return err
}
