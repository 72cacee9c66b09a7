package runner

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/job"

	"github.com/riverqueue/river"
)

// idle is a worker that does nothing.
type idle struct {
	river.WorkerDefaults[job.SendMail]
}

func (*idle) Work(context.Context, *river.Job[job.SendMail]) error { return nil }

// lines passes a log on, line by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

func TestBeginsWhenTheDatabaseIsBack(t *testing.T) {
	server := dbtest.Private(t)
	d, err := db.Open(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := job.Migrate(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	log := make(lines, 1000)
	ctx, stop := context.WithCancel(t.Context())
	r, err := New(d, 1, slog.New(slog.NewTextHandler(log, nil)), func(all *river.Workers) { river.AddWorker(all, &idle{}) })
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	await := func(text string) {
		for line := range log {
			if strings.Contains(line, text) {
				return
			}
		}
	}
	await("cannot begin")
	server.Start()
	await("River client started")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
