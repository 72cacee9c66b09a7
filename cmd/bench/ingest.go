package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"partnerapi/cmd/internal/bar"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/ingest"
)

// This file measures how quickly signals are taken in.

const envSignals = "BENCH_SIGNALS"

// ingested is what a child that ingests says.
type ingested struct {
	Took   time.Duration
	Report ingest.Report
}

// ingestChild ingests a file of signals, as the command ingest does, says how
// that went, and waits to be stopped.
func ingestChild(ctx context.Context, parent io.Reader, out io.Writer) error {
	ctx, cancel := whileParent(ctx, parent)
	defer cancel()
	file, err := os.Open(os.Getenv(envSignals))
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	d, err := db.Open(os.Getenv(envURL))
	if err != nil {
		return err
	}
	defer d.Close()
	show := bar.New(os.Stderr, "ingesting bytes")
	begin := time.Now()
	report, err := ingest.Ingest(ctx, d, file, ingest.Watcher{
		Refused: func(line int, reason string) { fmt.Fprintf(os.Stderr, "line %d: %s\n", line, reason) },
		Applied: func(_ int, bytes int64) { show(int(bytes), int(info.Size())) },
	})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(ingested{time.Since(begin), report}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// signals is how many signals are ingested.
func (o options) signals() int {
	if o.quick {
		return 10_000
	}
	return 100_000
}

// ingest measures how quickly signals of all types are taken in.
func (b *bench) ingest(ctx context.Context) ([]result, error) {
	file, err := os.CreateTemp("", "partnerapi-bench-signals")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	n, err := b.data.writeSignals(ctx, file, b.signals())
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	before := childProcessors(b.data.server)
	worker, err := start("ingest", b.progress, envURL+"="+b.data.url, envSignals+"="+file.Name())
	if err != nil {
		return nil, err
	}
	b.spent("signal", worker, before, n)
	peak, failed := worker.peakMB()
	if err := errors.Join(failed, worker.stop()); err != nil {
		return nil, err
	}
	var got ingested
	if err := json.Unmarshal([]byte(worker.said), &got); err != nil {
		return nil, err
	}
	if got.Report.Taken != n {
		return nil, fmt.Errorf("of %d signals: %+v", n, got.Report)
	}
	return []result{
		{name: fmt.Sprintf("%d signals ingested", n), ours: perSecond(float64(n) / got.Took.Seconds())},
		{name: "  peak resident memory of the ingestion, MB", ours: fmt.Sprintf("%.0f", peak)},
	}, nil
}

// signalsSQL is $1 signals, in no order: three fifths of what happened to
// simulated mails, the rest of courses, policies and exposures. The largest
// client's policies stay as they are, for they are measured.
const signalsSQL = `
	WITH mails AS MATERIALIZED (
		SELECT id, sent_at, row_number() OVER () % 60 AS n FROM (
			SELECT id, sent_at FROM phishing_results WHERE sent_at IS NOT NULL ORDER BY random() LIMIT $1 * 60 / 100) AS r
	), people AS MATERIALIZED (
		SELECT client_id, id, row_number() OVER () AS n FROM (SELECT client_id, id FROM users ORDER BY random() LIMIT $1 * 13 / 100) AS u
	)
	SELECT type, least(at, now()), result_id::text, user_id::text, course_id::text, policy_id::text, version, breach_name FROM (
		SELECT CASE WHEN n < 30 THEN 'phishing_opened' WHEN n < 42 THEN 'phishing_clicked' WHEN n < 54 THEN 'phishing_reported'
				WHEN n < 57 THEN 'credentials_submitted' ELSE 'attachment_opened' END AS type,
			sent_at + make_interval(mins => 10 + n::integer) AS at, id AS result_id, NULL::uuid AS user_id, NULL::uuid AS course_id,
			NULL::uuid AS policy_id, NULL::integer AS version, NULL::text AS breach_name
		FROM mails
		UNION ALL
		(SELECT 'course_completed', now(), NULL, user_id, course_id, NULL, NULL, NULL
			FROM assignments WHERE completed_at IS NULL ORDER BY random() LIMIT $1 * 17 / 100)
		UNION ALL
		(SELECT 'policy_signed', now(), NULL, u.id, NULL, p.id, p.version, NULL
			FROM users AS u JOIN policies AS p USING (client_id)
			WHERE client_id <> $2 AND p.archived_at IS NULL ORDER BY random() LIMIT $1 * 99 / 1000)
		UNION ALL
		(SELECT 'policy_published', now(), NULL, NULL, NULL, id, NULL, NULL
			FROM policies WHERE client_id <> $2 AND archived_at IS NULL ORDER BY random() LIMIT $1 / 1000)
		UNION ALL
		SELECT CASE WHEN p.n % 5 < 3 THEN 'exposure_found' ELSE 'exposure_resolved' END, now(), NULL, p.id, NULL, NULL, NULL, b.name
		FROM people AS p JOIN (SELECT name, row_number() OVER () AS n, count(*) OVER () AS all FROM breaches) AS b ON b.n = 1 + p.n % b.all
	) AS s ORDER BY random()`

// line is a signal as it is written.
type line struct {
	ID      string            `json:"id"`
	Type    domain.SignalType `json:"type"`
	At      time.Time         `json:"at"`
	Result  domain.ResultID   `json:"result_id,omitzero"`
	User    domain.UserID     `json:"user_id,omitzero"`
	Course  domain.CourseID   `json:"course_id,omitzero"`
	Policy  domain.PolicyID   `json:"policy_id,omitzero"`
	Version int               `json:"version,omitzero"`
	Breach  string            `json:"breach_name,omitzero"`
}

// writeSignals writes n signals that were never taken, or fewer where the data
// do not have as many, and returns how many.
func (d *data) writeSignals(ctx context.Context, to io.Writer, n int) (written int, err error) {
	rows, err := d.db.SQL().QueryContext(ctx, signalsSQL, n, d.clients[0].UUID())
	if err != nil {
		return 0, fmt.Errorf("choose signals: %w", err)
	}
	defer rows.Close()
	buffer := bufio.NewWriter(to)
	out := json.NewEncoder(buffer)
	run := db.NewID[domain.MessageKind]() // by which the signals of one run differ from those of another
	for ; rows.Next(); written++ {
		l := line{ID: fmt.Sprintf("%s-%d", run, written)}
		var result, user, course, policy, breach sql.NullString
		var version sql.NullInt32
		if err := rows.Scan(&l.Type, &l.At, &result, &user, &course, &policy, &version, &breach); err != nil {
			return 0, err
		}
		l.Version, l.Breach = int(version.Int32), breach.String
		if err := errors.Join(parse(result, &l.Result), parse(user, &l.User), parse(course, &l.Course),
			parse(policy, &l.Policy)); err != nil {
			return 0, err
		}
		if err := out.Encode(l); err != nil {
			return 0, err
		}
	}
	return written, errors.Join(rows.Err(), buffer.Flush())
}

// parse reads an id that may be null.
func parse[K domain.Kind](text sql.NullString, id *domain.ID[K]) (err error) {
	if text.Valid {
		*id, err = domain.ParseUUID[K](text.String)
	}
	return err
}
