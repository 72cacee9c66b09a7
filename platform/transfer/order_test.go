package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"partnerapi/db"
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
