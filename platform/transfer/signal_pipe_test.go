package transfer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// never is a patience that does not end.
func never() <-chan time.Time { return nil }

// pipe is an input that a test holds open, and the ingestion of it.
type pipe struct {
	*io.PipeWriter
	began   chan struct{}  // a batch has its first line
	late    chan time.Time // ends the patience with the batch
	applied chan int       // the last line of each batch
	ended   chan error
	report  transfer.Ingested
}

func (p *signalWorld) pipe(ctx context.Context) *pipe {
	r, w := io.Pipe()
	live := &pipe{w, make(chan struct{}), make(chan time.Time), make(chan int), make(chan error, 1), transfer.Ingested{}}
	go func() {
		var err error
		live.report, err = transfer.IngestImpatiently(ctx, p.DB, r, transfer.Watcher{
			Read: func(lines int, _ int64) { live.applied <- lines },
		}, func() <-chan time.Time {
			live.began <- struct{}{}
			return live.late
		})
		live.ended <- err
	}()
	return live
}

// TestLivePipe: what came is applied when nothing more comes for a while, and a
// line is as far ahead as it is when it comes.
func TestLivePipe(t *testing.T) {
	t.Parallel()
	clock := domain.NewManualClock(noon)
	p := newSignalWorld(t, "", db.WithClock(clock))
	o := p.office(0)
	live := p.pipe(t.Context())
	for i, id := range []string{"a", "b"} {
		clock.Set(noon.Add(time.Duration(i) * time.Hour))
		if _, err := io.WriteString(live, signalLine(id, domain.PolicyPublished, clock.Now(), "policy_id", o.policies[0])+"\n"); err != nil {
			t.Fatal(err)
		}
		<-live.began
		live.late <- clock.Now()
		if n := <-live.applied; n != i+1 {
			t.Errorf("%d lines are applied after %d", n, i+1)
		}
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	<-live.applied
	if err := <-live.ended; err != nil || live.report.Taken != 2 {
		t.Errorf("%+v, %v", live.report, err)
	}
}

// TestStopped: the end of its context ends an ingestion that waits for input;
// what is not applied by then is not taken.
func TestStopped(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t, "")
	o := p.office(0)
	ctx, stop := context.WithCancel(t.Context())
	live := p.pipe(ctx)
	defer live.Close()
	if _, err := io.WriteString(live, signalLine("a", domain.PolicyPublished, noon, "policy_id", o.policies[0])+"\n"); err != nil {
		t.Fatal(err)
	}
	<-live.began
	stop()
	if err := <-live.ended; !errors.Is(err, context.Canceled) || live.report != (transfer.Ingested{}) {
		t.Errorf("%+v, %v", live.report, err)
	}
}

// TestByteOrderMark: one at the very beginning is no part of the line.
func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t, "")
	o := p.office(0)
	published := func(id string) string {
		return signalLine(id, domain.PolicyPublished, noon, "policy_id", o.policies[0])
	}
	got := p.ingest("\uFEFF"+published("1"), "\uFEFF"+published("2"), "")
	if got.Taken != 1 || strings.Join(got.refused, "; ") != "2 must be valid JSON in UTF-8" {
		t.Errorf("%+v", got)
	}
	if got := p.ingest("\uFEFF", published("3")); got.Taken != 1 || got.Lines != 1 {
		t.Errorf("a line of the mark alone: %+v", got)
	}
}

// TestGivenUp: a batch that the database gives up for the sake of another
// transaction is tried again, five times in all.
func TestGivenUp(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t, "")
	o := p.office(0)
	p.exec("CREATE SEQUENCE tries") // which a rollback does not set back
	p.exec(`CREATE FUNCTION give_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('tries') % 5 <> 0 THEN RAISE 'given up' USING ERRCODE = (ARRAY['40P01', '40001'])[1 + currval('tries') % 2]; END IF;
		RETURN NULL; END $$`)
	p.exec("CREATE TRIGGER give_up AFTER INSERT ON signals FOR EACH STATEMENT EXECUTE FUNCTION give_up()")
	if got := p.ingest(publications(o, 1500)...); got.Taken != 1500 {
		t.Errorf("%+v", got)
	}
	p.exec("SELECT setval('tries', 15)") // five tries fail from here
	p.exec(`CREATE OR REPLACE FUNCTION give_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		PERFORM nextval('tries'); RAISE 'given up' USING ERRCODE = '40P01'; END $$`)
	_, err := transfer.Ingest(t.Context(), p.DB, strings.NewReader(signalLine("x", domain.PolicyPublished, noon, "policy_id", o.policies[0])), transfer.Watcher{})
	if tries := p.text("SELECT last_value FROM tries"); !domain.IsCode(err, domain.Unavailable) || tries != "20" {
		t.Errorf("at %s tries: %v", tries, err)
	}
}
