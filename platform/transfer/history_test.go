package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// catalogues gives the database templates and breaches that history refers to.
func (w *world) catalogues() *world {
	w.t.Helper()
	if err := w.LoadTemplates(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	_, _, err := w.ImportTemplates(w.t.Context(), []domain.Template{{
		Name: "Parcel", Language: domain.Spanish, Category: "Post", Subject: "Parcel", From: "post@example.com",
		TemplateContent: domain.TemplateContent{Difficulty: 1, Landing: domain.LandingLesson, Indicators: []domain.Indicator{}},
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	_, _, err = w.ImportBreaches(w.t.Context(), []domain.Breach{
		{Name: "Forum", Title: "Forum", Severity: domain.SeverityCritical, DataClasses: []string{"Passwords"}},
		{Name: "List", Title: "List", Severity: domain.SeverityLow, DataClasses: []string{"Email addresses"}, SpamList: true},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w
}

// history is lines of what happened to the users of platform, by chance.
func history(r *rand.Rand) (lines []string) {
	templates, err := db.OwnTemplates()
	if err != nil {
		panic(err)
	}
	day := func(ago int) string {
		return noon.AddDate(0, 0, -ago).Add(time.Duration(r.IntN(1e6)) * time.Microsecond).Format(time.RFC3339Nano)
	}
	maybe := func(format string, args ...any) string {
		if r.IntN(2) == 0 {
			return ""
		}
		return fmt.Sprintf(format, args...)
	}
	n := 1000
	add := func(object, format string, args ...any) {
		n++
		lines = append(lines, ref(object, n, fmt.Sprintf(format, args...)))
	}
	for client := 100; client <= 300; client += 100 {
		add("framework_assignment", `'client':#%d,'framework':'gdpr','created_at':'%s'`, client, day(100))
		add("framework_assignment", `'client':#%d,'framework':'nist_csf','modules':{'policies':true,'training':%v},'audience':{'type':'collection','id':#%d}`,
			client, r.IntN(2) == 0, client+50)
		add("framework_assignment", `'client':#%d,'framework':'soc2','audience':{'type':'group','id':#%d}`, client, client+2)
		add("framework_assignment", `'client':#%d,'framework':'soc2','audience':{'type':'collection','id':#%d,'deleted':true}`, client, client+99)
		add("policy", `'client':#%d,'title':'Gone','scope_type':'collection','scope_id':#%d,'scope_deleted':true`, client, client+98)
		for user := client + 10; user < client+22; user++ {
			for range r.IntN(4) {
				ago := r.IntN(500) + 5
				template := `'template':'` + templates[r.IntN(len(templates))].ID.String() + `'`
				if r.IntN(3) == 0 {
					template = `'template_name':{'name':'Parcel','language':'es'}`
				}
				switch r.IntN(8) {
				case 0:
					add("phishing_result", `'user':#%d,%s,'send_at':'%s'`, user, template, day(-3))
				case 1:
					add("phishing_result", `'user':#%d,%s,'failed_at':'%s','failure':'550'`, user, template, day(ago))
				default:
					add("phishing_result", `'user':#%d,%s,'sent_at':'%s'%s%s%s%s`, user, template, day(ago),
						maybe(`,'opened_at':'%s'`, day(ago-1)), maybe(`,'clicked_at':'%s'`, day(ago-2)),
						maybe(`,'reported_at':'%s'`, day(ago-3)), maybe(`,'automated_reason':'fast'`))
				}
				add("sent_email", `'user':#%d,'event_time':'%s','from_email':'It <it@x.example>','subject':'Ünïcode \u003c','send_method':'gmail-api','message_type':'welcome'`, user, day(ago))
			}
			for _, breach := range []string{"Forum", "List"} {
				if r.IntN(3) == 0 {
					add("exposure", `'user':#%d,'breach_name':'%s','first_seen_at':'%s'%s%s`, user, breach, day(90),
						maybe(`,'resolved_at':'%s'`, day(3)), maybe(`,'data_classes':['Names','PINs']`))
				}
			}
		}
	}
	return lines
}

// TestRandomRoundTrip: whatever a platform holds, and in whichever order its lines
// come: the export of what they make, imported elsewhere, is exported as the same bytes.
func TestRandomRoundTrip(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 11))
		lines := append(platform(r), history(r)...)
		from, to, shuffled := newWorld(t).catalogues(), newWorld(t).catalogues(), newWorld(t).catalogues()
		from.want(fmt.Sprintf("%d created, 0 updated, 0 unchanged", len(lines)), lines...)
		from.want(fmt.Sprintf("0 created, 0 updated, %d unchanged", len(lines)), lines...)
		export := from.export()
		to.takeAll(export)
		wantSameLines(t, fmt.Sprintf("the copy of seed %d", seed), to.export(), export)

		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		if report, err := shuffled.takeIn(7, lines...); err != nil || report.Refused > 0 {
			t.Fatal(report, err)
		}
		// The times of what says none are those of the import, which is the same.
		wantSameLines(t, fmt.Sprintf("seed %d in another order", seed), shuffled.export(), export)
		for what, query := range recounts {
			if got := shuffled.text(query); got != "(0)" {
				t.Errorf("%s: %s differ", what, got)
			}
		}
	}
}

// TestExportBesideWriters: an export beside writers is of one moment: every reference
// resolves, and its import is exported as the same bytes.
func TestExportBesideWriters(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 12))
	from := newWorld(t).catalogues()
	lines := append(platform(r), history(r)...)
	for i, l := range lines { // writers reach no archived client, and know one partner
		lines[i] = strings.ReplaceAll(strings.ReplaceAll(l, `,"archived":true`, ""), `"partner":"`+id(2), `"partner":"`+id(1))
	}
	from.want(fmt.Sprintf("%d created, 0 updated, 0 unchanged", len(lines)), lines...)

	ctx, stop := context.WithCancel(domain.WithCaller(t.Context(), &domain.Caller{Partner: parsed[domain.PartnerKind](1), AllClients: true}))
	var writers sync.WaitGroup
	wrote := make(chan struct{}, 1) // after a write, unless it says so already
	for n := range 2 {
		api := &writer{DB: from.DB, client: parsed[domain.ClientKind](100), collection: parsed[domain.CollectionKind](150), r: rand.New(rand.NewPCG(uint64(n), 2))}
		for u := range 12 {
			api.users = append(api.users, parsed[domain.UserKind](110+u))
		}
		writers.Go(func() {
			for ctx.Err() == nil {
				err := api.write(ctx)
				if err == nil {
					err = api.simulate(ctx)
				}
				if err != nil && ctx.Err() == nil {
					t.Error("a writer:", err)
					stop()
					return
				}
				select {
				case wrote <- struct{}{}:
				default:
				}
			}
		})
	}
	var exports [][]byte
	for range 3 {
		exports = append(exports, from.export())
		for range 4 { // of which one writer's second began after the export
			select {
			case <-wrote:
			case <-ctx.Done(): // a writer failed
			}
		}
	}
	stop()
	writers.Wait()
	for i, export := range exports {
		to := newWorld(t).catalogues()
		to.takeAll(export)
		wantSameLines(t, fmt.Sprintf("export %d", i), to.export(), export)
	}
	if bytes.Equal(exports[0], exports[2]) {
		t.Error("nothing was written meanwhile")
	}
}

// simulate sends a simulated mail to a new user: what an export could see half of.
func (w *writer) simulate(ctx context.Context) error {
	user := domain.User{
		ID: db.NewID[domain.UserKind](), Client: w.client, Email: db.NewID[domain.UserKind]().String() + "@x.example",
		Status: domain.Active, Role: domain.RoleStandard, Language: domain.English, Source: domain.FromAPI, Score: 750,
	}
	templates, err := db.OwnTemplates()
	if err != nil {
		return err
	}
	err = w.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := w.Tenant(ctx, w.client)
		if err != nil {
			return err
		}
		if err := c.ShareAudiences(ctx, t.ID); err != nil {
			return err
		}
		user.CreatedAt, user.UpdatedAt = c.At, c.At
		return t.InsertUser(ctx, c, user, nil)
	})
	if err != nil {
		return err
	}
	return w.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := w.Tenant(ctx, w.client)
		if err != nil {
			return err
		}
		return t.ScheduleResults(ctx, c, []domain.Result{{
			ID: db.NewID[domain.ResultKind](), User: user.ID, Template: templates[0].ID, SendAt: c.At.Add(time.Hour),
		}})
	})
}

// export is what an export of all objects writes.
func (w *world) export() []byte {
	w.t.Helper()
	objects, _ := w.exportBoth()
	return objects
}

// exportBoth is an export with its signals.
func (w *world) exportBoth() (objects, signals []byte) {
	w.t.Helper()
	var out, did bytes.Buffer
	to := transfer.Output{Objects: &out, Signals: &did}
	if err := transfer.Export(w.t.Context(), w.DB, domain.PartnerID{}, to, nil); err != nil {
		w.t.Fatal(err)
	}
	return out.Bytes(), did.Bytes()
}

// takeAll imports an export, of which nothing may be refused, and returns how many lines
// it has.
func (w *world) takeAll(export []byte) transfer.Report {
	w.t.Helper()
	report, err := transfer.Import(w.t.Context(), w.DB, bytes.NewReader(export), transfer.Watcher{
		Refused: func(line int, reason string) {
			w.t.Errorf("line %d: %s\n%.300s", line, reason, bytes.Split(export, []byte("\n"))[line-1])
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// wantSameLines compares two exports, and names the lines that only one has.
func wantSameLines(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, not %d:\n%s", what, len(got), len(want), differing(string(got), string(want)))
	}
}

// recounts count where a stored value differs from what it sums up.
var recounts = map[string]string{
	"phishing_days": `SELECT count(*) FROM (
			SELECT client_id, sent_at::date AS day, count(*) AS sent, count(*) FILTER (WHERE status <> 'sent') AS opened
			FROM phishing_results WHERE sent_at IS NOT NULL GROUP BY 1, 2) AS r
		FULL JOIN phishing_days AS d USING (client_id, day) WHERE (r.sent, r.opened) IS DISTINCT FROM (d.sent, d.opened)`,
	"users": `SELECT count(*) FROM clients AS c WHERE (users_active, users_inactive) <> (SELECT
		count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status <> 'active') FROM users WHERE client_id = c.id)`,
	"scores": `SELECT count(*) FROM users AS u JOIN user_risks AS r ON r.client_id = u.client_id AND r.user_id = u.id
		WHERE r.baseline + (SELECT sum(d) FROM unnest(r.deltas) AS d) <> u.score`,
	"frameworks": `SELECT count(*) FROM clients AS c WHERE framework_ids <> (
		SELECT coalesce(array_agg(DISTINCT framework_id ORDER BY framework_id), '{}') FROM framework_assignments WHERE client_id = c.id)`,
	"what is told": `SELECT (SELECT count(*) FROM events) + (SELECT count(*) FROM mail_requests)
		+ (SELECT count(*) FROM assignments WHERE completed_at IS NULL AND due_on < '2026-06-15' AND NOT overdue_noted)`,
	"asked courses": `SELECT count(*) FROM framework_assignments AS f JOIN framework_courses AS r USING (framework_id)
		JOIN users AS u ON u.client_id = f.client_id AND u.status = 'active' AND (r.role IS NULL OR r.role = u.role)
		AND (f.audience_type = 'all' OR u.group_id = f.audience_id OR EXISTS (SELECT 1 FROM collection_members AS m
			WHERE m.client_id = f.client_id AND m.collection_id = f.audience_id AND m.user_id = u.id))
		WHERE NOT EXISTS (SELECT 1 FROM assignments AS a WHERE a.client_id = u.client_id AND a.user_id = u.id
			AND a.course_id = r.course_id AND f.id = ANY (a.frameworks) AND a.due_on = (
				SELECT min(greatest(u.created_at, s.created_at)::date + 30) FROM framework_assignments AS s WHERE s.id = ANY (a.frameworks)
			) OR a.from_program)`,
}
