package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// This file measures exports and imports (decisions 10): all of the data are written to
// a file, which is then imported into a database that is empty but for the catalogues.

const envLines = "BENCH_LINES"

// transferred is what a child that exports or imports says.
type transferred struct {
	Took   time.Duration
	Report transfer.Report
}

// transferChild opens the database, does its work, says how that went, and waits to be
// stopped.
func transferChild(work func(context.Context, *db.DB, string) (transfer.Report, error)) func(
	context.Context, io.Reader, io.Writer) error {
	return func(ctx context.Context, parent io.Reader, out io.Writer) error {
		ctx, cancel := whileParent(ctx, parent)
		defer cancel()
		d, err := db.Open(os.Getenv(envURL))
		if err != nil {
			return err
		}
		defer d.Close()
		begin := time.Now()
		report, err := work(ctx, d, os.Getenv(envLines))
		if err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(transferred{time.Since(begin), report}); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}
}

// exportLines writes all objects to a file.
func exportLines(ctx context.Context, d *db.DB, path string) (report transfer.Report, err error) {
	file, err := os.Create(path)
	if err != nil {
		return report, err
	}
	err = transfer.Export(ctx, d, domain.PartnerID{}, transfer.Output{Objects: file}, func(_ string, n int, done bool) {
		if done {
			report.Lines += n
		}
	})
	return report, errors.Join(err, file.Close())
}

// importLines imports a file, as the command import does.
func importLines(ctx context.Context, d *db.DB, path string) (transfer.Report, error) {
	file, err := os.Open(path)
	if err != nil {
		return transfer.Report{}, err
	}
	defer file.Close()
	return transfer.Import(ctx, d, file, transfer.Watcher{
		Refused: func(line int, reason string) { fmt.Fprintf(os.Stderr, "line %d: %s\n", line, reason) },
	})
}

// transfers are the measures of an export and of an import.
func (b *bench) transfers() []measure {
	return []measure{{"exporting and importing", nil, b.transfer}, {"importing a platform", nil, b.platform}}
}

func (b *bench) transfer(ctx context.Context) (results []result, err error) {
	dir, err := os.MkdirTemp("", "partnerapi-bench-transfer")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	first, second := filepath.Join(dir, "first.ndjson"), filepath.Join(dir, "second.ndjson")
	empty, err := b.data.emptyCopy(ctx)
	if err != nil {
		return nil, err
	}

	for _, m := range []struct{ what, child, url, file string }{
		{"exported", "export", b.data.url, first}, {"imported into an empty database", "import", empty, first},
		{"imported again, which changes nothing", "import", empty, first}, {"exported again", "export", empty, second},
	} {
		more, err := b.transferred(m.what, m.child, m.url, m.file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.what, err)
		}
		results = append(results, more...)
	}
	if err := sameFiles(first, second); err != nil {
		return nil, err
	}
	_, err = b.data.db.SQL().ExecContext(ctx, "DROP DATABASE bench_import")
	return results, err
}

// transferred measures one child.
func (b *bench) transferred(what, child, url, file string) ([]result, error) {
	worker, err := start(child, b.progress, envURL+"="+url, envLines+"="+file)
	if err != nil {
		return nil, err
	}
	peak, failed := worker.peakMB()
	if err := errors.Join(failed, worker.stop()); err != nil {
		return nil, err
	}
	var got transferred
	if err := json.Unmarshal([]byte(worker.said), &got); err != nil {
		return nil, err
	}
	if got.Report.Refused > 0 {
		return nil, fmt.Errorf("%+v", got.Report)
	}
	n := got.Report.Lines
	return []result{
		{name: fmt.Sprintf("%d lines %s", n, what), ours: perSecond(float64(n) / got.Took.Seconds())},
		{name: "  peak resident memory of it, MB", ours: fmt.Sprintf("%.0f", peak)},
	}, nil
}

// emptyCopy makes a database on the same server with the catalogues and nothing else,
// and returns its URL.
func (d *data) emptyCopy(ctx context.Context) (string, error) {
	for _, statement := range []string{"DROP DATABASE IF EXISTS bench_import", "CREATE DATABASE bench_import"} {
		if _, err := d.db.SQL().ExecContext(ctx, statement); err != nil {
			return "", fmt.Errorf("make a database: %w", err)
		}
	}
	where, err := url.Parse(d.url)
	if err != nil {
		return "", err
	}
	where.Path = "/bench_import"
	to, err := db.Open(where.String())
	if err != nil {
		return "", err
	}
	defer to.Close()
	if _, err := to.Migrate(ctx); err != nil {
		return "", err
	}
	if err := to.LoadTemplates(ctx); err != nil {
		return "", err
	}
	var breaches string
	err = d.db.SQL().QueryRowContext(ctx, "SELECT coalesce(json_agg(b), '[]')::text FROM breaches AS b").Scan(&breaches)
	if err == nil {
		_, err = to.SQL().ExecContext(ctx,
			"INSERT INTO breaches SELECT * FROM json_populate_recordset(NULL::breaches, $1::json)", breaches)
	}
	return where.String(), err
}

// sameFiles wants two files to hold the same bytes.
func sameFiles(a, b string) error {
	one, err := os.Open(a)
	if err != nil {
		return err
	}
	defer one.Close()
	two, err := os.Open(b)
	if err != nil {
		return err
	}
	defer two.Close()
	left, right := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, err := io.ReadFull(one, left)
		m, other := io.ReadFull(two, right)
		if !bytes.Equal(left[:n], right[:m]) {
			return errors.New("the second export has other bytes than the first")
		}
		if err != nil || other != nil {
			return nil
		}
	}
}
