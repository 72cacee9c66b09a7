package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// TestEachType: what each type of signal does, and the events that it writes. A file that was
// taken is taken again as such, though what it names is gone since.
func TestEachType(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(1)
	user, at := o.users[0], noon.Add(-time.Hour)
	file := []string{
		signalLine("1", domain.PhishingOpened, at, "result_id", o.results[0]),
		signalLine("2", domain.PhishingClicked, at, "result_id", o.results[0]),
		signalLine("3", domain.CredentialsSubmitted, at, "result_id", o.results[0]),
		signalLine("4", domain.PhishingReported, at, "result_id", o.results[1]),
		signalLine("5", domain.AttachmentOpened, at, "result_id", o.results[1]),
		signalLine("6", domain.CourseCompleted, at, "user_id", user, "course_id", course(1)),
		signalLine("7", domain.PolicySigned, at, "user_id", user, "policy_id", o.policies[0], "version", 1),
		signalLine("8", domain.PolicyPublished, at, "policy_id", o.policies[1]),
		signalLine("9", domain.ExposureFound, at, "user_id", user, "breach_name", "Forum"),
		signalLine("10", domain.ExposureFound, at, "user_id", user, "breach_name", "List", "data_classes", []string{"PINs"}),
		signalLine("11", domain.ExposureFound, at, "user_id", user, "breach_name", "Клиника", "severity", "low", "data_classes", nil),
		signalLine("12", domain.ExposureResolved, at.Add(time.Minute), "user_id", user, "breach_name", "Forum"),
		signalLine("13", domain.PolicySigned, at, "user_id", user, "policy_id", o.policies[1], "version", 2),
		signalLine("14", domain.PolicyPublished, at, "policy_id", o.policies[1]),
		"", // nothing on a line is no signal
	}
	got := p.ingest(file...)
	if got.Taken != 14 || got.Lines != 14 {
		t.Fatalf("%+v", got)
	}
	for query, want := range map[string]string{
		"SELECT string_agg(status || ' ' || reported, ', ' ORDER BY status) FROM phishing_results":                       "attachment_opened true, credentials_submitted false",
		"SELECT concat_ws(' ', opened, clicked, reported, credentials_submitted, attachments_opened) FROM phishing_days": "2 2 1 1 1",
		"SELECT string_agg(course_id || ' ' || completed_at, ', ') FROM assignments WHERE completed_at > '2026-01-01'":   course(1).UUID() + " 2026-06-15 11:00:00+00",
		"SELECT string_agg(version || ' ' || reviewed_at, ', ' ORDER BY version) FROM policies":                          "1 2024-06-15 12:00:00+00, 3 2026-06-15 11:00:00+00",
		"SELECT string_agg(version || ' ' || signed_at, ', ' ORDER BY version) FROM policy_signatures":                   "1 2026-06-15 11:00:00+00, 2 2026-06-15 11:00:00+00",
		"SELECT string_agg(concat_ws(' ', breach_name, severity, data_classes, resolved_at), ', ' ORDER BY breach_name) FROM exposures": "Forum critical {Passwords} 2026-06-15 11:01:00+00, " +
			"List critical {PINs}, Клиника low {Names}",
		"SELECT string_agg(type || ' ' || n, ', ' ORDER BY type) FROM (SELECT type, count(*) AS n FROM events WHERE object_id IS NOT NULL AND user_id IS NOT NULL GROUP BY type) AS e": "dark_web.exposure.found 3, " +
			"phishing.result.updated 2, policy.acknowledged 1, training.assignment.completed 1",
		"SELECT next_course_id FROM users": course(2).UUID(),
	} {
		if got := p.text(query); got != want {
			t.Errorf("%s:\n %s\nwant\n %s", query, got, want)
		}
	}
	if score := p.text("SELECT score FROM users"); score == "750" {
		t.Error("the score did not move")
	}
	p.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", o.client, noon)
	fresh := signalLine("15", domain.PhishingReported, noon, "result_id", o.results[0])
	if got := p.ingest(append(file, fresh)...); got.Taken != 0 || got.Repeated != 14 || len(got.refused) != 1 {
		t.Errorf("again: %+v", got)
	}
}

// TestBadSignals: each is reported by its number with the reason, and the lines
// around it are taken. An id of a refused line may be used again. Of an archived
// client there is nothing, and a mail that is not sent goes on being sent. The limit of
// a line's bytes is exact, and a byte order mark is only at the very beginning none of it.
func TestBadSignals(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o, other, archived := p.office(1), p.office(1), p.office(1)
	user, theirs, stranger := o.users[0].String(), archived.users[0], db.NewID[domain.UserKind]()
	at, sent, unsent := noon.Format(time.RFC3339), noon.AddDate(0, 0, -3), db.NewID[domain.ResultKind]()
	p.Add("phishing_results", row{
		"client_id": other.client, "id": unsent, "user_id": other.users[0], "template_id": domain.TemplateID{15: 1}, "send_at": noon.Add(-time.Hour),
	})
	published := func(id string) string {
		return signalLine(id, domain.PolicyPublished, noon, "policy_id", o.policies[0])
	}
	padded := func(text string, size int) string { return text + strings.Repeat(" ", size-len(text)) }
	reported := func(more ...any) string {
		return signalLine("x", domain.EmailReported, noon, append([]any{"message_id", "m", "sender", ""}, more...)...)
	}
	classified := func(more ...any) string {
		return signalLine("x", domain.EmailClassified, noon, append([]any{"message_id", "m"}, more...)...)
	}
	signed := func(policy domain.PolicyID, version any) string {
		return signalLine("x", domain.PolicySigned, noon, "user_id", user, "policy_id", policy, "version", version)
	}
	found := func(more ...any) string {
		return signalLine("x", domain.ExposureFound, noon, append([]any{"user_id", user}, more...)...)
	}
	p.Exec("UPDATE policies SET archived_at = $2 WHERE id = $1", o.policies[1], noon)
	p.Exec("UPDATE clients SET archived_at = $2 WHERE id = $1", archived.client, noon)
	unchanged := func() string { return p.text(everything, archived.client) + p.text(everything, other.client) }
	before := unchanged()
	var lines, want []string
	for _, c := range []struct{ line, want string }{
		{`{"id":"x"`, "must be valid JSON in UTF-8"},
		{`{"id":"x","id":"y"}`, "id must be given once; type is required; at is required"},
		{`{"id":"x"}`, "type is required; at is required"},
		{`{"id":"x","type":"email_moved","at":"` + at + `","subject":"S"}`, "type must be one of attachment_opened, course_completed, course_started, credentials_submitted, email_classified, email_reported, exposure_found, exposure_resolved, phishing_clicked, phishing_opened, phishing_reported, policy_published, policy_signed"},
		{`{"type":"policy_published"}`, "id is required; at is required; policy_id is required"},
		{`{"id":"","type":"policy_published"}`, "at is required; policy_id is required; id must not be blank"},
		{`{"id":"` + strings.Repeat("é", 256) + `","type":"policy_published"}`, "at is required; policy_id is required; id must be at most 255 characters"},
		{`{"id":7,"type":"policy_published"}`, "id must be a string; at is required; policy_id is required"},
		{`{"id":"a\u0000b","type":"policy_published"}`, "id must not contain a NUL; at is required; policy_id is required"},
		{`{"id":"x","type":"policy_published","at":null}`, "at is required; policy_id is required"},
		{`{"id":"x","type":"policy_published","at":"2026-02-30T00:00:00Z"}`, "at must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z; policy_id is required"},
		{signalLine("x", domain.PolicyPublished, noon.Add(5*time.Minute+time.Second)), "policy_id is required; at must not be in the future"},
		{signalLine("x", domain.PolicyPublished, noon), "policy_id is required"},
		{signalLine("x", domain.PolicyPublished, noon, "policy_id", o.policies[0], "user_id", user), "user_id is not allowed if type is policy_published"},
		{signalLine("x", domain.PolicyPublished, noon, "policy_id", o.client), "policy_id must be the ID of a policy"},
		{signalLine("x", domain.PolicyPublished, noon, "policy_id", domain.PolicyID{}), "there is no such policy"},
		{signalLine("x", domain.PolicyPublished, noon, "policy_id", o.policies[1]), "there is no such policy"},
		{signed(other.policies[0], 1), "there is no such policy"},
		{signed(o.policies[1], 1), "there is no such policy"},
		{signed(o.policies[0], 0), "version must be between 1 and 2147483647"},
		{signed(o.policies[0], 1.5), "version must be an integer"},
		{signed(o.policies[0], "1"), "version must be an integer"},
		{signed(o.policies[0], 1<<31), "version must be between 1 and 2147483647"},
		{signed(o.policies[0], nil), "version is required"},
		{signalLine("x", domain.PhishingClicked, noon, "result_id", db.NewID[domain.ResultKind]()), "there is no such phishing result"},
		{signalLine("x", domain.PhishingClicked, noon, "result_id", 5), "result_id must be the ID of a phishing result"},
		{signalLine("x", domain.CourseCompleted, noon, "user_id", user, "course_id", course(99)), "there is no such course"},
		{signalLine("x", domain.CourseCompleted, noon, "user_id", db.NewID[domain.UserKind](), "course_id", course(1)), "there is no such user"},
		{signalLine("x", domain.CourseCompleted, noon, "user_id", domain.UserID{}, "course_id", course(1)), "there is no such user"},
		{found("breach_name", "Nowhere"), "there is no such breach"},
		{found("breach_name", "Forum", "severity", "awful"), "severity must be one of critical, high, medium, low"},
		{found("breach_name", "Forum", "data_classes", []string{}), "data_classes must contain at least 1 item"},
		{found("breach_name", "Forum", "data_classes", "PINs"), "data_classes must be an array"},
		{found("breach_name", "Forum", "data_classes", slices.Repeat([]string{"PINs"}, 101)), "data_classes must contain at most 100 items"},
		{found("breach_name", "Forum", "data_classes", []string{"PINs", ""}), "data_classes[1] must not be blank"},
		{padded(published("x"), transfer.MaxLine+1), "the line is longer than 1048576 bytes"},
		{padded(published("x"), transfer.MaxLine) + "\r", "the line is longer than 1048576 bytes"},
		{"\uFEFF" + published("x"), "must be valid JSON in UTF-8"},
		{signalLine("x", domain.PhishingClicked, sent.Add(-time.Microsecond), "result_id", o.results[0]), "at: 2026-06-12T11:59:59.999999Z is before the email was sent, at 2026-06-12T12:00:00Z"},
		{signalLine("x", domain.PhishingReported, sent.Add(-time.Hour), "result_id", o.results[1]), "at: 2026-06-12T11:00:00Z is before the email was sent, at 2026-06-12T12:00:00Z"},
		{signalLine("x", domain.PhishingReported, noon, "result_id", unsent), "the email of this result has not been sent yet"},
		{signalLine("x", domain.PhishingReported, noon, "result_id", archived.results[0]), "there is no such phishing result"},
		{signalLine("x", domain.CourseCompleted, noon, "user_id", theirs, "course_id", course(1)), "there is no such user"},
		{signalLine("x", domain.PolicySigned, noon, "user_id", theirs, "policy_id", archived.policies[0], "version", 1), "there is no such user"},
		{signed(archived.policies[0], 1), "there is no such policy"},
		{signalLine("x", domain.PolicyPublished, noon, "policy_id", archived.policies[0]), "there is no such policy"},
		{signalLine("x", domain.ExposureFound, noon, "user_id", theirs, "breach_name", "Forum"), "there is no such user"},
		{signalLine("x", domain.ExposureResolved, noon, "user_id", theirs, "breach_name", "Forum"), "there is no such user"},
		{reported("user_id", user, "subject", "", "message_id", " <> "), "message_id must not be blank"},
		{reported("user_id", user, "subject", 5), "subject must be a string"},
		{reported("user_id", user, "subject", "s", "sender", nil), "sender is required"},
		{reported("user_id", stranger, "subject", ""), "there is no such user"},
		{classified("classification", "pending"), "classification must be one of phishing, spam, safe"},
		{classified("classification", "spam", "mailbox_action", "burnt"), "mailbox_action must be one of none, moved_to_junk, deleted"},
		{classified("classification", "spam", "client_id", db.NewID[domain.ClientKind]()), "there is no such client"},
		{classified("classification", "spam", "client_id", domain.ClientID{}), "client_id must not be blank"},
	} {
		want = append(want, fmt.Sprintf("%d %s", len(lines)+2, c.want))
		lines = append(lines, published(fmt.Sprint(len(lines))), c.line)
	}
	last := signalLine("x", domain.PolicyPublished, noon.Add(5*time.Minute), "policy_id", o.policies[0])
	lines = append(lines, padded(last, transfer.MaxLine))
	lines[0] = "\uFEFF" + lines[0]
	got := p.ingest(lines...)
	for i := range max(len(got.refused), len(want)) {
		if i >= len(got.refused) || i >= len(want) || got.refused[i] != want[i] {
			t.Fatalf("refused\n%s\nwant\n%s", strings.Join(got.refused[min(i, len(got.refused)):], "\n"), strings.Join(want[min(i, len(want)):], "\n"))
		}
	}
	if got.Taken != len(want)+1 || got.Repeated != 0 || got.Refused != len(want) || got.Lines != len(lines) {
		t.Errorf("%+v of %d lines", got.Ingested, len(lines))
	}
	if v := p.text("SELECT version FROM policies WHERE id = $1", o.policies[0]); v != fmt.Sprint(len(want)+2) {
		t.Errorf("version %s", v)
	}
	if after := unchanged(); after != before {
		t.Errorf("changed\n%s", differing(before, after))
	}
}

// TestReportedTexts verifies that a report of any real email is accepted: with a subject and a sender of any length, which
// are cut, and without a subject.
func TestReportedTexts(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(1)
	long := strings.Repeat("é", 499) + "ab"
	var lines []string
	for i, fields := range [][]any{
		{"subject", long, "sender", long}, {"subject", nil, "sender", "s"}, {"sender", "s"}, {"subject", "", "sender", ""},
	} {
		lines = append(lines, signalLine(fmt.Sprint(i), domain.EmailReported, noon, append(fields, "user_id", o.users[0], "message_id", fmt.Sprint(i))...))
	}
	if got := p.ingest(lines...); got.Taken != len(lines) {
		t.Errorf("%+v", got)
	}
	want := long[:len(long)-1] + "/" + long[:len(long)-1] + " /s /s /"
	if got := p.text("SELECT string_agg(subject || '/' || sender, ' ' ORDER BY message_id) FROM reported_emails"); got != want {
		t.Errorf("stored are %s", got)
	}
}

// TestSignalUUIDs verifies that a signal names objects by their UUIDs, as lines of an import do.
func TestSignalUUIDs(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(1)
	user := strings.ToUpper(o.users[0].UUID())
	got := p.ingest(
		signalLine("1", domain.CourseCompleted, noon, "user_id", user, "course_id", course(2).UUID()),
		signalLine("2", domain.PolicySigned, noon, "user_id", user, "policy_id", o.policies[0].UUID(), "version", 1),
		signalLine("3", domain.PhishingOpened, noon, "result_id", o.results[0].UUID()),
		signalLine("4", domain.EmailClassified, noon, "message_id", "m", "classification", "spam", "client_id", o.client.UUID()),
		signalLine("5", domain.PhishingOpened, noon, "result_id", o.results[0].UUID()+"0"),
		signalLine("6", domain.PhishingOpened, noon, "result_id", domain.ResultID{}.UUID()),
	)
	if got.Taken != 4 || len(got.refused) != 2 || !strings.HasSuffix(got.refused[0], "5 result_id must be the ID of a phishing result") {
		t.Errorf("%+v", got)
	}
}

// publications are signals that each move a policy's version by one.
func publications(o *office, n int) []string {
	lines := make([]string, n)
	for i := range lines {
		lines[i] = signalLine(fmt.Sprint(i), domain.PolicyPublished, noon, "policy_id", o.policies[0])
	}
	return lines
}

// TestAtMostOnce: a signal that comes twice in one run, in a second run, or
// in two runs at once is taken once.
func TestAtMostOnce(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(0)
	lines := publications(o, 2500)
	first := p.ingest(append(lines[:10:10], lines[:20]...)...)
	if first.Taken != 20 || first.Repeated != 10 {
		t.Fatalf("%+v", first)
	}
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			report, err := transfer.Ingest(t.Context(), p.DB, strings.NewReader(strings.Join(lines, "\n")), transfer.Watcher{})
			if err != nil || report.Taken+report.Repeated != len(lines) {
				t.Errorf("%+v, %v", report, err)
			}
			taken.Add(int64(report.Taken))
		})
	}
	all.Wait()
	if again := p.ingest(lines...); again.Repeated != len(lines) {
		t.Errorf("%+v", again)
	}
	if v := p.text("SELECT version FROM policies WHERE id = $1", o.policies[0]); v != "2501" || taken.Load() != 2480 {
		t.Errorf("version %s, %d taken", v, taken.Load())
	}
}

// killer kills the server in the middle of a transaction: before the nth
// statement that holds a text. The process behind the connection would survive
// the server for a moment, and is killed too.
type killer struct {
	text string
	left atomic.Int32
	kill func()
}

func (k *killer) TraceQueryStart(ctx context.Context, conn *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, k.text) && k.left.Add(-1) == 0 {
		k.kill()
		_ = syscall.Kill(int(conn.PgConn().PID()), syscall.SIGKILL)
	}
	return ctx
}

func (k *killer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TestBrokenInput: an input that cannot be read to its end is an error; what
// came before the broken batch is applied.
func TestBrokenInput(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	o := p.office(0)
	broken := errors.New("the pipe broke")
	in := io.MultiReader(strings.NewReader(strings.Join(publications(o, 1500), "\n")), brokenReader{broken})
	report, err := transfer.IngestImpatiently(t.Context(), p.DB, in, transfer.Watcher{}, never)
	if !errors.Is(err, broken) || report.Taken != 1000 {
		t.Errorf("%+v, %v", report, err)
	}
}

type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }

// TestStatements: a batch of many signals takes as many statements as one of a
// few, for users of any number of clients.
func TestStatements(t *testing.T) {
	t.Parallel()
	c := &worldtest.Statements{}
	p := newSignalWorld(t, db.WithTracer(c))
	batch := func(name string, offices int) int {
		var lines []string
		for n := range offices {
			o := p.office(2)
			add := func(kind domain.SignalType, more ...any) {
				lines = append(lines, signalLine(fmt.Sprint(name, n, len(lines)), kind, noon, more...))
			}
			for i, user := range o.users {
				add(domain.PhishingClicked, "result_id", o.results[2*i])
				add(domain.CourseCompleted, "user_id", user, "course_id", course(1))
				add(domain.PolicySigned, "user_id", user, "policy_id", o.policies[0], "version", 1)
				add(domain.ExposureFound, "user_id", user, "breach_name", "Forum")
			}
			add(domain.PolicyPublished, "policy_id", o.policies[1])
		}
		return c.During(func() {
			if got := p.ingest(lines...); got.Taken != len(lines) {
				t.Errorf("%+v", got)
			}
		})
	}
	if few, many := batch("few", 1), batch("many", 20); few != many {
		t.Errorf("%d statements for one office, %d for twenty", few, many)
	}
}
