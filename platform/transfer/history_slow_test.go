//go:build slow

package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"partnerapi/db"
	"partnerapi/db/doctor"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// TestAnyOrder: the lines of a platform in any order, in runs that are cut short anywhere and
// begun again, end as they do in one run in their order. The export of what they make, imported
// elsewhere, is exported as the same bytes.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	lines := append(school(), past()...)
	inOrder, to := newWorld(t).catalogues(), newWorld(t).catalogues()
	inOrder.want(fmt.Sprintf("%d created, 0 updated, 0 unchanged", len(lines)), lines...)
	inOrder.want(fmt.Sprintf("0 created, 0 updated, %d unchanged", len(lines)), lines...)
	export := inOrder.export()
	to.takeAll(export)
	wantSameLines(t, "the copy", to.export(), export)
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 11))
		shuffled := newWorld(t).catalogues()
		for cut := true; cut; {
			r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
			cut = shuffled.cutShort(lines, 1+r.IntN(8), 1+r.IntN(12))
		}
		// The times of what says none are those of the import, which is the same.
		wantSameLines(t, fmt.Sprintf("seed %d", seed), shuffled.export(), export)
		if a, b := inOrder.everything(), shuffled.everything(); a != b {
			t.Errorf("seed %d:\n%s", seed, differing(a, b))
		}
		shuffled.recount()
	}
}

// TestBesideWriters: exports and imports beside writers of the API neither block each other for
// good nor fail. An export is of one moment: every reference resolves, and its import is exported
// as the same bytes. What is counted is right in the end.
func TestBesideWriters(t *testing.T) {
	t.Parallel()
	from := newWorld(t).catalogues()
	lines := append(school(), past()...)
	for u := range 12 {
		lines = append(lines, ref("user", 110+u, fmt.Sprintf(`'client':#10,'email':'u%d@x.example'`, u)))
	}
	from.want(fmt.Sprintf("%d created, 0 updated, 0 unchanged", len(lines)), lines...)

	ctx, stop := context.WithCancel(domain.WithCaller(t.Context(), &domain.Caller{Partner: parsed[domain.PartnerKind](1), AllClients: true}))
	var writers sync.WaitGroup
	wrote := make(chan struct{}, 1) // after a write, unless it says so already
	for n := range 3 {
		api := &writer{DB: from.DB, client: parsed[domain.ClientKind](10), collection: parsed[domain.CollectionKind](30), r: rand.New(rand.NewPCG(uint64(n), 2))}
		for u := range 12 {
			api.users = append(api.users, parsed[domain.UserKind](110+u))
		}
		writers.Go(func() {
			for ctx.Err() == nil {
				if err := errors.Join(api.write(ctx), api.simulate(ctx)); err != nil && ctx.Err() == nil {
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
	for run := range 4 {
		exports = append(exports, from.export())
		var members, changed []string
		for u := range 12 {
			members = append(members, fmt.Sprintf("#%d", 110+u))
			changed = append(changed, ref("user", 110+u, fmt.Sprintf(`'email':'n%d@x.example','last_name':'%d','status':'%s'`,
				u+run%2*12, run, []string{"active", "inactive"}[(u+run)%2])))
		}
		changed = append(changed, ref("collection", 30, `'members':[`+strings.Join(members, ",")+`]`))
		if report, err := from.takeIn(7, changed...); err != nil || report.Refused > 0 {
			t.Error(report, err)
		}
		for range 6 { // of which one writer's second began after the export
			select {
			case <-wrote:
			case <-ctx.Done(): // a writer failed
			}
		}
	}
	stop()
	writers.Wait()
	for i, export := range exports[1:] {
		to := newWorld(t).catalogues()
		to.takeAll(export)
		wantSameLines(t, fmt.Sprintf("export %d", i), to.export(), export)
	}
	if bytes.Equal(exports[0], exports[3]) {
		t.Error("nothing was written meanwhile")
	}
	if wrong, err := doctor.Recount(t.Context(), from.DB); err != nil || len(wrong) > 0 {
		t.Errorf("wrong counts: %v, %v", wrong, err)
	}
}

// TestAtOnce: runs over the same offices, beside changes of single objects, do
// not block each other for good, and leave sums that are right.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	p := newSignalWorld(t)
	const users = 4
	offices := []*office{p.office(users), p.office(users), p.office(users)}
	var all sync.WaitGroup
	for worker := range uint64(4) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(worker, 11))
			for run := range 25 {
				var lines []string
				for i := range 30 {
					lines = append(lines, random(r, users).line(fmt.Sprint(worker, run, i), offices[r.IntN(len(offices))]))
				}
				if _, err := transfer.Ingest(t.Context(), p.DB, strings.NewReader(strings.Join(lines, "\n")), transfer.Watcher{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		r := rand.New(rand.NewPCG(4, 11))
		for range 100 {
			o := offices[r.IntN(len(offices))]
			user, result := o.users[r.IntN(users)], o.results[r.IntN(2*users)]
			err := p.AdvanceResults(t.Context(), []domain.ResultStep{{Result: result, Kind: domain.MailClicked, At: noon}})
			caller := &domain.Caller{Partner: p.Partner, AllClients: true}
			resolved := p.Change(domain.WithCaller(t.Context(), caller), func(ctx context.Context, c *db.Change) error {
				u, err := c.LockUser(ctx, user)
				if err != nil {
					return err
				}
				_, err = u.ResolveExposure(ctx, c, "Forum")
				return err
			})
			if domain.IsCode(resolved, domain.NotFound) { // not found there yet
				resolved = nil
			}
			if err := errors.Join(err, resolved); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	for _, o := range offices {
		if a, b := p.text(counted, o.client), p.text(recounted, o.client); a != b {
			t.Errorf("counted %s, recounted %s", a, b)
		}
		before := p.text(everything, o.client)
		p.rescore(o)
		if after := p.text(everything, o.client); after != before {
			t.Errorf("stored and scored anew\n%s", differing(before, after))
		}
	}
}
