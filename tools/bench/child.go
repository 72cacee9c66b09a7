package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"os/exec"
	"time"

	"github.com/prometheus/procfs"

	"partnerapi/db"
	"partnerapi/domain"
)

// What is measured runs in its own processes, so that its memory and its scheduling are its own. A child receives its
// parameters on its command line, writes one line of JSON, and exits when its standard input ends: with its parent,
// however that exits.

// params are the parameters of children.
type params struct {
	URL      string // of the database
	Partner  domain.PartnerID
	Profiled bool

	Client    domain.ClientID
	File      string // that is read or written
	Type      domain.ReportType
	Format    domain.ReportFormat
	SMTP      string // the mail server's URL
	CA        string // the file of the certificate of endpoints
	Directory connection
	Now       time.Time // of the database's clock, unless zero
}

// life is what a child does until its context ends. It calls say once.
type life func(ctx context.Context, p params, say func(any))

// children are the lives of children by their names.
var children = map[string]life{
	"service":   serving(newService),
	"reference": serving(newReference),
	"usual":     serving(newUsual),
	"email":     onData(sendMails),
	"deliver":   onData(deliverEvents),
	"ingest":    once(ingestSignals),
	"assign":    once(assignCourses),
	"report":    once(makeReport),
	"sync":      once(syncClient),
	"export":    once(exportLines),
	"import":    once(importLines),
	"refresh":   once(refreshDaily),
}

// runChild runs a child.
func runChild(ctx context.Context, name, text string, parent io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, parent)
		cancel()
	}()
	var p params
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return err
	}
	return try(func() { children[name](ctx, p, func(said any) { check(json.NewEncoder(out).Encode(said)) }) })
}

// onData is a child with the database.
func onData(work func(ctx context.Context, d *db.DB, p params, say func(any))) life {
	return func(ctx context.Context, p params, say func(any)) {
		var options []db.Option
		if !p.Now.IsZero() {
			options = append(options, db.WithClock(domain.NewManualClock(p.Now)), db.WithAcceptedClock())
		}
		d := must(db.Open(p.URL, options...))
		defer d.Close()
		work(ctx, d, p, say)
	}
}

// done is the line of a child that works once.
type done[T any] struct {
	Took   time.Duration
	Result T
	peak   float64 // memory, added by the parent
}

// once is a child that works once with the database, and then waits for its end.
func once[T any](work func(context.Context, *db.DB, params) T) life {
	return onData(func(ctx context.Context, d *db.DB, p params, say func(any)) {
		began := time.Now()
		result := work(ctx, d, p)
		say(done[T]{Took: time.Since(began), Result: result})
		<-ctx.Done()
	})
}

// serving is a child that serves HTTP and says its URL.
func serving(build func(context.Context, params) http.Handler) life {
	return func(ctx context.Context, p params, say func(any)) {
		mux := http.NewServeMux()
		mux.Handle("/", build(ctx, p))
		if p.Profiled {
			mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		}
		listener := must(net.Listen("tcp", "127.0.0.1:0"))
		say("http://" + listener.Addr().String())
		server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
		context.AfterFunc(ctx, func() { _ = server.Close() })
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			check(err)
		}
	}
}

// child is a process that was started.
type child struct {
	said    []byte // its line
	url     string // of a server
	command *exec.Cmd
	stdin   io.Closer // whose end ends it
}

// start starts a child, with the database of the data unless p has another one, and waits for its line.
func (b *bench) start(name string, p params) *child {
	if p.URL == "" {
		p.URL = b.data.url
	}
	p.Partner, p.Profiled = b.data.partner, b.profiles != ""
	c := &child{command: exec.Command(must(os.Executable()), name, string(must(json.Marshal(p))))}
	c.command.Stderr = b.progress
	c.stdin = must(c.command.StdinPipe())
	out := must(c.command.StdoutPipe())
	check(c.command.Start())
	var err error
	if c.said, err = bufio.NewReader(out).ReadBytes('\n'); err != nil {
		check(errors.Join(fmt.Errorf("%s ended before its line", name), c.stop()))
	}
	return c
}

// serve starts a server that runs to the end.
func (b *bench) serve(name string) *child {
	c := b.start(name, params{})
	b.ends = append(b.ends, c.stop)
	check(json.Unmarshal(c.said, &c.url))
	return c
}

// during starts a child, calls use, stops the child, and returns its peak memory.
func (b *bench) during(name string, p params, use func(*child)) (peak float64) {
	c := b.start(name, p)
	err := try(func() {
		use(c)
		peak = c.peakMB()
	})
	check(errors.Join(err, c.stop()))
	return peak
}

// inChild runs a child that works once.
func inChild[T any](b *bench, name string, p params) (got done[T]) {
	peak := b.during(name, p, func(c *child) { check(json.Unmarshal(c.said, &got)) })
	got.peak = peak
	return got
}

// stop ends the child and waits for its end.
func (c *child) stop() error { return errors.Join(c.stdin.Close(), c.command.Wait()) }

// peakMB returns the maximum resident memory of the child so far, in MB of 2^20 bytes.
func (c *child) peakMB() float64 {
	status := must(must(procfs.NewProc(c.command.Process.Pid)).NewStatus())
	return float64(status.VmHWM) / (1 << 20)
}
