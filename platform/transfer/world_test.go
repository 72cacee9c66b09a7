package transfer_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

var noon = worldtest.Noon

// world is a database that lines are imported into.
type world struct {
	*db.DB
	t     testing.TB
	clock *domain.ManualClock
	// applied is after how many batches the run before was cut short.
	applied int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	clock := domain.NewManualClock(noon)
	d, err := db.Open(dbtest.URL(t, worldtest.Schema), db.WithClock(clock), db.WithStrictLocks())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return &world{DB: d, t: t, clock: clock}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// breaches is a catalogue that exposures refer to.
var breaches = []domain.Breach{
	{Name: "Forum", Title: "Forum", Severity: domain.SeverityCritical, DataClasses: []string{"Passwords"}},
	{Name: "ForumExample", Title: "Forum", Severity: domain.SeverityCritical, DataClasses: []string{"Passwords"}},
	{Name: "Клиника", Title: "Clinic", Severity: domain.SeverityHigh, DataClasses: []string{"Names"}, Sensitive: true},
	{Name: "List", Title: "List", Severity: domain.SeverityLow, DataClasses: []string{"Email addresses"}, SpamList: true},
}

// catalogue imports the breaches.
func (w *world) catalogue() {
	w.t.Helper()
	_, _, err := w.ImportBreaches(w.t.Context(), breaches)
	w.must(err)
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
type importer func(context.Context, *db.DB, transfer.Input, transfer.Watcher) (transfer.Report, error)

// run runs an import to its end.
func (w *world) run(as importer, lines string) (counts, refusals string) {
	w.t.Helper()
	return w.runOn(as, transfer.Lines(strings.NewReader(lines)))
}

// runOn runs an import of an input to its end.
func (w *world) runOn(as importer, in transfer.Input) (counts, refusals string) {
	w.t.Helper()
	var refused strings.Builder
	report, err := as(w.t.Context(), w.DB, in, transfer.Watcher{
		Refused: func(line int, reason string) { fmt.Fprintf(&refused, "line %d: %s\n", line, reason) },
	})
	w.must(err)
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

// tables are those that an import writes, but for results of templates that have other ids elsewhere.
var tables = []string{
	"partners", "courses", "clients", "program_courses", "admins", "groups", "users", "user_risks", "assignments",
	"collections", "collection_members", "policies", "risk_history", "events", "mail_requests", "outbox",
	"phishing_days", "sent_emails", "exposures", "framework_assignments",
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

// signalWorld is a database that signals go to.
type signalWorld struct{ *worldtest.World }

func newSignalWorld(t testing.TB, opts ...db.Option) *signalWorld {
	t.Helper()
	return withCatalogue(worldtest.New(t, opts...))
}

func withCatalogue(w *worldtest.World) *signalWorld {
	w.T.Helper()
	_, _, err := w.ImportBreaches(w.T.Context(), breaches)
	w.Must(err)
	w.Add("phishing_templates", row{"id": domain.TemplateID{15: 1}})
	return &signalWorld{w}
}

type row = fixture.Row

// text reads one value of one row.
func (p *signalWorld) text(query string, args ...any) (out string) {
	p.T.Helper()
	p.Scan("SELECT coalesce(("+query+")::text, '')", args, &out)
	return out
}

// office is a client: what signals name, by number. Two offices of one size are
// alike but for the ids.
type office struct {
	client   domain.ClientID
	users    []domain.UserID
	results  []domain.ResultID // two of each user
	policies []domain.PolicyID
}

// course is one of the service's courses: 1 is open, 2 is open for the second
// time, 3 was never given but is the program's, 7 and 8 were never given.
func course(n byte) domain.CourseID {
	return domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: n}
}

func (p *signalWorld) office(users int) *office {
	p.T.Helper()
	o := &office{client: db.NewID[domain.ClientKind]()}
	long, then := noon.AddDate(-2, 0, 0), noon.AddDate(0, 0, -3)
	p.Add("clients", row{"id": o.client, "partner_id": p.Partner, "name": o.client.String(), "name_key": o.client.String()})
	p.Add("program_courses", row{"client_id": o.client, "position": 3, "course_id": course(3), "due_after_days": 30})

	var people, courses, results, policies []row
	for i := range users {
		user := db.NewID[domain.UserKind]()
		o.users = append(o.users, user)
		people = append(people, row{"client_id": o.client, "id": user, "email": fmt.Sprintf("%04d@example.com", i)})
		given := func(n byte, round, position int, at time.Time, completed any) row {
			return row{
				"client_id": o.client, "user_id": user, "course_id": course(n), "round": round, "position": position,
				"assigned_at": at, "due_on": at, "completed_at": completed,
			}
		}
		open := noon.AddDate(0, 0, -20)
		courses = append(courses, given(1, 1, 1, open, nil), given(2, 1, 2, long, long), given(2, 2, 2, open, nil))
		for range 2 {
			result := db.NewID[domain.ResultKind]()
			o.results = append(o.results, result)
			results = append(results, row{
				"client_id": o.client, "id": result, "user_id": user, "template_id": domain.TemplateID{15: 1},
				"status": domain.ResultSent, "sent_at": then, "created_at": then,
			})
		}
	}
	for range 2 {
		policy := db.NewID[domain.PolicyKind]()
		o.policies = append(o.policies, policy)
		policies = append(policies, row{"client_id": o.client, "id": policy, "scope_id": o.client})
	}
	p.Add("users", people...)
	p.Add("assignments", courses...)
	p.Add("phishing_results", results...)
	p.Add("policies", policies...)
	if users > 0 {
		p.Add("phishing_days", row{"client_id": o.client, "day": then, "sent": 2 * users})
	}
	p.rescore(o)
	return o
}

// rescore computes the scores of the office's users again.
func (p *signalWorld) rescore(o *office) {
	p.T.Helper()
	p.Must(p.Rescore(p.T.Context(), o.client, o.users))
}

// signalLine is a signal with more fields, as names and values by turns.
func signalLine(id string, kind domain.SignalType, at time.Time, more ...any) string {
	fields := map[string]any{"id": id, "type": kind, "at": at}
	for i := 0; i < len(more); i += 2 {
		fields[more[i].(string)] = more[i+1]
	}
	text, _ := json.Marshal(fields)
	return string(text)
}

// outcome is a report and the lines that were refused.
type outcome struct {
	transfer.Ingested
	refused []string
}

func (p *signalWorld) ingest(lines ...string) (out outcome) {
	p.T.Helper()
	var err error
	in := bytes.NewReader([]byte(strings.Join(lines, "\n")))
	out.Ingested, err = transfer.Ingest(p.T.Context(), p.DB, in, transfer.Watcher{
		Refused: func(line int, reason string) { out.refused = append(out.refused, fmt.Sprintf("%d %s", line, reason)) },
	})
	p.Must(err)
	return out
}
