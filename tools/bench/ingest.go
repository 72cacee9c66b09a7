package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/platform/transfer"
)

// This file measures how quickly signals are taken in, and reports of the largest
// client made.

// ingestSignals is a child that ingests a file of signals, as the command ingest does.
func ingestSignals(ctx context.Context, d *db.DB, p params) transfer.Ingested {
	file := must(os.Open(p.File))
	defer file.Close()
	size := int(must(file.Stat()).Size())
	show := output.NewBar(os.Stderr, "ingesting bytes")
	return must(transfer.Ingest(ctx, d, file, transfer.Watcher{
		Refused: func(line int, reason string) { fmt.Fprintf(os.Stderr, "line %d: %s\n", line, reason) },
		Read:    func(_ int, bytes int64) { show(int(bytes), size) },
	}))
}

// ingest measures how quickly signals of all types are taken in.
func (b *bench) ingest(ctx context.Context) figure {
	path := filepath.Join(b.folder, "signals")
	n := b.data.writeSignals(ctx, path, b.tenth(100_000))
	got, peak := inChild[transfer.Ingested](b, "ingest", params{File: path})
	if got.Result.Taken != n {
		fail("of %d signals: %+v", n, got.Result)
	}
	return rate(n, got.Took).about(", %d of them", n).in(peak)
}

// signalsSQL is $2 signals, in no order: three fifths of what happened
// to simulated mails, the rest of courses, policies and exposures. The largest client's
// policies stay as they are, for they are measured. $1 distinguishes the signals of one run
// from those of another.
const signalsSQL = `
	WITH mails AS MATERIALIZED (
		SELECT id, sent_at, row_number() OVER () % 60 AS n FROM (
			SELECT id, sent_at FROM phishing_results WHERE sent_at IS NOT NULL
			ORDER BY random() LIMIT $2::integer * 60 / 100) AS r
	), people AS MATERIALIZED (
		SELECT id, row_number() OVER () AS n FROM (SELECT id FROM users ORDER BY random() LIMIT $2::integer * 13 / 100) AS u
	)
	SELECT $1::text || row_number() OVER () AS id, type, least(at, now()) AS at, result_id, user_id, course_id, policy_id,
		version, breach_name
	FROM (
		SELECT CASE WHEN n < 30 THEN 'phishing_opened' WHEN n < 42 THEN 'phishing_clicked'
				WHEN n < 54 THEN 'phishing_reported' WHEN n < 57 THEN 'credentials_submitted' ELSE 'attachment_opened' END AS type,
			sent_at + make_interval(mins => 10 + n::integer) AS at, id AS result_id, NULL::uuid AS user_id,
			NULL::uuid AS course_id, NULL::uuid AS policy_id, NULL::integer AS version, NULL::text AS breach_name
		FROM mails
		UNION ALL
		(SELECT 'course_completed', now(), NULL, user_id, course_id, NULL, NULL, NULL
			FROM assignments WHERE completed_at IS NULL ORDER BY random() LIMIT $2::integer * 17 / 100)
		UNION ALL
		(SELECT 'policy_signed', now(), NULL, u.id, NULL, p.id, p.version, NULL
			FROM users AS u JOIN policies AS p USING (client_id)
			WHERE client_id <> $3 AND p.archived_at IS NULL ORDER BY random() LIMIT $2::integer * 99 / 1000)
		UNION ALL
		(SELECT 'policy_published', now(), NULL, NULL, NULL, id, NULL, NULL
			FROM policies WHERE client_id <> $3 AND archived_at IS NULL ORDER BY random() LIMIT $2::integer / 1000)
		UNION ALL
		SELECT CASE WHEN p.n % 5 < 3 THEN 'exposure_found' ELSE 'exposure_resolved' END, now(), NULL, p.id, NULL, NULL,
			NULL, b.name
		FROM people AS p JOIN (SELECT name, row_number() OVER () AS n, count(*) OVER () AS all FROM breaches) AS b
			ON b.n = 1 + p.n % b.all
	) AS s ORDER BY random()`

// line is a signal as it is written.
type line struct {
	ID         string            `json:"id"`
	Type       domain.SignalType `json:"type"`
	At         time.Time         `json:"at"`
	ResultID   *domain.ResultID  `json:"result_id,omitzero"`
	UserID     *domain.UserID    `json:"user_id,omitzero"`
	CourseID   *domain.CourseID  `json:"course_id,omitzero"`
	PolicyID   *domain.PolicyID  `json:"policy_id,omitzero"`
	Version    *int              `json:"version,omitzero"`
	BreachName *string           `json:"breach_name,omitzero"`
}

// writeSignals writes n signals that were never taken, or fewer where the data
// do not have as many, and returns how many.
func (d *data) writeSignals(ctx context.Context, path string, n int) int {
	signals := all[line](ctx, d, signalsSQL, db.NewID[domain.MessageKind]().String()+"-", n, d.clients[0])
	writeFile(path, func(to io.Writer) {
		lines := json.NewEncoder(to)
		for i := range signals {
			check(lines.Encode(&signals[i]))
		}
	})
	return len(signals)
}

// made is a report's size in bytes.
type made int64

// makeReport is a child that makes one report, as the background work does.
func makeReport(ctx context.Context, d *db.DB, p params) made {
	cli.RelaxGC()
	t := must(d.AnyTenant(ctx, p.Client))
	file := must(os.CreateTemp("", "partnerapi-bench-report"))
	defer file.Close()
	check(os.Remove(file.Name()))
	r := domain.Report{Client: p.Client, Type: p.Type, Format: p.Format}
	check(report.NewRenderer(nil).Write(ctx, file, t, r))
	return made(must(file.Stat()).Size())
}

// report measures one report.
func (b *bench) report(typ domain.ReportType, format domain.ReportFormat) finder {
	return func(context.Context) figure {
		got, peak := inChild[made](b, "report", params{Client: b.data.clients[0], Type: typ, Format: format})
		return took(got.Took).about(", of %.1f MB", float64(got.Result)/(1<<20)).in(peak)
	}
}
