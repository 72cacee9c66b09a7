package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"partnerapi/db"
	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// platform is the lines of a made-up platform: each of its objects once, and whatever
// they say by chance.
func platform(r *rand.Rand) (lines []string) {
	add := func(object string, n int, format string, args ...any) {
		lines = append(lines, ref(object, n, fmt.Sprintf(format, args...)))
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	add("partner", 1, `'name':'One'`)
	add("partner", 2, `'name':'Two'`)
	add("course", 3, `'title':'Third','renewal_months':%d`, r.IntN(13))
	const clients, users = 3, 12
	for c := range clients {
		client := 100 * (c + 1)
		add("client", client, `'partner':#%d,'name':'Client %d','created_at':'2025-0%d-01T00:00:00Z'%s`, 1+r.IntN(2), c, c+1,
			pick("", `,'program':[#3]`, `,'archived':true`, `,'dark_web_monitoring':false`))
		add("group", client+1, `'client':#%d,'name':'Manual','manual':true`, client)
		add("group", client+2, `'client':#%d,'name':'Sales'`, client)
		add("admin", client+3, `'client':#%d,'email':'a@b.example','name':'A','role':'%s'`, client, pick("owner", "viewer"))
		var members []string
		for u := range users {
			user := client + 10 + u
			add("user", user, `'client':#%d,'email':'u%d@x.example','created_at':'202%d-03-0%dT00:00:00Z','status':'%s'%s`,
				client, u, 3+r.IntN(4), 1+r.IntN(9), pick("active", "active", "inactive"),
				pick("", fmt.Sprintf(`,'group':#%d`, client+2), fmt.Sprintf(`,'collection_ids':[#%d]`, client+50), `,'role':'hr','source':'google'`))
			if r.IntN(3) == 0 {
				members = append(members, fmt.Sprintf("#%d", user))
			}
		}
		add("collection", client+50, `'client':#%d,'name':'Some','members':[%s]`, client, strings.Join(members, ","))
		add("policy", client+60, `'client':#%d,'title':'P','scope_type':'collection','scope_id':#%d`, client, client+50)
		add("policy", client+61, `'client':#%d,'title':'P','archived':%s`, client, pick("true", "false"))
	}
	return lines
}

// TestAnyOrder: the lines of a platform in any order, in runs that are cut short
// anywhere and begun again, end as they do in one run in their order.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		r := rand.New(rand.NewPCG(seed, 10))
		lines := platform(r)
		inOrder, shuffled := newWorld(t), newWorld(t)
		inOrder.want(fmt.Sprintf("%d created, 0 updated, 0 unchanged", len(lines)), lines...)
		inOrder.want(fmt.Sprintf("0 created, 0 updated, %d unchanged", len(lines)), lines...)

		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		for cut := true; cut; {
			cut = shuffled.cutShort(lines, 1+r.IntN(8), 1+r.IntN(12))
			r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		}
		if a, b := inOrder.everything(), shuffled.everything(); a != b {
			t.Fatalf("seed %d:\n%s\nis\n%s", seed, a, b)
		}
	}
}

// cutShort imports lines in batches of the given size, and is cut short after some more
// batches than the run before. It reports whether it was.
func (w *world) cutShort(lines []string, batch, batches int) bool {
	w.t.Helper()
	ctx, cut := context.WithCancel(w.t.Context())
	defer cut()
	w.applied += batches
	n := 0
	_, err := transfer.ImportIn(ctx, w.DB, strings.NewReader(strings.Join(lines, "\n")), transfer.Watcher{
		Refused: func(line int, reason string) { w.t.Errorf("line %d: %s: %s", line, reason, lines[line-1]) },
		Applied: func(int, int) {
			if n++; n == w.applied {
				cut()
			}
		},
	}, batch)
	if err != nil && !errors.Is(err, context.Canceled) {
		w.t.Fatal(err)
	}
	return err != nil
}

// TestOrderOfOneObject: the lines of one result are applied in their order, with the
// user or without, between those of other users and clients, in whatever batches.
func TestOrderOfOneObject(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 10))
	w := newWorld(t)
	w.catalogues()
	own, err := db.OwnTemplates()
	if err != nil {
		t.Fatal(err)
	}
	const clients, each, times = 3, 5, 4
	lines := []string{ref("partner", 1, `'name':'One'`)}
	queues := map[int][]string{}
	for c := range clients {
		client := 100 * (c + 1)
		lines = append(lines, ref("client", client, fmt.Sprintf(`'partner':#1,'name':'Client %d'`, c)))
		for u := range each {
			user, result := client+10+u, client+50+u
			lines = append(lines, ref("user", user, fmt.Sprintf(`'client':#%d,'email':'u%d@x.example'`, client, u)))
			queues[result] = []string{
				ref("phishing_result", result, fmt.Sprintf(`'user':#%d,'template':'%s','sent_at':'2026-01-01T00:00:00Z'`, user, own[0].ID)),
				ref("phishing_result", result, `'opened_at':'2026-01-01T01:00:00Z'`),
				ref("phishing_result", result, fmt.Sprintf(`'user':#%d,'opened_at':'2026-01-01T02:00:00Z'`, user)),
				ref("phishing_result", result, `'opened_at':'2026-01-01T03:00:00Z'`),
			}
		}
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	order := make([]int, 0, clients*each*times)
	for result := range queues {
		for range times {
			order = append(order, result)
		}
	}
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	for _, result := range order {
		lines, queues[result] = append(lines, queues[result][0]), queues[result][1:]
	}
	for w.cutShort(lines, 1+r.IntN(3), 40) {
	}
	w.is(fmt.Sprintf("(%d)", clients*each), "SELECT count(*) FROM phishing_results WHERE opened_at = '2026-01-01T03:00:00Z'")
}

// writer changes, as the API does, what an import changes too.
type writer struct {
	*db.DB
	client     domain.ClientID
	collection domain.CollectionID
	users      []domain.UserID
	r          *rand.Rand
}

// write makes one change. A clash, and what is gone, are answers that a caller gets.
func (w *writer) write(ctx context.Context) error {
	user := w.users[w.r.IntN(len(w.users))]
	err := w.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := w.Tenant(ctx, w.client)
		if err != nil {
			return err
		}
		switch w.r.IntN(4) {
		case 0:
			return w.create(ctx, c, t)
		case 1:
			return w.update(ctx, c, user)
		case 2:
			if err := c.ShareAudiences(ctx, t.ID); err != nil {
				return err
			}
			if _, err := t.LockUsers(ctx, c, []domain.UserID{user}); err != nil {
				return err
			}
			if _, err := t.LockCollection(ctx, c, w.collection); err != nil {
				return err
			}
			_, err := t.AddMembers(ctx, c, w.collection, []domain.UserID{user})
			return err
		}
		if _, err := t.LockUsers(ctx, c, []domain.UserID{user}); err != nil {
			return err
		}
		return t.RemoveMember(ctx, c, w.collection, user)
	})
	if domain.IsCode(err, domain.Conflict) || domain.IsCode(err, domain.NotFound) {
		return nil
	}
	return err
}

func (w *writer) create(ctx context.Context, c *db.Change, t *db.Tenant) error {
	if err := c.ShareAudiences(ctx, t.ID); err != nil {
		return err
	}
	return t.InsertUser(ctx, c, domain.User{
		ID: db.NewID[domain.UserKind](), Client: t.ID, Email: fmt.Sprintf("n%d@x.example", w.r.IntN(1000)),
		Status: domain.Active, Role: domain.RoleStandard, Language: domain.English, Source: domain.FromAPI, Score: 750,
		CreatedAt: c.At, UpdatedAt: c.At,
	}, nil)
}

func (w *writer) update(ctx context.Context, c *db.Change, id domain.UserID) error {
	if err := c.ShareAudiencesOf(ctx, id); err != nil {
		return err
	}
	u, err := c.LockUser(ctx, id)
	if err != nil {
		return err
	}
	after := u.User
	after.Status = []domain.UserStatus{domain.Active, domain.Inactive}[w.r.IntN(2)]
	after.Role = []domain.Role{domain.RoleHR, domain.RoleFinance}[w.r.IntN(2)]
	return u.Update(ctx, c, after)
}

// TestWriters: imports and writers of the API neither block each other for good nor
// fail, and what is counted is right in the end.
func TestWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const users = 60
	lines := func(run int) []string {
		list := []string{ref("partner", 1, `'name':'P'`), ref("client", 2, `'partner':#1,'name':'C'`)}
		var members []string
		for u := range users {
			list = append(list, ref("user", 10+u, fmt.Sprintf(`'client':#2,'email':'n%d@x.example','last_name':'%d','status':'%s'`,
				1000+u+run%2*users, run, []string{"active", "inactive"}[(u+run)%2])))
			members = append(members, fmt.Sprintf("#%d", 10+u))
		}
		return append(list, ref("collection", 5, `'client':#2,'name':'K','members':[`+strings.Join(members, ",")+`]`))
	}
	w.want(fmt.Sprintf("%d created, 0 updated, 0 unchanged", users+3), lines(0)...)

	ctx := domain.WithCaller(t.Context(), &domain.Caller{Partner: parsed[domain.PartnerKind](1), AllClients: true})
	// The writers end between two changes: one that is cancelled may still be committed
	// while the counts are read.
	var imported atomic.Bool
	var writers sync.WaitGroup
	for n := range uint64(3) {
		api := &writer{DB: w.DB, client: parsed[domain.ClientKind](2), collection: parsed[domain.CollectionKind](5), r: rand.New(rand.NewPCG(n, 1))}
		for u := range users {
			api.users = append(api.users, parsed[domain.UserKind](10+u))
		}
		writers.Go(func() {
			for !imported.Load() {
				if err := api.write(ctx); err != nil {
					t.Error("a writer:", err)
					return
				}
			}
		})
	}
	for run := 1; run < 6; run++ {
		report, err := transfer.ImportIn(t.Context(), w.DB, strings.NewReader(strings.Join(lines(run), "\n")), transfer.Watcher{}, 7)
		if err != nil || report.Refused > 0 {
			t.Error(report, err)
		}
	}
	imported.Store(true)
	writers.Wait()
	w.is(w.text(`SELECT count(*) FILTER (WHERE status = 'active'), count(*) FILTER (WHERE status <> 'active') FROM users`),
		"SELECT users_active, users_inactive FROM clients")
	w.is(w.text("SELECT count(*) FROM collection_members"), "SELECT member_count FROM collections")
}

// TestTwo: one import at a time.
func TestTwo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := records.WithLock(t.Context(), w.DB, func(ctx context.Context) error {
		_, err := transfer.Import(ctx, w.DB, strings.NewReader(""), transfer.Watcher{})
		return err
	})
	if !errors.Is(err, transfer.ErrImporting) {
		t.Error(err)
	}
}
