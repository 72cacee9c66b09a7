package report_test

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db/pg"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/api"
)

type row = map[string]any

// active reads the client's active users, in a report's order.
func (w *world) active() []api.User {
	users := list[api.User](w, w.path("/users"), "status", "active")
	slices.SortFunc(users, func(a, b api.User) int {
		return cmp.Or(strings.Compare(key(a), key(b)), strings.Compare(a.Email, b.Email))
	})
	return users
}

func key(u api.User) string { return domain.SortKey(domain.FullName(u.FirstName, u.LastName)) }

// who are the cells that name a user.
func who(u api.User, more row) row {
	more["Name"], more["Email"], more["Department"] = domain.FullName(u.FirstName, u.LastName), u.Email, nil
	if u.Department != nil {
		more["Department"] = *u.Department
	}
	return more
}

func rate(part, whole int) any {
	if whole == 0 {
		return nil
	}
	if whole < 100 {
		return report.WholePercent(domain.Percent(part, whole))
	}
	return report.Percent(domain.Percent(part, whole))
}

// same compares the rows of a table.
func same(t *testing.T, title string, got, want []row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, not %d", title, len(got), len(want))
	}
	for i := range got {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("%s, row %d:\n%v, want\n%v", title, i, got[i], want[i])
		}
	}
	if len(want) == 0 {
		t.Errorf("%s: the test is of no rows", title)
	}
}

func (r read) figure(t *testing.T, label string, want any) {
	t.Helper()
	switch want.(type) {
	case float64, report.Percent:
		want = fmt.Sprintf("%.1f%%", want)
	case report.WholePercent:
		want = fmt.Sprintf("%.0f%%", want)
	}
	if got := strings.ReplaceAll(r.figures[label], ",", ""); got != fmt.Sprint(want) {
		t.Errorf("%s: %s is %q, not %v", r.Type, label, got, want)
	}
}

// capital is a word of the interface as a report writes it.
func capital[T ~string](word T) string {
	if len(word) == 2 { // HR, IT
		return strings.ToUpper(string(word))
	}
	return strings.ToUpper(string(word[:1])) + string(word[1:])
}

func within(p domain.ReportPeriod, at *time.Time) bool {
	return at != nil && !domain.DateOf(*at).Before(p.Start) && !domain.DateOf(*at).After(p.End)
}

// at is the value of a key, which is there from then on.
func at[K comparable, V any](m map[K]*V, k K) *V {
	if m[k] == nil {
		m[k] = new(V)
	}
	return m[k]
}

// TestEdges: a document of a client that has nothing says whose it is and of when; is of no other;
// and is written in both formats. A summary for a manager is one page.
func TestEdges(t *testing.T) {
	w := newWorld(t)
	w.client = w.AddClient(w.tenant, "Ärzte & Söhne").ID
	check := func(typ domain.ReportType) read {
		d := w.document(typ, nil)
		if d.Client != "Ärzte & Söhne" || d.Title == "" || !d.MadeAt.Equal(w.Clock.Now()) ||
			(d.Period != nil) != typ.HasPeriod() {
			t.Errorf("%s: %+v", typ, d.Document)
		}
		if d.Period != nil && *d.Period != typ.DefaultPeriod(today) {
			t.Errorf("%s: the period %v", typ, *d.Period)
		}
		w.with(typ, func(d *report.Document) error { return report.WriteXLSX(t.Context(), io.Discard, d) })
		w.with(typ, func(d *report.Document) error {
			if pages := report.PagesOf(t, d, nil); len(pages) == 0 || typ == domain.ExecutiveSummary && len(pages) != 1 {
				t.Errorf("%s has %d pages", typ, len(pages))
			}
			return nil
		})
		return d
	}
	for _, typ := range domain.ReportTypes {
		d := check(typ)
		for title, rows := range d.tables {
			for _, r := range rows {
				for column, cell := range r {
					if n, ok := cell.(int); ok && n != 0 || column == "Email" {
						t.Errorf("%s of no users: %s has %v", typ, title, r)
					}
				}
			}
		}
		if d.texts == "" {
			t.Errorf("%s of no users says nothing", typ)
		}
	}

	w.AddUser(w.tenant, w.client, "only@example.com")
	for _, typ := range domain.ReportTypes {
		if d := check(typ); strings.Contains(d.texts, "no active employees") {
			t.Errorf("%s of one user: %s", typ, d.texts)
		}
	}

	tenant, err := w.DB.Tenant(w.tenant.Ctx, w.client)
	if err != nil {
		t.Fatal(err)
	}
	w.Exec("UPDATE clients SET archived_at = now() WHERE id = $1", w.client)
	err = w.maker.With(t.Context(), tenant, domain.PolicyReport, nil, nil)
	if !domain.IsCode(err, domain.NotFound) {
		t.Errorf("of an archived client: %v", err)
	}
}

// TestOneMoment: a document is of the moment at which it is begun, whatever changes
// while its tables are read.
func TestOneMoment(t *testing.T) {
	w := newWorld(t)
	w.client = w.AddClient(w.tenant, "New").ID
	w.AddUser(w.tenant, w.client, "before@example.com")
	w.with(domain.TrainingPerformance, func(d *report.Document) error {
		w.AddUser(w.tenant, w.client, "meanwhile@example.com")
		w.Clock.Advance(100 * 24 * time.Hour)
		r, err := readAll(t, d)
		rows := r.tables["Training by user"]
		if len(rows) != 1 || rows[0]["Email"] != "before@example.com" || rows[0]["Overdue"] != 0 {
			t.Errorf("rows %v", rows)
		}
		return err
	})
	d := w.document(domain.TrainingPerformance, nil)
	if len(d.tables["Training by user"]) != 2 || d.figures["On track"] != "0%" {
		t.Errorf("afterwards %v %v", d.tables, d.figures)
	}
}

// TestMany: the rows of many users come in batches, by a number of statements that
// only the batches make larger.
func TestMany(t *testing.T) {
	w := newWorld(t)
	w.tenant = w.AddPartner("Large")
	w.client = w.AddClient(w.tenant, "Large").ID
	const users, courses = 3000, 4
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language,
			source, score, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'many' || n || '@example.com', 'Many', n::text, 'many ' || n, 'active', 'standard',
			'en', 'api', 700, now(), now() FROM generate_series(1, $2::integer) AS n`, w.client, users)
	w.Exec(`INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on, completed_at)
		SELECT client_id, u.id, c.id, 1, $2::timestamptz, '2030-01-01', $2::timestamptz
		FROM users AS u, (SELECT id FROM courses ORDER BY id LIMIT $3) AS c
		WHERE u.client_id = $1 AND first_name = 'Many'`, w.client, period.Start.Time(), courses)

	for _, typ := range domain.ReportTypes {
		rows := 0
		var d read
		statements := w.Statements.During(func() { d = w.document(typ, &period) })
		for _, table := range d.tables {
			rows += len(table)
		}
		// Two read the brand, up to five the period before, and one the number of emails behind rates. Of each table: the
		// declaration and the end of its cursor, and a last batch.
		if most := 23 + 3*len(d.tables) + rows/pg.EachBatch; statements > most {
			t.Errorf("%s: %d statements for %d rows", typ, statements, rows)
		}
		if want := map[domain.ReportType]int{domain.TrainingStatus: users * courses, domain.CourseDetails: users * courses,
			domain.EmployeeHistory: 2 * users * courses, domain.PhishingPerformance: users}[typ]; rows < want {
			t.Errorf("%s: %d rows, want %d", typ, rows, want)
		}
	}
}
