package transfer_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// world is a database that lines are imported into.
type world struct {
	*db.DB
	t     testing.TB
	clock *domain.ManualClock
	// applied is after how many batches the run before was cut short.
	applied int
}

func newWorld(t testing.TB, opts ...db.Option) *world {
	t.Helper()
	clock := domain.NewManualClock(noon)
	d, err := db.Open(dbtest.URL(t, worldtest.Schema), append([]db.Option{db.WithClock(clock), db.WithStrictLocks()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{DB: d, t: t, clock: clock}
}

// fewLines is up to how many bytes of lines are tried before they are imported.
const fewLines = 50_000

// take imports lines, and returns the counts and the refusals. A dry run before that,
// of a few lines, reports the same.
func (w *world) take(lines ...string) (counts, refusals string) {
	w.t.Helper()
	text := strings.Join(lines, "\n")
	if len(text) > fewLines {
		return w.run(transfer.Import, text)
	}
	tried, refused := w.run(transfer.Try, text)
	counts, refusals = w.run(transfer.Import, text)
	if tried != counts || refused != refusals {
		w.t.Errorf("a dry run of\n%s\nreports %s\n%snot %s\n%s", text, tried, refused, counts, refusals)
	}
	return counts, refusals
}

// importer is transfer.Import or transfer.Try.
type importer func(context.Context, *db.DB, io.Reader, transfer.Watcher) (transfer.Report, error)

// run runs an import to its end.
func (w *world) run(as importer, lines string) (counts, refusals string) {
	w.t.Helper()
	var refused strings.Builder
	report, err := as(w.t.Context(), w.DB, strings.NewReader(lines), transfer.Watcher{
		Refused: func(line int, reason string) { fmt.Fprintf(&refused, "line %d: %s\n", line, reason) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if sum := report.Created + report.Updated + report.Unchanged + report.Refused; sum != report.Lines {
		w.t.Errorf("%+v does not add up", report)
	}
	return fmt.Sprintf("%d created, %d updated, %d unchanged, %d refused",
		report.Created, report.Updated, report.Unchanged, report.Refused), refused.String()
}

// want imports lines and compares the counts; nothing may be refused.
func (w *world) want(counts string, lines ...string) {
	w.t.Helper()
	got, refusals := w.take(lines...)
	if got != counts+", 0 refused" {
		w.t.Fatalf("%s, not %s\n%s", got, counts, refusals)
	}
}

// refuse imports a line, which is refused for a reason.
func (w *world) refuse(reason, line string) {
	w.t.Helper()
	counts, refusals := w.take(line)
	if counts != "0 created, 0 updated, 0 unchanged, 1 refused" || refusals != "line 1: "+reason+"\n" {
		w.t.Errorf("%s\n%s\n%snot %s", line, counts, refusals, reason)
	}
}

// text is the one value that a query gives.
func (w *world) text(query string, args ...any) (text string) {
	w.t.Helper()
	query = fmt.Sprintf("SELECT coalesce((SELECT string_agg(t::text, E'\\n') FROM (%s) AS t), '')", query)
	if err := w.SQL().QueryRowContext(w.t.Context(), query, args...).Scan(&text); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return text
}

// is compares what a query gives.
func (w *world) is(want, query string, args ...any) {
	w.t.Helper()
	if got := w.text(query, args...); got != want {
		w.t.Errorf("%s\n%s\nnot %s", query, got, want)
	}
}

// id is the UUID with a number.
func id(n int) string { return fmt.Sprintf("0197cafe-0000-7000-8000-%012x", n) }

// line is a line of an object with fields: names and values by turns, as JSON.
func line(object string, n int, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	fields = strings.NewReplacer("'", `"`, "\n", "", "\t", "").Replace(fields)
	return fmt.Sprintf(`{"object":%q,"id":%q%s}`, object, id(n), fields)
}

// ref writes #N in fields as the id with a number.
func ref(object string, n int, fields string) string {
	for i := 999; i > 0; i-- {
		fields = strings.ReplaceAll(fields, fmt.Sprintf("#%d", i), `"`+id(i)+`"`)
	}
	return line(object, n, fields)
}

// takeIn imports lines in batches of the given size.
func (w *world) takeIn(batch int, lines ...string) (transfer.Report, error) {
	return transfer.ImportIn(w.t.Context(), w.DB, strings.NewReader(strings.Join(lines, "\n")), transfer.Watcher{}, batch)
}

func cli(n int) string { return prefixed[domain.ClientKind](n) }
func usr(n int) string { return prefixed[domain.UserKind](n) }

func prefixed[K domain.Kind](n int) string { return parsed[K](n).String() }

// parsed is the id with a number.
func parsed[K domain.Kind](n int) domain.ID[K] {
	out, err := domain.ParseUUID[K](id(n))
	if err != nil {
		panic(err)
	}
	return out
}

// tables are those that an import writes.
var tables = []string{
	"partners", "courses", "clients", "program_courses", "admins", "groups", "users", "user_risks", "assignments",
	"collections", "collection_members", "policies", "risk_history", "events", "mail_requests", "outbox",
	"phishing_results", "phishing_days", "template_uses", "sent_emails", "exposures", "framework_assignments",
}

// everything is all that an import writes.
func (w *world) everything() string {
	w.t.Helper()
	var all strings.Builder
	for _, table := range tables {
		fmt.Fprintf(&all, "%s\n%s\n", table, w.text("SELECT t::text FROM "+table+" AS t ORDER BY 1"))
	}
	return all.String()
}

func adm(n int) string { return prefixed[domain.AdminKind](n) }
func grp(n int) string { return prefixed[domain.GroupKind](n) }
func col(n int) string { return prefixed[domain.CollectionKind](n) }
