package report_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/db/doctor"
	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/v2test"
)

// world is the demonstration, seen by a key, with a client whose reports are made. Other
// clients are much alike, so that what is theirs and shows in a report is found.
type world struct {
	*v2test.Harness
	keys   seed.DemoKeys
	tenant v2test.Partner
	maker  *report.Renderer
	client domain.ClientID
}

var (
	today  = domain.DateOf(v2test.Noon)
	period = domain.ReportPeriod{Start: today.AddDays(-120), End: today.AddDays(-20)}
)

// demoSchema is the tables with the demonstration in them. The key is of this process:
// no other process has this binary's demonstration.
var demoSchema = dbtest.Schema{Name: "reportdemo", Key: rand.Text(), Apply: func(ctx context.Context, url string) error {
	if err := worldtest.Schema.Apply(ctx, url); err != nil {
		return err
	}
	d, err := db.Open(url, db.WithClock(domain.NewManualClock(v2test.Noon)))
	if err != nil {
		return err
	}
	_, err = seed.Demo(ctx, d)
	return errors.Join(err, moveToBorders(ctx, d), d.Close())
}}

// moveToBorders moves what happened within two days of the borders of periods to the last
// moment before them and to the first one after.
func moveToBorders(ctx context.Context, d *db.DB) error {
	var errs []error
	for _, column := range []string{"assignments.assigned_at", "assignments.completed_at", "phishing_results.sent_at",
		"reported_emails.reported_at", "policy_signatures.signed_at", "exposures.first_seen_at", "exposures.resolved_at"} {
		table, at, _ := strings.Cut(column, ".")
		for _, border := range []domain.Date{period.Start, period.End.AddDays(1), domain.YearTo(today).Start} {
			_, err := d.SQL().ExecContext(ctx, fmt.Sprintf(`
				UPDATE %[1]s SET %[2]s = $1::timestamptz - CASE WHEN %[2]s < $1 THEN interval '1 microsecond' ELSE '0' END
				WHERE %[2]s BETWEEN $1::timestamptz - interval '2 days' AND $1::timestamptz + interval '2 days'`, table, at), border.Time())
			errs = append(errs, err)
		}
	}
	_, err := doctor.Recount(ctx, d)
	_, stale := d.SQL().ExecContext(ctx, "UPDATE clients SET summarized_at = summarized_at - interval '1 day'")
	return errors.Join(append(errs, err, stale)...)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Harness: v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited, Schema: demoSchema}),
		maker: report.NewRenderer(nil)}
	var err error
	if w.keys, err = seed.Demo(t.Context(), w.DB); err != nil { // which is there
		t.Fatal(err)
	}
	w.client = w.keys.Client
	w.use(w.keys.All)
	return w
}

// use has a key of the demonstration see the world.
func (w *world) use(key string) {
	w.T.Helper()
	caller, err := w.DB.CallerByDigest(w.T.Context(), db.KeyDigest(key))
	if err != nil {
		w.T.Fatal(err)
	}
	w.tenant = v2test.Partner{ID: caller.Partner, Key: key, Ctx: domain.WithCaller(w.T.Context(), caller)}
}

// list reads all pages of one of v2's lists about the client or a user.
func list[T any](w *world, path string, query ...string) (all []T) {
	w.T.Helper()
	values := url.Values{"limit": {"500"}}
	for i := 0; i < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	for {
		var page struct {
			Data []T `json:"data"`
			Page struct {
				NextCursor *string `json:"next_cursor"`
			} `json:"page"`
		}
		w.Get(path+"?"+values.Encode(), w.tenant.Key).Want(200).Into(&page)
		all = append(all, page.Data...)
		if page.Page.NextCursor == nil {
			return all
		}
		values.Set("cursor", *page.Page.NextCursor)
	}
}

// path is one of v2 about the client.
func (w *world) path(rest string) string { return "/v2/clients/" + w.client.String() + rest }

// read is a document whose tables have been read.
type read struct {
	*report.Document
	tables  map[string][]map[string]any // by their title; rows by their columns
	figures map[string]string
	texts   string
}

// document makes a report of the client and reads it whole.
func (w *world) document(typ domain.ReportType, p *domain.ReportPeriod) read {
	w.T.Helper()
	r, err := w.try(typ, p)
	if err != nil {
		w.T.Fatalf("%s: %v", typ, err)
	}
	return r
}

func (w *world) try(typ domain.ReportType, p *domain.ReportPeriod) (r read, err error) {
	err = w.make(typ, p, func(d *report.Document) (err error) {
		r, err = readAll(w.T, d)
		return err
	})
	return r, err
}

// make makes a document of the client.
func (w *world) make(typ domain.ReportType, p *domain.ReportPeriod, write func(d *report.Document) error) error {
	t, err := w.DB.Tenant(w.tenant.Ctx, w.client)
	if err != nil {
		return err
	}
	return w.maker.With(context.Background(), t, typ, p, write)
}

// with makes a document of the client about the default period.
func (w *world) with(typ domain.ReportType, write func(d *report.Document) error) {
	w.T.Helper()
	if err := w.make(typ, nil, write); err != nil {
		w.T.Fatalf("%s: %v", typ, err)
	}
}

// readAll reads a document whole.
func readAll(t testing.TB, d *report.Document) (read, error) {
	r := read{Document: d, tables: map[string][]map[string]any{}, figures: map[string]string{}}
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if err := r.block(t, b); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

func (r *read) block(t testing.TB, b report.Block) error {
	switch b := b.(type) {
	case report.Text:
		r.texts += string(b) + "\n"
	case report.Figures:
		if len(b) > 4 || len(b) == 0 {
			t.Errorf("%s: %d figures in a row", r.Type, len(b))
		}
		for _, f := range b {
			r.figures[f.Label] = report.FigureText(&f)
		}
	case report.Chart:
		r.chart(t, b)
	case report.Table:
		if _, twice := r.tables[b.Title]; twice || b.Title == "" {
			t.Errorf("%s: two tables %q", r.Type, b.Title)
		}
		r.tables[b.Title] = []map[string]any{}
		for cells, err := range b.Rows {
			if err != nil {
				return err
			}
			r.tables[b.Title] = append(r.tables[b.Title], cellsByColumn(t, &b, cells))
		}
		if len(r.tables[b.Title]) == 0 && b.Empty == "" {
			t.Errorf("%s: the table %q is empty, and says nothing", r.Type, b.Title)
		}
	}
	return nil
}

func (r *read) chart(t testing.TB, c report.Chart) {
	if c.Title == "" || len(c.Labels) == 0 || c.Kind == report.Donut && len(c.Series) != 1 {
		t.Errorf("%s: a bad chart %+v", r.Type, c)
	}
	if _, twice := r.tables[c.Title]; twice {
		t.Errorf("%s: a chart and a table %q", r.Type, c.Title)
	}
	for _, s := range c.Series {
		if len(s.Values) != len(c.Labels) {
			t.Errorf("%s: the chart %q has %d values for %d labels", r.Type, c.Title, len(s.Values), len(c.Labels))
		}
		for _, v := range s.Values {
			if math.IsInf(v, 0) || v < 0 || c.Unit == "%" && v > 100 {
				t.Errorf("%s: the chart %q shows %v", r.Type, c.Title, v)
			}
		}
	}
}

// cellsByColumn checks a row's cells against the kinds of their columns.
func cellsByColumn(t testing.TB, table *report.Table, cells []any) map[string]any {
	if len(cells) != len(table.Columns) {
		t.Fatalf("%s: %d cells in %d columns", table.Title, len(cells), len(table.Columns))
	}
	row := map[string]any{}
	for i, c := range table.Columns {
		_, twice := row[c.Title]
		if _, err := c.PageText(cells[i]); twice || err != nil {
			t.Fatalf("%s: %s is %T: %v", table.Title, c.Title, cells[i], err)
		}
		row[c.Title] = cells[i]
		if word, ok := cells[i].(report.Word); ok {
			row[c.Title] = string(word)
		}
	}
	return row
}
