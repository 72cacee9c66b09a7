//go:build slow

package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/db/reports"
	"partnerapi/domain"
	"partnerapi/platform/report"
)

// What a server's log has of an export, of a report, and of the figures of metrics.
const (
	exportRead  = "DECLARE rows_"
	reportRead  = "FROM risk_history"
	figuresRead = "report_oldest_seconds"
)

// replicated is a demonstration on a primary with an asynchronous standby, which is given
// by --replica-url.
type replicated struct {
	t                *testing.T
	primary, standby *node
	flags            []string
	service          *running
	client           string // the path of one
}

func newReplicated(t *testing.T) *replicated {
	p := newPostgres(t)
	f := &replicated{t: t, primary: p.primary("a", "logging_collector = on", "log_directory = 'log'", "log_filename = 'said'",
		"log_statement = 'all'", "autovacuum = off")} // what a vacuum removes would cut reads of the standby off
	url := "--database-url=" + reach(f.primary)
	must(t, "migrate", url)
	f.standby = f.primary.standby("b")
	f.flags = []string{url, "--replica-url=" + f.standby.reader()}
	f.service = serving(t, append(f.flags, "--encryption-key="+freshKey(t), "--demo", "--release=latest")...)
	clients := into[struct{ Data []identified }](f.service.get("/v2/clients?limit=1", "pk_demo_all").want(http.StatusOK))
	f.client = "/v2/clients/" + clients.Data[0].ID
	return f
}

// reader is the address of the database at a server, whether it takes writes or not.
func (n *node) reader() string { return strings.ReplaceAll(reach(n), "read-write", "any") }

// said returns what a server's log has from an offset on, and where it ends.
func (n *node) said(from int) (string, int) {
	n.t.Helper()
	text, err := os.ReadFile(filepath.Join(n.data(), "log", "said"))
	if err != nil {
		n.t.Fatal(err)
	}
	return string(text[from:]), len(text)
}

// reads wants a statement to be in the log of the standby while do is done, and after
// that not in the primary's.
func (f *replicated) reads(statement string, do func()) {
	f.t.Helper()
	_, onPrimary := f.primary.said(0)
	_, onStandby := f.standby.said(0)
	do()
	f.await("the standby reads "+statement, func() bool {
		said, _ := f.standby.said(onStandby)
		return strings.Contains(said, statement)
	})
	if said, _ := f.primary.said(onPrimary); strings.Contains(said, statement) {
		f.t.Errorf("the primary reads %s", statement)
	}
}

func (f *replicated) await(what string, is func() bool) {
	f.t.Helper()
	await(f.t, what, is, f.service.logs)
}

// export makes a client and returns an export, which must have it.
func (f *replicated) export(name string) result {
	f.t.Helper()
	f.service.do("POST", "/v2/clients", "pk_demo_all", fields{"name": name}).want(http.StatusCreated)
	r := command(f.t, append([]string{"export"}, f.flags...)...)
	if r.code != 0 || !strings.Contains(r.out, name) {
		f.t.Errorf("an export without %s: exit %d, %s", name, r.code, r.err)
	}
	return r
}

// report has a report made.
func (f *replicated) report() {
	f.t.Helper()
	made := f.service.do("POST", f.client+"/reports", "pk_demo_all", fields{"type": "risk_overview", "format": "xlsx"})
	path := f.client + "/reports/" + into[identified](made.want(http.StatusCreated)).ID
	f.await("a report is made", func() bool {
		return into[struct{ Status string }](f.service.get(path, "pk_demo_all").want(http.StatusOK)).Status == "ready"
	})
}

var replicaFigures = regexp.MustCompile(`(?m)^partnerapi_(replica_used|replica_lag_seconds|database_up) (\S+)$`)

// figures are those of the standby and the database.
func (f *replicated) figures() map[string]string {
	f.t.Helper()
	_, text := read(f.t, f.service.address+"/metrics")
	found := map[string]string{}
	for _, m := range replicaFigures.FindAllStringSubmatch(text, -1) {
		found[m[1]] = m[2]
	}
	return found
}

// leftAlone wants the work to go on without the standby, for a reason, and metrics and
// doctor to say so.
func (f *replicated) leftAlone(why string) {
	f.t.Helper()
	if r := f.export("Made while " + why); !strings.Contains(r.err, "the standby is skipped") || !strings.Contains(r.err, why) {
		f.t.Errorf("the export does not say %q: %s", why, r.err)
	}
	var got map[string]string
	f.await("metrics have no standby", func() bool { got = f.figures(); return got["replica_used"] == "0" })
	if got["database_up"] != "1" || got["replica_lag_seconds"] == "0" {
		f.t.Errorf("figures: %v", got)
	}
	f.report()
	if r := command(f.t, append([]string{"doctor"}, f.flags...)...); !strings.Contains(r.out, "\nfail  standby ") || !strings.Contains(r.out, why) {
		f.t.Errorf("doctor: %s", r.out)
	}
}

// TestReplica: reports, exports and figures are read from a standby, and miss nothing
// that was written before. One that is behind, gone or promoted is left alone until it is
// back.
func TestReplica(t *testing.T) {
	t.Parallel()
	f := newReplicated(t)
	used := func() bool {
		got := f.figures()
		return got["replica_used"] == "1" && got["replica_lag_seconds"] == "0" && got["database_up"] == "1"
	}
	f.reads(figuresRead, func() { f.await("metrics have a standby", used) })
	f.reads(reportRead, f.report)
	f.reads(exportRead, func() {
		for n := range 5 {
			f.export(fmt.Sprintf("Written just before %d", n))
		}
	})
	same := must(t, append([]string{"export"}, f.flags...)...) == must(t, "export", f.flags[0])
	if !same {
		t.Error("the exports of the standby and the primary differ")
	}
	const feedback = "\nwarn  standby "
	if r := command(t, append([]string{"doctor"}, f.flags...)...); !strings.Contains(r.out, feedback) {
		t.Errorf("doctor without hot_standby_feedback: %s", r.out)
	}
	f.standby.exec("ALTER SYSTEM SET hot_standby_feedback = on")
	f.standby.exec("SELECT pg_reload_conf()")
	if r := command(t, append([]string{"doctor"}, f.flags...)...); !strings.Contains(r.out, "\nok    standby ") {
		t.Errorf("doctor: %s", r.out)
	}

	f.standby.exec("SELECT pg_wal_replay_pause()")
	f.leftAlone("the standby did not replay the primary's writes in time")
	f.standby.exec("SELECT pg_wal_replay_resume()")
	f.await("the standby is used again", used)

	f.standby.kill()
	f.leftAlone("reach the standby")
	f.standby.start()
	f.await("the standby is used again", used)
	f.reads(reportRead, f.report)

	f.standby.types(`pg_ctl promote --pgdata="$STANDBY_DATA"`, "STANDBY_DATA="+f.standby.data())
	f.leftAlone("the server is not a standby")
	f.service.finish()
	if logs := f.service.logs.String(); strings.Contains(logs, "level=ERROR") || strings.Count(logs, "the standby is in use") != 3 ||
		strings.Count(logs, "the standby is skipped") != 3 {
		t.Error(logs)
	}
}

// TestReplicaCutOff: what the standby cuts off begins anew on the primary, by a conflict
// with what it replays as by the loss of a connection: of a report that is half written, only
// what the primary said is left.
func TestReplicaCutOff(t *testing.T) {
	t.Parallel()
	p := newPostgres(t)
	primary := p.primary("a", "max_standby_streaming_delay = 0", "autovacuum = off")
	must(t, "migrate", "--database-url="+reach(primary))
	must(t, "seed", "--clients=1", "--users=5", "--database-url="+reach(primary))
	standby := primary.standby("b")
	own := strings.ReplaceAll(primary.admin(), "/postgres?", "/partnerapi?")
	write := func(statements ...string) {
		for _, text := range statements { // VACUUM is alone in its message
			primary.with(own, func(conn *pgx.Conn) error { _, err := conn.Exec(t.Context(), text); return err })
		}
	}
	replayed := func() {
		var end string
		primary.with(own, func(conn *pgx.Conn) error {
			return conn.QueryRow(t.Context(), "SELECT pg_current_wal_flush_lsn()::text").Scan(&end)
		})
		standby.until(standby.admin(), "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", end)
	}
	write("CREATE TABLE counted AS SELECT generate_series(1, 100) AS n", "VACUUM counted", "GRANT SELECT ON counted TO partnerapi")
	for _, cut := range []func(){
		func() { // what the snapshot of the standby reads is cleaned up
			write("DELETE FROM counted WHERE n <= 50", "VACUUM counted", "CREATE TABLE written_after ()")
			replayed()
		},
		func() {
			standby.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'partnerapi'")
		},
	} {
		replayed() // what is replayed while the standby is connected to would cut that off
		d, err := db.Open(reach(primary), db.WithReplica(standby.reader(), slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		cuts := 0
		file := cutReport(t, d, func() { cuts++; cut() })
		if state, _ := d.Replica(); cuts != 1 || file != "of a standby: false, 50 rows" || state.Used {
			t.Errorf("after %d cuts the file is %q; %+v", cuts, file, state)
		}
	}
}

// cutReport makes a report that is cut off when half of it is written, and returns its file.
func cutReport(t *testing.T, d *db.DB, cut func()) string {
	t.Helper()
	id, err := pg.One[domain.ClientID](t.Context(), d, "find a client", pg.SQL("SELECT id FROM clients LIMIT 1"))
	if err != nil {
		t.Fatal(err)
	}
	r := domain.Report{
		ID: db.NewID[domain.ReportKind](), Client: id, Type: domain.RiskOverview, Format: domain.XLSX,
		Status: domain.ReportPending, CreatedAt: d.Now(), UpdatedAt: d.Now(),
	}
	err = d.Change(t.Context(), func(ctx context.Context, c *db.Change) error {
		of, err := d.AnyTenant(ctx, id)
		if err != nil {
			return err
		}
		return of.InsertReport(ctx, c, r)
	})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	store, err := report.OpenStore(t.Context(), "", t.TempDir(), log)
	if err != nil {
		t.Fatal(err)
	}
	worker := report.NewWorker(d, store, cutOff(cut), log, report.Observer{})
	outcome, err := worker.Process(t.Context(), reports.ReportLease{Client: id, Report: r.ID})
	if err != nil || outcome != report.Made {
		t.Fatal(outcome, err)
	}
	file, err := store.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cutOff writes where a report is read, and cuts the standby off then.
type cutOff func()

func (cut cutOff) Write(ctx context.Context, w io.Writer, of *db.Tenant, _ domain.Report) error {
	return of.Snapshot(ctx, func(ctx context.Context, of *db.Tenant) error {
		recovers, err := pg.One[bool](ctx, of.DB(), "ask", pg.SQL("SELECT pg_is_in_recovery() FROM counted LIMIT 1"))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "of a standby: %v", recovers)
		if recovers {
			cut()
		}
		rows, err := pg.One[int](ctx, of.DB(), "count", pg.SQL("SELECT count(*) FROM counted"))
		fmt.Fprintf(w, ", %d rows", rows)
		return err
	})
}
