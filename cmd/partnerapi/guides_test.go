package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/outbox"
	"partnerapi/db/pg"
	"partnerapi/db/reports"
	"partnerapi/db/seed"
	"partnerapi/docs"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/platform/seal"
	"partnerapi/platform/webhook"
	v2 "partnerapi/v2"
	"partnerapi/v2/op/ginop"
)

// The guides' examples take place at this moment, on a demonstration that was
// made then.
var guideTime = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

const guideBase = "http://127.0.0.1:8080"

var guideSchema = demonstrationOf("guides", guideTime)

// demonstrationOf is a database with the demonstration as serve --demo makes it at a time.
func demonstrationOf(name string, at time.Time) dbtest.Schema {
	return dbtest.Schema{Name: name, Key: rand.Text(), Apply: func(ctx context.Context, url string) error { return makeDemonstration(ctx, url, at) }}
}

func makeDemonstration(ctx context.Context, url string, at time.Time) error {
	if err := migrated(nil)(ctx, url); err != nil {
		return err
	}
	d, err := db.Open(url, db.WithClock(domain.NewManualClock(at)))
	if err != nil {
		return err
	}
	defer d.Close()
	if _, err = seed.Demo(ctx, d); err != nil {
		return err
	}
	secret, err := d.CursorSecret(ctx)
	if err != nil {
		return err
	}
	if err := webhook.NewPublisher(d, v2.New(d, secret).RenderEvents, slog.New(slog.DiscardHandler), func() {}).Publish(ctx); err != nil {
		return err
	}
	// serve --demo has made the reports of earlier days before it begins.
	_, err = d.SQL().ExecContext(ctx, "UPDATE reports SET status = 'ready' WHERE status = 'pending' AND created_at < $1",
		at.AddDate(0, 0, -2))
	return err
}

// example is commands or a program of a guide, and what they are said to print.
type example struct {
	line    int
	release string
	// language is that of the block, and interpreter what runs it; empty for commands and for languages that cannot run here.
	language, interpreter string
	// session is whether the block is a tab beside commands: the blocks of a language are one program.
	session bool
	script  string
	output  string
	// begin and end are the lines of the output's block, where there is one.
	begin, end int
}

// ranElsewhere are the guides whose programs are not run here: those that verify
// signatures and that make lines to import have tests of their own, and others need a
// client that was generated.
var ranElsewhere = map[string]bool{"webhooks.md": true, "import.md": true, "generate-client.md": true, "listen.md": true,
	"nightly-sync.md": true, "click-tickets.md": true, "monthly-reports.md": true, "connect-tools.md": true}

// examplesOf finds the examples of a guide: blocks of sh and programs, each with the
// block that follows it, of json or text, as what it prints. What follows tabs is printed by each of them. The word
// release=2.0 beside sh has it run on that release; otherwise it is the latest.
func examplesOf(t *testing.T, name, source string) []example {
	t.Helper()
	var list []example
	var info, block string
	fence, begin := false, 0
	tabs := 0 // the number of examples that the next block follows
	for i, line := range strings.Split(source, "\n") {
		mark, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && !fence:
			fence, info, block, begin = true, mark, "", i
		case isFence:
			fence = false
			language, more, _ := strings.Cut(info, " ")
			switch {
			case slices.Contains(tabOrder, language):
				if language == "sh" {
					tabs = 0
				}
				release, _ := strings.CutPrefix(more, "release=")
				tabs++
				list = append(list, example{
					line: begin + 1, release: release, language: language, interpreter: languages[language], script: block,
					session: tabs > 1 && list[len(list)-tabs+1].language == "sh" && sessions[language],
				})
				continue
			case (language == "json" || language == "text") && tabs > 0:
				for at := range list[len(list)-tabs:] {
					e := &list[len(list)-tabs+at]
					e.output = block
					if at == 0 || !e.session {
						e.begin, e.end = begin, i
					}
				}
			case strings.Contains(block, "curl ") && !ranElsewhere[name]:
				t.Errorf("%s:%d: a block of %q has a command that no test runs", name, begin+1, language)
			}
			tabs = 0
		case fence:
			block += line + "\n"
		case strings.TrimSpace(line) != "":
			tabs = 0
		}
	}
	return list
}

// TestGuides runs every example of every guide, in order, on a demonstration
// for each guide, and compares what it prints. In what a guide shows, … stands
// for any text within a line, and alone on a line for any lines. With -update
// a block that is empty, or shows something else, is filled.
func TestGuides(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(docs.Guides(), "*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("guides: %v, %v", names, err)
	}
	known := guideOrder()
	for _, file := range names {
		if name := strings.TrimSuffix(file, ".md"); older() && !slices.Contains(known, name) {
			t.Errorf("the guide %s is not served", name)
		}
	}
	for _, name := range known {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runGuide(t, name+".md")
		})
	}
}

func runGuide(t *testing.T, name string) {
	source, err := fs.ReadFile(docs.Guides(), name)
	if err != nil {
		t.Fatal(err)
	}
	all := examplesOf(t, name, string(source))
	for language := range sessions {
		runSession(t, name, language, all)
	}
	examples := slices.DeleteFunc(slices.Clone(all), func(e example) bool {
		return e.session || e.language != "sh" && (e.interpreter == "" || ranElsewhere[name])
	})
	if len(examples) == 0 {
		return
	}
	url := dbtest.URL(t, guideSchema)
	services := map[string]string{}
	s, err := newShell(t.TempDir(), guideBase)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(source), "\n")
	filled, moved := false, 0
	for _, e := range examples {
		if services[e.release] == "" {
			services[e.release] = guideService(t, url, e.release)
		}
		s.address = services[e.release]
		got, err := s.show(e)
		if errors.Is(err, errMissing) {
			t.Logf("%s:%d: %v", name, e.line, err)
			continue
		}
		if err != nil {
			t.Errorf("%s:%d: %v", name, e.line, err)
			return
		}
		if *update && e.end > 0 && (e.output == "" || !shows(e.output, got)) {
			begin, end := e.begin+1+moved, e.end+moved
			shown := strings.Split(strings.TrimSuffix(abbreviated(got), "\n"), "\n")
			lines = slices.Replace(lines, begin, end, shown...)
			moved += len(shown) - (end - begin)
			filled = true
			continue
		}
		if !shows(e.output, got) {
			t.Errorf("%s:%d: the guide shows\n%sand the commands print\n%s", name, e.line, e.output, got)
		}
	}
	if filled {
		path := filepath.Join("..", "..", "docs", "guide", name)
		if _, err := os.Stat(path); err != nil {
			path = filepath.Join("..", "..", "docs", name)
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// show runs an example.
func (s *shell) show(e example) (string, error) {
	if e.interpreter == "" {
		return s.run(e.script)
	}
	programs, err := s.folder(e.interpreter)
	if err != nil {
		return "", err
	}
	file, err := programs.save(e.interpreter, e.script)
	if err != nil {
		return "", err
	}
	return programs.program(e.interpreter, file)
}

var (
	fresh = regexp.MustCompile(`"(next_cursor|as_of|request_id|download_link|download_url)": "[^"]+"`)
	anyID = regexp.MustCompile(`[a-z]{3}_[0-7][0-9a-hjkmnp-tv-z]{25}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
)

// abbreviated puts … instead of what is another in each run: cursors, ids of
// requests, and ids of objects that the examples make.
func abbreviated(printed string) string {
	printed = fresh.ReplaceAllStringFunc(printed, func(found string) string {
		name, value, _ := strings.Cut(found, `: "`)
		prefix, _, _ := strings.Cut(value, "_")
		if prefix != "req" {
			return name + `: "…"`
		}
		return name + `: "req_…"`
	})
	return anyID.ReplaceAllStringFunc(printed, func(found string) string {
		prefix, digits, isID := strings.Cut(found, "_")
		id, err := domain.ParseUUID[domain.UserKind](found)
		if isID {
			id, err = domain.ParseID[domain.UserKind](domain.UserID{}.Prefix() + "_" + digits)
			prefix += "_"
		} else {
			prefix = ""
		}
		var made [8]byte
		copy(made[2:], id[:6])
		if err != nil || int64(binary.BigEndian.Uint64(made[:])) < guideTime.UnixMilli() {
			return found
		}
		return prefix + "…"
	})
}

// shows reports whether an output is what a guide shows of it.
func shows(shown, got string) bool {
	pattern := regexp.QuoteMeta(shown)
	pattern = regexp.MustCompile(`(?m)^[ \t]*…\n`).ReplaceAllString(pattern, "(?:.*\n)*?")
	pattern = strings.ReplaceAll(pattern, "…", "[^\n]*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(got)
}

func TestShows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shown, got string
		want       bool
	}{
		{"a\n", "a\n", true},
		{"a\n", "a\nb\n", false},
		{"a…c\n", "abbc\n", true},
		{"a…c\n", "ab\nc\n", false},
		{"a\n  …\nd\n", "a\nb\nc\nd\n", true},
		{"a\n  …\nd\n", "a\nd\n", true},
		{"a\n…\n", "b\n", false},
		{"", "", true},
		{"", "a\n", false},
		{"{\"a.b\": 1}\n", "{\"axb\": 1}\n", false},
	} {
		if shows(c.shown, c.got) != c.want {
			t.Errorf("%q shows %q: %v", c.shown, c.got, !c.want)
		}
	}
}

// guideService serves the demonstration of a database, at its own time, and returns
// the address. What a request leaves to be done in the background is done before it is
// answered.
func guideService(t *testing.T, url, release string) string {
	t.Helper()
	if release == "" {
		release = "latest"
	}
	d, err := db.Open(url, db.WithClock(domain.NewManualClock(guideTime)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	store, err := report.OpenStore(t.Context(), "", t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	r := resources{store: store, renderer: report.NewRenderer(nil)}
	var answers http.Handler
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answers.ServeHTTP(w, r) }))
	s := builtService(t, d, "http://"+server.Listener.Addr().String(), r, "serve", "--demo", "--release="+release, "--log-level=error", "--data-dir="+t.TempDir())
	after := afterwards{
		db: d, publisher: webhook.NewPublisher(d, s.api.RenderEvents, s.log, func() {}),
		reports: report.NewWorker(d, r.store, r.renderer, log, report.Observer{}),
	}
	engine := ginop.Compress(s.engine)
	answers = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", guideTime.Format(http.TimeFormat))
		engine.ServeHTTP(w, r)
		if r.Method == http.MethodGet {
			return
		}
		if err := after.do(r.Context()); err != nil {
			t.Errorf("after %s %s: %v", r.Method, r.URL.Path, err)
		}
	})
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// afterwards is the background work of a guide's service.
type afterwards struct {
	db        *db.DB
	publisher *webhook.Publisher
	reports   *report.Worker
}

// do makes the reports that examples asked for, sends their simulated mails, and
// publishes their events.
func (a afterwards) do(ctx context.Context) error {
	pending, err := pg.All[reports.ReportLease](ctx, a.db, "find reports",
		pg.SQL("SELECT client_id, id FROM reports WHERE status = 'pending' AND created_at >= ?", guideTime))
	if err != nil {
		return err
	}
	for _, r := range pending {
		if _, err := a.reports.Process(ctx, r); err != nil {
			return err
		}
	}
	leases, err := outbox.ClaimMails(ctx, a.db, new(outbox.MailTurns), 100, time.Hour)
	if err != nil {
		return err
	}
	var sent []outbox.SentMail
	for _, l := range leases {
		if l.Kind == db.SimulatedMail {
			sent = append(sent, outbox.SentMail{Lease: l})
		}
	}
	if len(sent) > 0 {
		if _, err := outbox.MarkSent(ctx, a.db, sent); err != nil {
			return err
		}
	}
	return a.publisher.Publish(ctx)
}

// willing are endpoints that take everything.
type willing struct{}

func (willing) Close() {}

func (willing) Post(context.Context, domain.DeliveryMessage) webhook.Answer { return webhook.Answer{} }

func (willing) Check(context.Context, string) error { return nil }

func (willing) Send(context.Context, domain.DeliveryMessage) domain.DeliveryTry {
	return domain.DeliveryTry{At: guideTime, StatusCode: http.StatusOK, DurationMS: 12}
}

// builtService builds the service of a command line at an address, on a database, and
// runs no background work.
func builtService(t *testing.T, d *db.DB, address string, r resources, args ...string) *service {
	t.Helper()
	line := parses(t, args...)
	keys, err := seal.ParseKeys(base64.StdEncoding.EncodeToString(make([]byte, 32)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.keys, r.endpoints = keys, willing{}
	s, err := line.Serve.build(ctx, d, address, r, slog.New(slog.NewTextHandler(t.Output(), nil)), nil)
	if err != nil {
		cancel()
		t.Fatal(fmt.Errorf("build: %w", err))
	}
	t.Cleanup(func() {
		cancel()
		s.group.Wait()
	})
	return s
}
