package report_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/domain"
	"partnerapi/platform/report"
	"partnerapi/v2/v2test"
)

// world is a partner with two clients that are much alike, so that what is one's
// and shows in a report of the other is found.
type world struct {
	*v2test.Harness
	tenant  v2test.Tenant
	maker   *report.Renderer
	client  domain.ClientID
	random  *rand.Rand
	courses []domain.CourseID
}

var (
	today  = domain.DateOf(v2test.Noon)
	period = domain.ReportPeriod{Start: today.AddDays(-120), End: today.AddDays(-20)}
)

func newWorld(t testing.TB) *world {
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	w := &world{Harness: h, tenant: h.Tenant("Partner"), maker: report.NewRenderer(report.Options{}), random: rand.New(rand.NewPCG(1, 2))}
	w.client = h.Client(w.tenant, "Ärzte & Söhne").ID
	for n := range 5 {
		w.courses = append(w.courses, domain.CourseID{0x01, 0x9b, 0x77, 0x40, 0, 0, 0x70, 0, 0x80, 15: byte(n + 1)})
	}
	return w
}

// fill gives a client users with everything that reports show, at times around
// the borders of the period.
func (w *world) fill(client domain.ClientID, users int) {
	ids := w.users(client, users)
	w.training(client, ids)
	w.phishing(client, ids)
	w.policies(client, ids)
	w.exposures(client, ids)
	w.Exec(`UPDATE clients SET (users_active, users_inactive) = (
		SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status <> 'active')
		FROM users WHERE client_id = $1) WHERE id = $1`, client)
	w.Exec("UPDATE clients SET summarized_at = summarized_at - interval '1 day'")
}

// at is a moment of the last 500 days, often at a border of the period or of a year.
func (w *world) at() time.Time {
	borders := []domain.Date{period.Start, period.End.AddDays(1), today.AddDays(-364)}
	if w.random.IntN(2) == 0 {
		border := borders[w.random.IntN(len(borders))].Time()
		return border.Add(time.Duration(w.random.IntN(2)-1) * time.Microsecond)
	}
	return v2test.Noon.Add(-time.Duration(1+w.random.IntN(500*24)) * time.Hour)
}

// maybe is a time that is nil as often as not.
func (w *world) maybe(at time.Time) any {
	if w.random.IntN(2) == 0 {
		return nil
	}
	return at
}

func pick[T any](w *world, of ...T) T { return of[w.random.IntN(len(of))] }

func (w *world) users(client domain.ClientID, users int) (ids []domain.UserID) {
	var rows []fixture.Row
	for n := range users {
		id := db.NewID[domain.UserKind]()
		ids = append(ids, id)
		first, last := pick(w, "Ada", "Björn", "Łucja", "="), pick(w, "Lovelace", "Åkesson", "", "Żak")
		rows = append(rows, fixture.Row{
			"client_id": client, "id": id, "email": v2test.Email(n), "first_name": first, "last_name": last,
			"name_key":      domain.SortKey(domain.FullName(first, last)),
			"status":        pick(w, "active", "active", "active", "inactive"),
			"department":    pick[any](w, nil, "Sales", "IT"),
			"manager_email": pick[any](w, nil, v2test.Email(0), "boss@example.org"),
		})
	}
	fixture.Insert(w.T, w.DB.SQL(), "users", rows...)
	return ids
}

func (w *world) training(client domain.ClientID, users []domain.UserID) {
	var rows []fixture.Row
	for _, u := range users {
		for n, course := range w.courses[:w.random.IntN(len(w.courses)+1)] {
			rounds := 1 + w.random.IntN(2)
			for round := 1; round <= rounds; round++ {
				at := w.at()
				done := w.maybe(at.Add(time.Hour))
				if round < rounds {
					done = at.Add(time.Minute)
				}
				rows = append(rows, fixture.Row{
					"client_id": client, "user_id": u, "course_id": course, "round": round, "position": n, "assigned_at": at,
					"from_program": true, "direct": false, "frameworks": []string{},
					"due_on": today.AddDays(w.random.IntN(5) - 2), "completed_at": done,
				})
			}
		}
	}
	fixture.Insert(w.T, w.DB.SQL(), "assignments", rows...)
	w.Exec(`UPDATE users AS u SET next_due_on = n.due_on, next_course_id = n.course_id FROM (
		SELECT DISTINCT ON (client_id, user_id) client_id, user_id, due_on, course_id FROM assignments
		WHERE completed_at IS NULL ORDER BY client_id, user_id, due_on, position, course_id) AS n
		WHERE n.client_id = u.client_id AND n.user_id = u.id`)
}

func (w *world) phishing(client domain.ClientID, users []domain.UserID) {
	for n, category := range []string{"delivery", "finance"} {
		fixture.Insert(w.T, w.DB.SQL(), "phishing_templates",
			fixture.Row{"id": domain.TemplateID{14: 9, 15: byte(n)}, "name": "Template " + category, "category": category})
	}
	var rows []fixture.Row
	for _, u := range users {
		for range w.random.IntN(15) {
			at := w.at()
			row := fixture.Row{
				"client_id": client, "id": db.NewID[domain.ResultKind](), "user_id": u,
				"template_id": domain.TemplateID{14: 9, 15: byte(w.random.IntN(2))}, "sent_at": at, "created_at": at,
				"automated": w.random.IntN(2) == 0, "reported_at": w.maybe(at.Add(time.Minute)),
				"opened_at": nil, "attachment_opened_at": nil, "clicked_at": nil, "credentials_submitted_at": nil,
			}
			row["reported"] = row["reported_at"] != nil
			row["status"] = pick(w, "sent", "opened", "attachment_opened", "clicked", "credentials_submitted")
			if row["status"] != "sent" {
				row["opened_at"] = at.Add(time.Hour)
				row[row["status"].(string)+"_at"] = at.Add(time.Hour)
			}
			rows = append(rows, row)
		}
	}
	fixture.Insert(w.T, w.DB.SQL(), "phishing_results", rows...)
	w.Exec(`INSERT INTO phishing_days
		(client_id, day, sent, opened, clicked, reported, credentials_submitted, attachments_opened)
		SELECT client_id, sent_at::date, count(*), count(*) FILTER (WHERE status <> 'sent'),
			count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted')),
			count(*) FILTER (WHERE reported), count(credentials_submitted_at), count(attachment_opened_at)
		FROM phishing_results WHERE client_id = $1 GROUP BY 1, 2`, client)
	for _, u := range users {
		at := w.at()
		mail, err := json.Marshal(fixture.Row{"client_id": client.UUID(), "id": db.NewID[domain.EventKind]().UUID(),
			"user_id": u.UUID(), "message_id": at.String(), "subject": "", "sender": "x", "classification": "pending",
			"reported_at": at, "updated_at": at})
		if err != nil {
			w.T.Fatal(err)
		}
		w.Exec("INSERT INTO reported_emails SELECT * FROM json_populate_record(NULL::reported_emails, $1::json)",
			string(mail))
	}
}

func (w *world) policies(client domain.ClientID, users []domain.UserID) {
	group := db.NewID[domain.GroupKind]()
	w.Exec(`UPDATE users SET group_id = (SELECT id FROM groups WHERE client_id = $1 AND manual)
		WHERE client_id = $1 AND email < $2`, client, v2test.Email(len(users)/2))
	w.Exec(`INSERT INTO groups (client_id, id, name, manual, created_at)
		VALUES ($1, $2, 'Warehouse', false, now())`, client, group)
	w.Exec("UPDATE users SET group_id = $2 WHERE client_id = $1 AND group_id IS NULL", client, group)
	collection := w.Collection(client, "New starters")
	w.Exec(`INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
		SELECT client_id, $2, id, now() FROM users WHERE client_id = $1 AND department = 'IT'`, client, collection)

	scopes := []struct {
		kind domain.ScopeType
		id   interface{ UUID() string }
	}{{domain.TenantScope, client}, {domain.GroupScope, group}, {domain.CollectionScope, collection},
		{domain.CollectionScope, db.NewID[domain.CollectionKind]()},
		{domain.TenantScope, client}, {domain.TenantScope, client}}
	for n, s := range scopes {
		policy := db.NewID[domain.PolicyKind]()
		row := fixture.Row{
			"client_id": client, "id": policy, "title": fmt.Sprintf("Policy %d", 9-n), "version": 2, "scope_type": s.kind,
			"scope_id": s.id, "renewal_period_days": 100, "requires_acknowledgment": n != 4, "counted_until": "-infinity",
			"audience_count": 0, "acknowledged_count": 0,
		}
		if n == 5 {
			row["archived_at"] = v2test.Noon
		}
		fixture.Insert(w.T, w.DB.SQL(), "policies", row)
		var signatures []fixture.Row
		for _, u := range users {
			for version := 1; version <= 2; version++ {
				if w.random.IntN(2) == 0 {
					signatures = append(signatures, fixture.Row{"client_id": client, "policy_id": policy, "user_id": u,
						"version": version, "signed_at": w.at()})
				}
			}
		}
		fixture.Insert(w.T, w.DB.SQL(), "policy_signatures", signatures...)
	}
}

func (w *world) exposures(client domain.ClientID, users []domain.UserID) {
	for _, name := range []string{"Acme", "Zebra"} {
		w.Exec(`INSERT INTO breaches (name, title, domain, breach_on, severity, data_classes)
			VALUES ($1, 'The ' || $1::text, NULL, '2020-01-02', 'high', '{Emails,Names}') ON CONFLICT DO NOTHING`, name)
	}
	var rows []fixture.Row
	for _, u := range users {
		for _, breach := range []string{"Acme", "Zebra"}[:w.random.IntN(3)] {
			at := w.at()
			rows = append(rows, fixture.Row{
				"client_id": client, "user_id": u, "breach_name": breach, "severity": pick(w, "critical", "high", "medium", "low"),
				"first_seen_at": at, "resolved_at": w.maybe(at.Add(time.Hour)), "updated_at": at, "found": true,
			})
		}
	}
	fixture.Insert(w.T, w.DB.SQL(), "exposures", rows...)
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
	}
	return row
}
