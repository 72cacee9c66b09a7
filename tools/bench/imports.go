package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// The lines of a platform whose users are half of the seed's, of which half belong to one client: users in order of
// creation, a year of results and of emails in order of time, so that neighboring lines belong to users of different
// clients. $1 is the partner or a template.
const (
	objectsSQL = `
		SELECT json_build_object('object', 'partner', 'id', $1::uuid, 'name', 'Platform')::text
		UNION ALL SELECT json_build_object('object', 'client', 'id', id, 'partner', $1::uuid, 'name', name, 'created_at', created_at)::text
		FROM clients WHERE partner_id = $1
		UNION ALL (SELECT json_build_object('object', 'user', 'id', id, 'client', client_id, 'email', email, 'first_name', first_name,
			'last_name', last_name, 'department', department, 'job_title', job_title, 'source', 'manual', 'created_at', created_at)::text
		FROM users WHERE hashtext(id::text) % 2 = 0 ORDER BY created_at)`
	timesSQL = `
		FROM (SELECT id, date_trunc('second', now() - random() * interval '1 year') AS at FROM users, generate_series(1, 12)
			WHERE hashtext(id::text) % 2 = 0) AS u ORDER BY at`
	resultsSQL = `
		SELECT json_strip_nulls(json_build_object('object', 'phishing_result', 'id', gen_random_uuid(), 'user', id, 'template', $1::uuid,
			'sent_at', at, 'opened_at', CASE WHEN random() < 0.5 THEN at + interval '1 minute' END,
			'clicked_at', CASE WHEN random() < 0.1 THEN at + interval '2 minutes' END))::text` + timesSQL
	emailsSQL = `
		SELECT json_build_object('object', 'sent_email', 'id', gen_random_uuid(), 'user', id, 'event_time', at, 'from_email',
			'no-reply@platform.example', 'subject', 'Message', 'send_method', 'smtp', 'message_type', 'training-invite')::text` + timesSQL
)

// imports are imports of such a platform into an empty database.
func (b *bench) imports() []measure {
	return []measure{{name: "import of a platform: its users and their clients", needs: b.data.empty, run: func(ctx context.Context) figure {
		part := func(query string, values ...any) figure {
			file := b.file(all[string](ctx, b.data, query, values...))
			got := inChild[transfer.Report](b, "import", params{URL: b.data.emptyURL(), File: file})
			if got.Result.Refused > 0 {
				fail("%+v", got.Result)
			}
			return rate(got.Result.Lines, got.Took).about(", %d lines", got.Result.Lines).in(got.peak)
		}
		return part(objectsSQL, b.data.partner).
			and("results in order of time", bound{}, part(resultsSQL, must(db.OwnTemplates())[0].ID)).
			and("sent emails in order of time", bound{}, part(emailsSQL))
	}}}
}

// file writes a file of lines.
func (b *bench) file(lines []string) (path string) {
	path = filepath.Join(b.folder, "lines")
	file := must(os.Create(path))
	defer file.Close()
	for _, line := range lines {
		must(io.WriteString(file, line+"\n"))
	}
	return path
}

// rejected shows rejected lines.
var rejected = transfer.Watcher{Refused: func(line int, reason string) { fmt.Fprintf(os.Stderr, "line %d: %s\n", line, reason) }}

// exportLines, importLines and ingestSignals are children that do what the commands export, import and ingest do.
func exportLines(ctx context.Context, d *db.DB, p params) (report transfer.Report) {
	file := must(os.Create(p.File))
	check(transfer.Export(ctx, d, domain.PartnerID{}, transfer.Output{Objects: file}, func(_ string, n int, done bool) {
		if done {
			report.Lines += n
		}
	}))
	check(file.Close())
	return report
}

func importLines(ctx context.Context, d *db.DB, p params) transfer.Report {
	return must(transfer.Import(ctx, d, transfer.Lines(must(os.Open(p.File))), rejected))
}

func ingestSignals(ctx context.Context, d *db.DB, p params) transfer.Ingested {
	return must(transfer.Ingest(ctx, d, must(os.Open(p.File)), rejected))
}
