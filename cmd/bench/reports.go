package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"partnerapi/cmd/internal/gc"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/report"
)

// This file measures how quickly reports of the largest client are made, and what
// memory that takes.

const (
	envType   = "BENCH_REPORT_TYPE"
	envFormat = "BENCH_REPORT_FORMAT"

	// serviceMB is the goal of the memory of a process that makes reports or syncs.
	serviceMB = 200
)

// made is what a child that makes a report says.
type made struct {
	Took  time.Duration
	Bytes int64
}

// reportChild makes one report, as the background work does, into a file that is
// removed, says how that went, and waits to be stopped.
func reportChild(ctx context.Context, parent io.Reader, out io.Writer) error {
	ctx, cancel := whileParent(ctx, parent)
	defer cancel()
	gc.Relax()
	d, err := db.Open(os.Getenv(envURL))
	if err != nil {
		return err
	}
	defer d.Close()
	client, err := domain.ParseUUID[domain.ClientKind](os.Getenv(envClient))
	if err != nil {
		return err
	}
	t, err := d.AnyTenant(ctx, client)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "partnerapi-bench-report")
	if err != nil {
		return err
	}
	defer file.Close()
	if err := os.Remove(file.Name()); err != nil {
		return err
	}

	r := domain.Report{
		Client: client, Type: domain.ReportType(os.Getenv(envType)), Format: domain.ReportFormat(os.Getenv(envFormat)),
	}
	begin := time.Now()
	if err := report.NewMaker(report.Options{}).Write(ctx, file, t, r); err != nil {
		return err
	}
	took := time.Since(begin)
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := json.NewEncoder(out).Encode(made{took, info.Size()}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// reports are the measures of each type of report in each format.
func (b *bench) reports() (measures []measure) {
	for _, typ := range domain.ReportTypes {
		for _, format := range []domain.ReportFormat{domain.PDF, domain.XLSX} {
			measures = append(measures, measure{
				fmt.Sprintf("report %s as %s", typ, format), b.data.papers,
				func(ctx context.Context) ([]result, error) { return b.report(ctx, typ, format) },
			})
		}
	}
	return measures
}

// report measures one report.
func (b *bench) report(ctx context.Context, typ domain.ReportType, format domain.ReportFormat) ([]result, error) {
	before := childProcessors(b.data.server)
	maker, err := start("report", b.progress, envURL+"="+b.data.url, envClient+"="+b.data.clients[0].UUID(),
		envType+"="+string(typ), envFormat+"="+string(format))
	if err != nil {
		return nil, err
	}
	b.spent("report", maker, before, 1)
	peak, failed := maker.peakMB()
	var got made
	err = json.Unmarshal([]byte(maker.said), &got)
	if err := errors.Join(err, failed, maker.stop(), ctx.Err()); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("report %s as %s, of %.1f MB", typ, format, float64(got.Bytes)/(1<<20))
	return []result{
		seconds(name+", s", got.Took, report.MakeWithin.Seconds()),
		memory("  peak resident memory of its process, MB", peak),
	}, nil
}
