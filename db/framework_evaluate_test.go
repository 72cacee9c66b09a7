package db_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
)

// frameworkWith is a framework that asks for a measure.
func frameworkWith(m domain.Measure) domain.Framework {
	return domain.Frameworks[slices.IndexFunc(domain.Frameworks, func(f domain.Framework) bool {
		return slices.Contains(f.Measures, m)
	})]
}

var allModules = domain.FrameworkModules{Training: true, Phishing: true, Policies: true, Reporting: true}

// TestMeasures: what each measure counts, on each side of each border.
func TestMeasures(t *testing.T) {
	w := newWorld(t)
	for i := range rules(domain.ClientID{}) {
		client := w.AddClient()
		c := rules(client)[i]
		id := db.NewID[domain.FrameworkAssignmentKind]()
		c.rows.assignments = []followedFramework{{id: id, of: frameworkWith(c.key), audience: "all", modules: allModules}}
		w.follow(client, &c.rows)
		w.Must(db.EvaluateAll(t.Context(), w.DB))
		w.Exec("UPDATE framework_assignments SET evaluated_at = 'infinity' WHERE client_id <> $1", client)

		e, err := db.Evaluations(t.Context(), w.DB, client)
		w.Must(err)
		if got := said(e[id], c.key); got != c.want {
			t.Errorf("%s, %s:\n got %s\nwant %s", c.key, c.name, got, c.want)
		}
	}
}

// said is a requirement's detail, value and whether it is met.
func said(e domain.Evaluation, key domain.Measure) string {
	for _, r := range e.Requirements {
		if r.Key == key {
			value := "null"
			if r.Value != nil {
				value = fmt.Sprint(*r.Value)
			}
			return fmt.Sprintf("%s; %s; %t", r.Detail, value, r.Met)
		}
	}
	return "no such requirement"
}

// keys are an evaluation's measures, in order.
func keys(e domain.Evaluation) string {
	var list []string
	for _, r := range e.Requirements {
		list = append(list, string(r.Key))
	}
	return strings.Join(list, " ")
}

// TestModules: a measure is evaluated only where its module is on, and an empty
// audience meets none.
func TestModules(t *testing.T) {
	w := newWorld(t)
	client := w.AddClient()
	f := followed{users: []followedUser{old(inactive)}}
	cases := map[domain.FrameworkModules]string{
		{}:                                "",
		allModules:                        "T1 T2 P1 A1 R1",
		{Training: true, Reporting: true}: "T1 T2 R1",
		{Phishing: true, Policies: true}:  "P1 A1",
	}
	want := map[domain.FrameworkAssignmentID]string{}
	for modules, list := range cases {
		a := followedFramework{
			id: db.NewID[domain.FrameworkAssignmentKind](), of: frameworkWith("P1"), modules: modules,
			audience: domain.FrameworkForCollection, whom: db.NewID[domain.CollectionKind](), // deleted
		}
		f.assignments = append(f.assignments, a)
		want[a.id] = list
	}
	w.follow(client, &f)
	other := db.NewID[domain.FrameworkAssignmentKind]()
	w.Add("framework_assignments", row{
		"client_id": client, "id": other, "framework_id": "of_a_later_release", "audience_type": "all", "created_at": noon,
	})
	w.Must(db.EvaluateAll(t.Context(), w.DB))

	got, err := db.Evaluations(t.Context(), w.DB, client)
	w.Must(err)
	if len(got) != len(cases)+1 || len(got[other].Requirements) != 0 || !got[other].At.Equal(noon) {
		t.Errorf("a framework that is unknown: %+v", got[other])
	}
	for id, list := range want {
		e := got[id]
		if keys(e) != list || e.Total != len(e.Requirements) || e.Met != 0 || !e.At.Equal(noon) || e.Percentage() != 0 {
			t.Errorf("%+v, want %q", e, list)
		}
		for _, r := range e.Requirements {
			if r.Met || r.Value != nil {
				t.Errorf("met by nobody: %+v", r)
			}
		}
	}
}

// TestEvaluateStale: evaluations older than five minutes are made again, in one
// statement after a look, and others are not.
func TestEvaluateStale(t *testing.T) {
	counter := &worldtest.Statements{}
	w := newWorld(t, db.WithTracer(counter))
	client, another := w.AddClient(), w.AddClient()
	f := followed{users: []followedUser{old()}}
	for _, framework := range domain.Frameworks[:3] {
		f.assignments = append(f.assignments, followedFramework{
			id: db.NewID[domain.FrameworkAssignmentKind](), of: framework, audience: "all", modules: allModules,
		})
	}
	w.follow(client, &f)
	w.Add("framework_assignments", row{
		"client_id": another, "id": db.NewID[domain.FrameworkAssignmentKind](), "framework_id": "gdpr",
		"audience_type": "all", "created_at": noon,
	})
	stale := func(wantStatements int, wantAt time.Time) {
		t.Helper()
		tenant, err := w.Tenant(w.caller(), client)
		w.Must(err)
		counter.Reset()
		w.Must(tenant.EvaluateStale(w.caller()))
		if n := counter.Count(); n != wantStatements {
			t.Errorf("%d statements, want %d", n, wantStatements)
		}
		evaluations, err := db.Evaluations(t.Context(), w.DB, client)
		w.Must(err)
		for _, e := range evaluations {
			if !e.At.Equal(wantAt) {
				t.Errorf("evaluated at %v, want %v", e.At, wantAt)
			}
		}
	}
	stale(2, noon)
	w.Clock.Advance(domain.SummaryAge)
	stale(1, noon)
	w.Clock.Advance(time.Microsecond)
	stale(2, w.Clock.Now())
	var never bool
	w.Get("SELECT evaluated_at = 'epoch' FROM framework_assignments WHERE client_id = $1", []any{another}, &never)
	if !never {
		t.Error("another client's was evaluated")
	}
	evaluations, err := db.Evaluations(t.Context(), w.DB, another)
	if err != nil || len(evaluations) != 1 {
		t.Errorf("one that was never evaluated cannot be read: %+v, %v", evaluations, err)
	}
}

// TestEvaluateInAChange: one assignment is evaluated at once, with what the change
// wrote before; another evaluator waits for it and finds it fresh.
func TestEvaluateInAChange(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	w := newWorld(t)
	client := w.AddClient()
	f := followed{users: []followedUser{old()}}
	for _, key := range []domain.Measure{"R1", "T3"} {
		f.assignments = append(f.assignments, followedFramework{
			id: db.NewID[domain.FrameworkAssignmentKind](), of: frameworkWith(key), audience: "all", modules: allModules,
		})
	}
	w.follow(client, &f)
	id := f.assignments[0].id
	second := make(chan error, 1)
	w.Must(w.ChangeOf(ctx, client, func(ctx1 context.Context, c *db.Change, tenant *db.Tenant) error {
		if err := db.ExecIn(ctx1, w.DB, `INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
			VALUES (?, ?, 'compliance', 'pdf', 'ready', ?, ?)`, client, db.NewID[domain.ReportKind](), noon, noon); err != nil {
			return err
		}
		if err := c.Evaluate(ctx1, tenant, id); err != nil {
			return err
		}
		w.Clock.Advance(time.Second)
		go func() { second <- tenant.EvaluateStale(w.As(ctx)) }()
		return w.waitForLock(ctx)
	}))
	w.Must(<-second)

	e, err := db.Evaluations(ctx, w.DB, client)
	w.Must(err)
	if got := e[id]; !got.At.Equal(noon) || said(got, "R1") != "1 compliance report made within 90 days; 1; true" {
		t.Errorf("%+v", got)
	}
	if got := e[f.assignments[1].id]; !got.At.Equal(noon.Add(time.Second)) {
		t.Errorf("the other one was evaluated at %v", got.At)
	}
}

// waitForLock waits until a statement waits for a lock.
func (w *world) waitForLock(ctx context.Context) error {
	for waiting := false; !waiting; {
		err := w.SQL().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
			WHERE NOT l.granted AND a.datname = current_database())`).Scan(&waiting)
		if err != nil {
			return err
		}
	}
	return nil
}

// TestEvaluatorsAtOnce: evaluators and those who remove assignments never
// deadlock.
func TestEvaluatorsAtOnce(t *testing.T) {
	w := newWorld(t)
	var clients []domain.ClientID
	for range 3 {
		client := w.AddClient()
		f := followed{users: []followedUser{old()}}
		for _, framework := range domain.Frameworks {
			f.assignments = append(f.assignments, followedFramework{
				id: db.NewID[domain.FrameworkAssignmentKind](), of: framework, audience: "all", modules: allModules,
			})
		}
		w.follow(client, &f)
		clients = append(clients, client)
	}
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for n := range 6 {
				w.Clock.Advance(domain.SummaryAge / 2)
				tenant, err := w.Tenant(w.caller(), clients[(i+n)%3])
				if err == nil {
					err = tenant.EvaluateStale(w.caller())
				}
				if err == nil && i == 0 {
					_, err = w.SQL().ExecContext(t.Context(), `DELETE FROM framework_assignments WHERE id =
						(SELECT id FROM framework_assignments WHERE client_id = $1 ORDER BY id DESC LIMIT 1)`, tenant.ID)
				}
				if err == nil && i == 1 {
					err = db.EvaluateAll(t.Context(), w.DB)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	for _, client := range clients {
		evaluations, err := db.Evaluations(t.Context(), w.DB, client)
		if err != nil || len(evaluations) != 9 {
			t.Errorf("%d evaluations, %v", len(evaluations), err)
		}
		for _, e := range evaluations {
			if e.Total == 0 || e.At.Before(noon) {
				t.Errorf("not evaluated: %+v", e)
			}
		}
	}
}

// TestRequiredCoursesAreBits: an evaluation has 63 bits for the courses of all
// frameworks together.
func TestRequiredCoursesAreBits(t *testing.T) {
	w := newWorld(t)
	var courses int
	w.Get("SELECT count(DISTINCT course_id) FROM framework_courses", nil, &courses)
	if courses == 0 || courses > 63 {
		t.Errorf("%d courses", courses)
	}
}
