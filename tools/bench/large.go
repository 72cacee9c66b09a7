package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"partnerapi/cmd/internal/cli"
	"partnerapi/db"
	"partnerapi/db/seed"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
)

// This file measures what grows with the data (-large): requests to a service on a
// database of a million users beside the same on a tenth of them. What is compared are
// pages of as many rows, of objects at the same places of the lists.

// sizes are two databases of one shape, of which the larger has ten times as much of
// all, each with a PostgreSQL and a service of its own.
type sizes struct{ large, small *bench }

// measureLarge fills both and compares them, or has the larger one work for a while.
func (b *bench) measureLarge(ctx context.Context) {
	if b.soak > 0 {
		b.ofSize(ctx, b.users).soakFor(ctx, b.soak)
		return
	}
	moves := b.moves()
	if slices.ContainsFunc(moves, b.wanted) {
		b.perform(ctx, moves)
	}
	s := &sizes{large: b.ofSize(ctx, b.users), small: b.ofSize(ctx, b.users/10)}
	b.service = s.large.service // whose profiles are written
	b.perform(ctx, s.measures())
}

// largeSettings are those of PostgreSQL that docs/operating.md names for a million users.
var largeSettings = map[string]string{"shared_buffers": "2GB", "max_wal_size": "8GB", "checkpoint_timeout": "15min"}

// ofSize is a bench on a database of so many users, of whom a client has half and the
// others have 100 on average. It is kept with the data folder.
func (b *bench) ofSize(ctx context.Context, users int) *bench {
	return b.ofShape(ctx, strconv.Itoa(users), seed.Size{Clients: users / 100, Users: users, Mails: true})
}

func (b *bench) ofShape(ctx context.Context, folder string, size seed.Size) *bench {
	of := &bench{options: b.options, folder: b.folder, settings: largeSettings, out: b.out, progress: b.progress}
	of.dataDir = filepath.Join(b.dataDir, folder)
	b.ends = append(b.ends, of.close)
	of.openService(ctx, size)
	return of
}

const (
	// pagesBar is how much longer a page may take on ten times the data, readsBar a read
	// of one object, and writesBar a write.
	pagesBar, readsBar, writesBar = 1.15, 1.1, 1.2
	// searchBar is that of a search, which reads each of the rows: ten times as many.
	searchBar = 10
	// pageRows is how many rows the compared pages have.
	pageRows = 50
)

// measures are all that is compared: first what only reads.
func (s *sizes) measures() []measure {
	measures := slices.Concat(s.lists(), s.reads())
	if older.large != nil {
		measures = append(measures, older.large(s)...)
	}
	return slices.Concat(measures, s.writes(), s.whole())
}

// requests prepares the requests of a measure to one of the two.
type requests func(ctx context.Context, b *bench) func(i int) []byte

// compare compares the typical times of requests to both, in turns.
func (s *sizes) compare(times int, next requests) finder {
	return func(ctx context.Context) figure {
		return compared(ctx, s.large.times(times), lane{to: s.large.service.address, next: next(ctx, s.large)},
			lane{to: s.small.service.address, next: next(ctx, s.small)})
	}
}

// both does something to both databases before a measure.
func (s *sizes) both(prepare func(context.Context, *data)) func(context.Context) {
	return func(ctx context.Context) {
		prepare(ctx, s.large.data)
		prepare(ctx, s.small.data)
	}
}

// fresh makes the summaries of all clients fresh for the minutes of a measure. What all of
// them at once leave in the indexes is vacuumed, as it is within a minute in life.
func fresh(ctx context.Context, d *data) {
	if time.Since(d.freshened) > domain.SummaryAge/2 {
		check(d.db.ForceSummaries(ctx))
		d.exec(ctx, "VACUUM clients")
		d.freshened = time.Now()
	}
}

// ofLargest is the path of what the largest client has.
func ofLargest(of string) func(context.Context, *bench) string {
	return func(_ context.Context, b *bench) string { return pathOf(b.data.clients[0], of) }
}

// lists are the first, the middle and the last page of each list of v2 that grows with
// the number of users, of the largest client or the partner.
func (s *sizes) lists() (measures []measure) {
	papers := s.both(func(ctx context.Context, d *data) { d.papers(ctx) })
	for _, l := range []struct {
		name  string
		path  func(context.Context, *bench) string
		needs func(context.Context)
	}{
		{"/v2/clients", func(context.Context, *bench) string { return "/v2/clients" }, s.both(fresh)},
		{"/v2/clients?sort=created_at", func(context.Context, *bench) string { return "/v2/clients?sort=created_at" }, s.both(fresh)},
		{"/v2/clients?sort=risk_score", func(context.Context, *bench) string { return "/v2/clients?sort=risk_score" }, s.both(fresh)},
		{"/v2/clients/{id}/users", ofLargest("/users"), nil},
		{"/v2/clients/{id}/users?sort=email", ofLargest("/users?sort=email"), nil},
		{"/v2/clients/{id}/users?sort=-risk_score", ofLargest("/users?sort=-risk_score"), nil},
		{"/v2/clients/{id}/users?overdue=true", ofLargest("/users?overdue=true"), nil},
		{"/v2/clients/{id}/phishing/results", ofLargest("/phishing/results"), nil},
		{"/v2/clients/{id}/phishing/reported", ofLargest("/phishing/reported"), nil},
		{"/v2/clients/{id}/dark-web/exposures", ofLargest("/dark-web/exposures"), nil},
		{"/v2/clients/{id}/dark-web/users", ofLargest("/dark-web/users"), nil},
		{"/v2 members of a collection of all users", membersPath, papers},
		{"/v2 users of a policy for all users", policyUsersPath, papers},
	} {
		for i, place := range []string{"first", "middle", "last"} {
			measures = append(measures, measure{name: fmt.Sprintf("%s: %s page", l.name, place), bound: atMost(pagesBar),
				needs: l.needs, run: s.compare(300, func(ctx context.Context, b *bench) func(int) []byte {
					return always(b.get(b.pageAt(l.path(ctx, b), i)))
				})})
		}
	}
	return measures
}

// membersPath is the list of the members of the collection of all users.
func membersPath(ctx context.Context, b *bench) string {
	id := all[domain.CollectionID](ctx, b.data, "SELECT id FROM collections WHERE client_id = $1 AND name = $2",
		b.data.clients[0], measuredCollection)[0]
	return pathOf(b.data.clients[0], "/collections/"+id.String()+"/members")
}

// policyUsersPath is the list of the audience of a policy for all users.
func policyUsersPath(ctx context.Context, b *bench) string {
	id := all[domain.PolicyID](ctx, b.data, "SELECT id FROM policies WHERE client_id = $1 AND title = $2",
		b.data.clients[0], measuredPolicy+" 2")[0]
	return pathOf(b.data.clients[0], "/policies/"+id.String()+"/users")
}

// pageAt is the path of the first (0), the middle (1) or the last (2) page of a list.
func (b *bench) pageAt(path string, place int) string {
	if b.cursors == nil {
		b.cursors = map[string][3]string{}
	}
	cursors, walked := b.cursors[path]
	if !walked {
		cursors = b.walkOver(path)
		b.cursors[path] = cursors
	}
	return paged(path, pageRows, cursors[place])
}

func paged(path string, limit int, cursor string) string {
	sign := "?"
	if strings.Contains(path, "?") {
		sign = "&"
	}
	path += sign + "limit=" + strconv.Itoa(limit)
	if cursor != "" {
		path += "&cursor=" + url.QueryEscape(cursor)
	}
	return path
}

// cursorPage is what a walk needs of a page.
type cursorPage struct {
	Data []json.RawMessage
	Page struct {
		NextCursor string `json:"next_cursor"`
	}
}

// walkOver walks over a list and returns the cursors of its first page, of one in the
// middle, and of the last one of pageRows rows.
func (b *bench) walkOver(path string) [3]string {
	const most = 500
	read := func(limit int, cursor string) cursorPage {
		return ask[cursorPage](b.service.address, b.get(paged(path, limit, cursor)))
	}
	cursors := []string{""}
	page := read(most, "")
	for ; page.Page.NextCursor != ""; page = read(most, page.Page.NextCursor) {
		cursors = append(cursors, page.Page.NextCursor)
	}

	before, from := len(page.Data)-pageRows, len(cursors)-1
	if before <= 0 && from > 0 {
		before, from = before+most, from-1
	}
	if before < 0 {
		fail("%s has %d rows", path, len(page.Data))
	}
	last := ""
	if before > 0 {
		last = read(before, cursors[from]).Page.NextCursor
	}
	if end := read(pageRows, last); len(end.Data) != pageRows || end.Page.NextCursor != "" {
		fail("the last page of %s has %d rows", path, len(end.Data))
	}
	return [3]string{"", cursors[len(cursors)/2], last}
}

// reads are reads of an object, each time of another one, and of what a user has, whose
// lists are as long in both; and searches.
func (s *sizes) reads() []measure {
	ofUsers := func(of string) requests {
		return func(ctx context.Context, b *bench) func(int) []byte {
			users := b.data.readers(ctx)
			return func(i int) []byte { return b.get("/v2/users/" + users[i%len(users)].String() + of) }
		}
	}
	ofClients := func(of string) requests {
		return func(ctx context.Context, b *bench) func(int) []byte {
			clients := b.data.usualClients(ctx)
			return func(i int) []byte { return b.get(pathOf(clients[i%len(clients)], of)) }
		}
	}
	largest := func(of string) requests {
		return func(ctx context.Context, b *bench) func(int) []byte {
			return always(b.get(ofLargest(of)(ctx, b)))
		}
	}
	one := func(name string, next requests) measure {
		return measure{name: name, bound: atMost(readsBar), needs: s.both(fresh), run: s.compare(2000, next)}
	}
	page := func(name string, next requests) measure {
		return measure{name: name, bound: atMost(pagesBar), run: s.compare(1000, next)}
	}
	search := func(name, path string, next requests) measure {
		return measure{name: name + path, bound: atMost(searchBar), run: s.compare(20, next)}
	}
	return []measure{
		one("GET /v2/clients/{id}", ofClients("")), one("GET the largest client", largest("")),
		one("GET /v2/clients/{id}/risk", ofClients("/risk")), one("GET the risk of the largest client", largest("/risk")),
		one("GET /v2/users/{id}", ofUsers("")), one("GET /v2/users/{id}/risk", ofUsers("/risk")),
		page("/v2/users/{id}/training", ofUsers("/training")), page("/v2/users/{id}/emails", ofUsers("/emails")),
		page("users of a client of 60 to 70", ofClients("/users?limit=50")),
		page("results of a client of 60 to 70", ofClients("/phishing/results?limit=50")),
		page("a search in a client of 60 to 70", ofClients("/users?q=zzz")),
		page("policies of the largest client", largest("/policies")),
		page("collections of the largest client", largest("/collections")),
		page("admins of the largest client", largest("/admins")), page("reports of the largest client", largest("/reports")),
		search("a search that finds nothing: ", "users of the largest client", largest("/users?q=zzzzz")),
		search("a search that finds nothing: ", "clients", func(_ context.Context, b *bench) func(int) []byte {
			return always(b.get("/v2/clients?q=zzzzz"))
		}),
	}
}

// usualClients are clients with as many users in both databases.
func (d *data) usualClients(ctx context.Context) []domain.ClientID {
	clients := all[domain.ClientID](ctx, d, `SELECT id FROM clients WHERE partner_id = $1
		AND users_active + users_inactive BETWEEN 60 AND 70 ORDER BY id`, d.partner)
	if len(clients) == 0 {
		fail("no client has 60 to 70 users")
	}
	return clients
}

// writes are writes to the largest client.
func (s *sizes) writes() []measure {
	return []measure{
		{name: "POST /v2/clients/{id}/users", bound: atMost(writesBar), run: s.compare(500,
			func(_ context.Context, b *bench) func(int) []byte { return b.newUser() })},
		{name: "PATCH /v2/users/{id}, the role", bound: atMost(writesBar), run: s.compare(1000,
			func(ctx context.Context, b *bench) func(int) []byte {
				users := b.data.activeUsers(ctx, 500)
				return func(i int) []byte { return b.newRole(users, i) }
			})},
	}
}

// The bounds of what goes over all the data.
const (
	refreshBar = 5 * time.Minute
	staleBar   = time.Second
	slowerBar  = 2 // of the 99th percentile of reads while the refresh runs
)

// whole is what goes over all the data of the larger database.
func (s *sizes) whole() []measure {
	r := &refreshing{bench: s.large}
	byRisk := always(s.large.get("/v2/clients?sort=risk_score&limit=50"))
	return []measure{
		{name: fmt.Sprintf("daily refresh of %d users", s.large.data.all), bound: atMost(refreshBar.Seconds()).asWork(),
			run: r.refresh, then: []measure{
				{name: "  p99 of reads meanwhile / before", bound: atMost(slowerBar), run: r.meanwhile},
				{name: "  clients by risk right after it", bound: atMost(staleBar.Seconds()), run: s.large.each(1, byRisk, nil)},
				{name: "  clients by risk, all summaries stale", bound: atMost(staleBar.Seconds()),
					run: s.large.each(3, byRisk, func(ctx context.Context, _ int) {
						s.large.data.exec(ctx, "UPDATE clients SET summarized_at = now() - interval '1 hour'")
					})},
			}},
		{name: "export of all lines", bound: bound{}.asWork(), run: func(context.Context) figure {
			got, peak := inChild[transfer.Report](s.large, "export", params{File: os.DevNull})
			return rate(got.Result.Lines, got.Took).about(", %d lines in %s", got.Result.Lines, rounded(got.Took)).in(peak)
		}},
	}
}

// refreshDaily is a child that does the daily refresh of the day after the last one
// that was refreshed, at the time that it is then.
func refreshDaily(ctx context.Context, p params, say func(any)) {
	cli.RelaxGC()
	d := must(db.Open(p.URL, db.WithClock(domain.NewManualClock(p.Now)), db.WithAcceptedClock()))
	defer d.Close()
	begin := time.Now()
	if !must(d.DailyRefresh(ctx, domain.DateOf(p.Now), nil)) {
		fail("the refresh of %s is done", domain.DateOf(p.Now))
	}
	say(done[struct{}]{Took: time.Since(begin)})
	<-ctx.Done()
}

// nextDay is a time on the day after the last one that was refreshed.
func (d *data) nextDay(ctx context.Context) time.Time {
	last := all[domain.Date](ctx, d, "SELECT greatest(max(day), current_date - 1) FROM daily_refreshes")[0]
	return last.AddDays(1).Time().Add(time.Hour)
}

// refreshing is the daily refresh, with reads before it and meanwhile.
type refreshing struct {
	*bench
	before, during time.Duration // the 99th percentiles
}

func (r *refreshing) refresh(ctx context.Context) figure {
	fresh(ctx, r.data)
	reads := r.mixed(ctx)
	r.before = r.readAll(ctx, reads, time.After(time.Duration(r.times(30))*time.Second))

	type ended struct {
		done[struct{}]
		peak float64
		err  error
	}
	end, over := make(chan ended, 1), make(chan time.Time)
	go func() {
		var e ended
		e.err = try(func() { e.done, e.peak = inChild[struct{}](r.bench, "refresh", params{Now: r.data.nextDay(ctx)}) })
		end <- e
		close(over)
	}()
	r.during = r.readAll(ctx, reads, over)
	e := <-end
	check(e.err)
	return took(e.Took).in(e.peak)
}

func (r *refreshing) meanwhile(context.Context) figure { return ratio(r.during, r.before) }

// mixed are reads of all kinds, of random users and clients.
func (b *bench) mixed(ctx context.Context) (reads [][]byte) {
	clients := b.data.usualClients(ctx)
	for i, user := range b.data.readers(ctx) {
		client := clients[i%len(clients)]
		reads = append(reads, b.get("/v2/users/"+user.String()), b.get("/v2/users/"+user.String()+"/risk"),
			b.get(pathOf(client, "")), b.get(pathOf(client, "/users?limit=50")), b.get(pathOf(client, "/phishing/results?limit=50")))
	}
	return reads
}

// readPause is between two reads while something else is done.
const readPause = 10 * time.Millisecond

// readAll reads, one request at a time with pauses, until something is over, and returns
// the 99th percentile of the times.
func (b *bench) readAll(ctx context.Context, reads [][]byte, over <-chan time.Time) time.Duration {
	c := dial(b.service.address)
	defer c.Close()
	var times []time.Duration
	for i := 0; ; i++ {
		select {
		case <-over:
			if len(times) < 100 {
				fail("%d reads are too few", len(times))
			}
			slices.Sort(times)
			return times[len(times)*99/100]
		case <-ctx.Done():
			check(ctx.Err())
		case <-time.After(readPause):
			times = append(times, c.timed(reads[i%len(reads)]))
		}
	}
}
