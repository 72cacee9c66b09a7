package main

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// This file lets a database work as in life for a while (-soak), and shows how its
// tables and indexes grow beside what lives in them.

const (
	// soakWrites is how many writes a second are asked for.
	soakWrites = 200
	// soakWriters is the maximum number of them in progress at a time.
	soakWriters = 16
	// soakRefresh is how often the background looks for summaries to refresh.
	soakRefresh = 15 * time.Second
	// soakStep is how often old rows are dropped, and what was written is shown.
	soakStep = 5 * time.Minute
	// soakLife is how long what is kept for domain.EventLife is kept here, so that as much
	// is dropped as is written: else an hour would show nothing of that. Outcomes of
	// Idempotency-Keys are dropped at once.
	soakLife = 10 * time.Minute
)

// soaked are the writes of a soak.
type soaked struct {
	*bench
	users []soakedUser
	mu    sync.Mutex
	times []time.Duration
	shown int          // of times, by the step before
	late  atomic.Int64 // that could not begin in time
}

// soakedUser is one of random active users.
type soakedUser struct {
	ClientID domain.ClientID
	ID       domain.UserID
}

// soakFor asks for soakWrites writes a second, with webhooks, mails and refreshes of
// summaries, and the daily refresh where there is time for it, and prints how fast they
// were and what became of the tables.
func (b *bench) soakFor(ctx context.Context, long time.Duration) {
	s := &soaked{bench: b, users: all[soakedUser](ctx, b.data,
		"SELECT client_id, id FROM users WHERE status = 'active' ORDER BY random() LIMIT 50000")}
	before := b.stored(ctx)
	mails, hooks, end := s.receivers(ctx)
	refreshed := make(chan error, 1)
	go func() {
		refreshed <- try(func() {
			if long >= 2*refreshBar {
				got, _ := inChild[struct{}](b, "refresh", params{Now: b.data.nextDay(ctx)})
				fmt.Fprintln(b.out, "the daily refresh meanwhile took", rounded(got.Took))
			}
		})
	}()

	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, long)
	s.write(ctx)
	cancel()
	took := time.Since(began)
	ctx = context.WithoutCancel(ctx)
	check(<-refreshed)
	end()

	slices.Sort(s.times)
	n := len(s.times)
	fmt.Fprintf(b.out, "soak of %s: %d writes (%.0f a second; %d more could not begin in time), median %s, p99 %s; "+
		"%d mails, %d deliveries\n\n", rounded(took), n, float64(n)/took.Seconds(), s.late.Load(), rounded(s.times[n/2]),
		rounded(s.times[n*99/100]), mails.taken.Load(), hooks.taken.Load())
	b.showStored(before, b.stored(ctx))
}

// receivers start what takes mails and deliveries, and what sends them. end stops all.
func (s *soaked) receivers(ctx context.Context) (mails, hooks *sink, end func()) {
	mails, hooks = &sink{}, &sink{}
	address, endMail := mails.mailServer()

	endpoint := httptest.NewTLSServer(hooks)
	ca := filepath.Join(s.folder, "ca.pem")
	check(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: endpoint.Certificate().Raw}), 0o600))
	s.subscribe(ctx, endpoint.URL, 2, 0)
	aged := must(db.Open(s.data.url, db.WithClock(ahead(domain.EventLife-soakLife))))
	children := []*child{s.start("work", params{SMTP: "smtp://" + address}), s.start("deliver", params{CA: ca})}

	working, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	every := func(pause time.Duration, what string, do func(context.Context)) {
		work.Go(func() {
			for domain.Pause(working, pause) == nil {
				if err := try(func() { do(working) }); err != nil && working.Err() == nil {
					fmt.Fprintln(s.progress, what+":", err)
				}
			}
		})
	}
	every(soakRefresh, "refresh ahead", func(ctx context.Context) { must(s.data.db.RefreshAhead(ctx)) })
	every(soakStep, "show a step", s.showStep)
	every(soakStep, "drop old rows", func(ctx context.Context) { check(aged.DropOld(ctx)) })
	return mails, hooks, func() {
		stop()
		work.Wait()
		check(aged.Close())
		for _, c := range children {
			check(c.stop())
		}
		endpoint.Close()
		endMail()
	}
}

// ahead is a clock that is so far ahead.
type ahead time.Duration

func (a ahead) Now() time.Time { return time.Now().Add(time.Duration(a)) }

// Elapsed implements domain.Clock.
func (ahead) Elapsed() time.Duration { return domain.SystemClock{}.Elapsed() }

// showStep shows the writes since the step before, and what is kept for a while.
func (s *soaked) showStep(ctx context.Context) {
	s.mu.Lock()
	times := slices.Sorted(slices.Values(s.times[s.shown:]))
	s.shown = len(s.times)
	s.mu.Unlock()
	n := len(times)
	if n == 0 {
		fail("nothing was written")
	}
	size := func(table string) int {
		return s.data.count(ctx, "SELECT pg_total_relation_size($1::regclass) / (1 << 20)", table)
	}
	fmt.Fprintf(s.out, "%d writes more, median %s, p99 %s, slowest %s; %d MB of published_events, %d of webhook_deliveries, %d in all\n",
		n, rounded(times[n/2]), rounded(times[n*99/100]), rounded(times[n-1]), size("published_events"), size("webhook_deliveries"),
		s.data.count(ctx, "SELECT pg_database_size(current_database()) / (1 << 20)"))
}

// write writes until ctx ends.
func (s *soaked) write(ctx context.Context) {
	newUser := s.newUser()
	late := s.atRate(ctx, soakWrites, func(i int) []byte { return s.next(i, newUser) }, func(took time.Duration, err error) {
		if err != nil {
			fmt.Fprintln(s.progress, "a write failed:", err)
			return
		}
		s.mu.Lock()
		s.times = append(s.times, took)
		s.mu.Unlock()
	})
	s.late.Add(late)
}

// atRate sends so many requests a second until ctx ends, and returns how many could not
// begin in time. Answers are told as they come, several at a time.
func (b *bench) atRate(
	ctx context.Context, perSecond int, next func(i int) []byte, answered func(took time.Duration, err error),
) (late int64) {
	due := make(chan []byte, soakWriters)
	var writers sync.WaitGroup
	for range soakWriters {
		writers.Go(func() {
			c := dial(b.service.address)
			defer c.Close()
			for request := range due {
				begin := time.Now()
				err := c.send(request, io.Discard)
				answered(time.Since(begin), err)
			}
		})
	}

	tick := time.NewTicker(time.Second / time.Duration(perSecond))
	defer tick.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		<-tick.C
		select {
		case due <- next(i):
		default:
			late++
		}
	}
	close(due)
	writers.Wait()
	return late
}

// next is the i-th write: of ten, six change a user, two send a simulated mail, one
// makes a user and one reads a client, which has its summary refreshed ahead.
func (s *soaked) next(i int, newUser func(int) []byte) []byte {
	user := s.users[rand.IntN(len(s.users))]
	switch i % 10 {
	case 0:
		return newUser(i)
	case 1, 2:
		return request("POST", pathOf(user.ClientID, "/phishing/sends"), s.writeKey, object{"user_ids": []domain.UserID{user.ID}})
	case 3:
		return s.get(pathOf(s.data.clients[rand.IntN(len(s.data.clients))], ""))
	case 4, 5, 6:
		return request("PATCH", "/v2/users/"+user.ID.String(), s.writeKey,
			object{"role": []string{"finance", "hr", "standard"}[rand.IntN(3)]})
	default:
		return request("PATCH", "/v2/users/"+user.ID.String(), s.writeKey, object{"department": fmt.Sprint("Department ", i%100)})
	}
}

// storage is how a table or an index is filled. Live is the share of its bytes that
// rows have, of an index that of its leaves, both in percent.
type storage struct {
	Name              string
	Rows, Dead, Bytes int64
	Live              float64
}

// stored looks at all tables and B-trees, as PostgreSQL's extension pgstattuple counts
// them.
func (b *bench) stored(ctx context.Context) []storage {
	admin := must(db.Open(b.data.admin))
	defer admin.Close()
	must(pg.Exec(ctx, admin, "count tuples", pg.SQL("CREATE EXTENSION IF NOT EXISTS pgstattuple")))
	return must(pg.All[storage](ctx, admin, "count tuples", pg.SQL(`
		SELECT c.relname::text AS name, t.tuple_count AS rows, t.dead_tuple_count AS dead, t.table_len AS bytes,
			t.tuple_percent AS live
		FROM pg_class AS c, LATERAL pgstattuple(c.oid) AS t WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
		UNION ALL
		SELECT '  ' || c.relname, 0, 0, i.index_size, CASE WHEN i.leaf_pages > 0 THEN i.avg_leaf_density ELSE 0 END
		FROM pg_class AS c JOIN pg_am AS m ON m.oid = c.relam AND m.amname = 'btree', LATERAL pgstatindex(c.oid) AS i
		WHERE relkind = 'i' AND relnamespace = 'public'::regnamespace
		ORDER BY bytes DESC, name`)))
}

// showStored prints what has changed of each table and index of some size.
func (b *bench) showStored(before, after []storage) {
	was := map[string]storage{}
	for _, s := range before {
		was[s.Name] = s
	}
	const row = "%-50s %12s %10s %9s %10s %8s %7s %7s\n"
	fmt.Fprintf(b.out, row, "TABLE OR INDEX", "ROWS", "MORE", "DEAD", "MB", "GROWTH", "LIVE", "BEFORE")
	for _, s := range after {
		if old := was[s.Name]; s.Bytes > 1<<20 && (s.Bytes != old.Bytes || s.Live != old.Live) {
			fmt.Fprintf(b.out, row, s.Name, fmt.Sprint(s.Rows), fmt.Sprint(s.Rows-old.Rows), fmt.Sprint(s.Dead),
				fmt.Sprintf("%.1f", float64(s.Bytes)/(1<<20)), fmt.Sprintf("%.1f", float64(s.Bytes-old.Bytes)/(1<<20)),
				fmt.Sprintf("%.0f%%", s.Live), fmt.Sprintf("%.0f%%", old.Live))
		}
	}
}
