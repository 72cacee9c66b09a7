package main

import (
	"bufio"
	"bytes"
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
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
)

// What is measured runs in processes of its own, so that its memory and its
// scheduling are its own. A child gets its parameters on its command line, says one
// line of JSON, and ends when its standard input does: with its parent, however that
// ends.

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
	Accounts  int    // of a directory
	Directory shown
	Now       time.Time // where the clock stands
}

// life is what a child does until its context ends. It says one line.
type life func(ctx context.Context, p params, say func(any))

// children are the children's lives by their names.
var children = map[string]life{
	"service":             serving(newService),
	"service-silent":      serving(newSilentService),
	"reference":           serving(newReference),
	"usual":               serving(newUsual),
	"work":                onData(sendMails),
	"deliver":             onData(deliverEvents),
	"ingest":              once(ingestSignals),
	"give":                once(giveCourses),
	"report":              once(makeReport),
	"directory-microsoft": directoryOf(openMicrosoft),
	"directory-google":    directoryOf(openGoogle),
	"sync":                once(syncClient),
	"export":              once(exportLines),
	"refresh":             refreshDaily,
	"import":              once(importLines),
}

// beChild is the life of a child.
func beChild(ctx context.Context, name, text string, parent io.Reader, out io.Writer) error {
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

// done is what a child that works once says.
type done[T any] struct {
	Took   time.Duration
	Result T
}

// onData is a child that works on the database.
func onData(work func(ctx context.Context, d *db.DB, p params, say func(any))) life {
	return func(ctx context.Context, p params, say func(any)) {
		d := must(db.Open(p.URL))
		defer d.Close()
		work(ctx, d, p, say)
	}
}

// once is a child that does its work on the database, says what came of it, and
// waits to be stopped.
func once[T any](work func(context.Context, *db.DB, params) T) life {
	return onData(func(ctx context.Context, d *db.DB, p params, say func(any)) {
		begin := time.Now()
		result := work(ctx, d, p)
		say(done[T]{time.Since(begin), result})
		<-ctx.Done()
	})
}

// serving is a child that serves what build makes, and says where.
func serving(build func(context.Context, params) http.Handler) life {
	return func(ctx context.Context, p params, say func(any)) {
		handler := build(ctx, p)
		if p.Profiled {
			mux := http.NewServeMux()
			mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
			mux.Handle("/", handler)
			handler = mux
		}
		listener := must(net.Listen("tcp", "127.0.0.1:0"))
		say(listener.Addr().String())
		server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute,
			IdleTimeout: 2 * time.Minute}
		context.AfterFunc(ctx, func() { _ = server.Close() })
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			check(err)
		}
	}
}

// child is a process that was started.
type child struct {
	said    []byte // its line
	address string // a server's
	command *exec.Cmd
	stdin   io.Closer
}

// start starts the program anew as one of the children, on the data unless p says
// otherwise, and waits for its line.
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
		check(errors.Join(fmt.Errorf("%s ended before it said its line", name), c.stop()))
	}
	return c
}

// serve starts a server.
func (b *bench) serve(name string) *child {
	c := b.start(name, params{})
	check(json.Unmarshal(c.said, &c.address))
	return c
}

// beside finds a figure while a server runs beside the service.
func (b *bench) beside(name string, find func(context.Context, *child) figure) finder {
	return func(ctx context.Context) (f figure) {
		c := b.serve(name)
		err := try(func() { f = find(ctx, c) })
		check(errors.Join(err, c.stop()))
		return f
	}
}

// while uses a child while it works, and returns its peak memory.
func (b *bench) while(name string, p params, use func(*child)) (peak float64) {
	before := childProcessors(b.data.server)
	c := b.start(name, p)
	err := try(func() {
		use(c)
		fmt.Fprintf(b.progress, "  processor time: child %s, database %s\n", processor(c.pid()),
			childProcessors(b.data.server)-before)
		peak = c.peakMB()
	})
	check(errors.Join(err, c.stop()))
	return peak
}

// inChild lets a child work once, and returns what came of it.
func inChild[T any](b *bench, name string, p params) (got done[T], peak float64) {
	peak = b.while(name, p, func(c *child) { check(json.Unmarshal(c.said, &got)) })
	return got, peak
}

// stop ends the child and waits for its end.
func (c *child) stop() error {
	return errors.Join(c.stdin.Close(), c.command.Wait())
}

func (c *child) pid() int { return c.command.Process.Pid }

// peakMB is the most memory that the child ever had resident.
func (c *child) peakMB() float64 { return peakMB(c.pid()) }

// peakMB is the most memory that a process ever had resident, in MB of 2^20 bytes.
func peakMB(pid int) float64 {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		fail("read a process's memory, which takes Linux: %w", err)
	}
	var kB float64
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	must(fmt.Sscan(peak, &kB))
	return kB / 1024
}

// Requests a second depend on what else the machine does; the processor time
// that a request takes hardly does. It is shown beside them where the system
// reports it, as Linux does in hundredths of a second.

// processor is the processor time that a process took so far.
func processor(pid int) time.Duration {
	_, took := statOf("/proc/" + strconv.Itoa(pid) + "/stat")
	return took
}

// childProcessors is that of a process's living children together.
func childProcessors(pid int) (sum time.Duration) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		if parent, took := statOf(file); parent == pid {
			sum += took
		}
	}
	return sum
}

// statOf reads the parent and the processor time out of a process's stat; a
// process that has ended has neither.
func statOf(file string) (parent int, took time.Duration) {
	stat, _ := os.ReadFile(file)
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // behind the name, which may hold anything
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(string(fields[1]))
	user, _ := strconv.Atoi(string(fields[11]))
	system, _ := strconv.Atoi(string(fields[12]))
	return parent, time.Duration(user+system) * 10 * time.Millisecond
}
