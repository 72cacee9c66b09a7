package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// This file is all that the measurement knows of version 1, and goes with it.

// addV1 adds the measures of version 1.
func addV1() {
	older.migrate = func(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.DB) }
	older.mount = mountV1
	older.measures = measuresOfV1
	older.large = largeOfV1
	children["service-plain"] = serving(newPlainService)
}

func mountV1(ctx context.Context, d *db.DB, api *v2.API, edge *ginop.Edge, engine *gin.Engine, log *slog.Logger) error {
	keeper, err := retire.NewKeeper(ctx, retire.NewStore(d.DB, domain.SystemClock{}))
	if err != nil {
		return err
	}
	go keeper.Watch(ctx, log)
	used := usage.New(d.DB, domain.SystemClock{}, log)
	go used.Run(ctx)
	return mountFacade(ctx, v1compat.Config{Usage: used, Keeper: keeper}, d, api, edge, engine, log)
}

// newPlainService is the service, whose v1 knows nothing of its retirement: no links to
// successors, no use that is counted, no phases. It has a process of its own.
func newPlainService(ctx context.Context, p params) http.Handler {
	older.mount = func(ctx context.Context, d *db.DB, api *v2.API, edge *ginop.Edge, engine *gin.Engine,
		log *slog.Logger) error {
		return mountFacade(ctx, v1compat.Config{Plain: true}, d, api, edge, engine, log)
	}
	return newService(ctx, p)
}

func mountFacade(ctx context.Context, c v1compat.Config, d *db.DB, api *v2.API, edge *ginop.Edge, engine *gin.Engine,
	log *slog.Logger) error {
	c.Registry, c.Release = idmap.New(d.DB, 100_000), op.Latest
	go c.Registry.Watch(ctx, log)
	return v1compat.New(api, c).Mount(edge, engine)
}

// pageSize is the largest page of v1's lists.
const pageSize = 50

// both are the requests for the same rows in both versions.
type both struct{ v1, v2 func(i int) []byte }

// pair finds the requests of a measure.
type pair func(context.Context) both

// walker measures v1's lists, one request at a time: what counts is how long a
// caller waits.
type walker struct {
	*bench
	pages int // of the largest client's users
}

// measuresOfV1 are the measures of v1 beside v2.
func measuresOfV1(b *bench) []measure {
	w := &walker{bench: b, pages: b.data.users / pageSize}
	measures := []measure{
		{name: "v1 page of clients / v2's", bound: atMost(1.15), run: w.compare(pageSize, 2000, w.clients)},
		{name: "v1 page of users / v2's", bound: atMost(1.15), run: w.compare(pageSize, 2000, w.users)},
	}
	if nginx := findNginx(); nginx != "" {
		measures = append(measures,
			measure{name: "v1 page of clients / v2's behind nginx", bound: atMost(1), run: w.proxied(nginx, w.clients)},
			measure{name: "v1 page of users / v2's behind nginx", bound: atMost(1), run: w.proxied(nginx, w.users)})
	} else {
		fmt.Fprintln(b.progress, "v1 beside v2 behind nginx is left out: nginx is not installed")
	}

	measures = append(measures,
		measure{name: fmt.Sprintf("v1 walk of %d users / v2's by cursor", b.data.users), bound: atMost(1.3), run: w.walk,
			then: []measure{{name: "v1 walk: last page / first", bound: atMost(1.1), run: w.end}}},
		measure{name: "v1 cold jump to the middle / first page", bound: atMost(20), run: w.jump})
	for _, rows := range []int{pageSize, 10 * pageSize} {
		measures = append(measures,
			measure{name: fmt.Sprintf("v1 page of %d policy users / v2's", rows), bound: atMost(1.15), needs: b.data.papers,
				run: w.compare(rows, 100_000/(50+rows), w.policyUsers(rows))},
			measure{name: fmt.Sprintf("v1 page of %d members / v2's", rows), bound: atMost(1.15), needs: b.data.papers,
				run: w.compare(rows, 100_000/(50+rows), w.members(rows))})
	}
	for _, n := range []int{1, pageSize} {
		measures = append(measures, measure{
			name: fmt.Sprintf("v1 look-up of numbers, %d at once: plan kept / planned each time", n), run: w.lookup(n)})
	}
	mails := "v1 page of %d of a user's %d mails / v2's"
	return append(measures,
		measure{name: fmt.Sprintf(mails, mailsShown, mailsShown), bound: atMost(1.15), needs: b.data.mails,
			run: w.compare(mailsShown, 2000, w.sentMails(100))},
		// To count what follows is a statement more than v2 has.
		measure{name: fmt.Sprintf(mails, 20, mailsShown), needs: b.data.mails, run: w.compare(20, 2000, w.sentMails(20))},
		measure{name: "v1 page of clients with links, usage and phases / without", bound: atMost(1.05),
			run: w.retirement(w.clients)},
		measure{name: "v1 page of users with links, usage and phases / without", bound: atMost(1.05),
			run: w.retirement(w.users)})
}

// same are the same two requests each time.
func (w *walker) same(v1, v2 string) both { return both{always(w.get(v1)), always(w.get(v2))} }

// clients are the first pages of the clients.
func (w *walker) clients(context.Context) both {
	return w.same("/v1/clients?limit=50", "/v2/clients?limit=50&sort=created_at")
}

// users are the first pages of the largest client's users.
func (w *walker) users(ctx context.Context) both {
	return w.same(w.pathOfUsers(ctx), pathOf(w.data.clients[0], "/users?limit=50"))
}

func (w *walker) pathOfUsers(ctx context.Context) string {
	return fmt.Sprintf("/v1/clients/%d/users?limit=50&status=all", w.number(ctx, idmap.Client, w.data.clients[0].String()))
}

// policyUsers are pages of the audience of a policy, which is all active users of the
// largest client.
func (w *walker) policyUsers(rows int) pair {
	return func(ctx context.Context) both {
		found := all[domain.PolicyID](ctx, w.data, "SELECT id FROM policies WHERE client_id = $1 AND title = $2",
			w.data.clients[0], measuredPolicy+" 2")
		return ofClient(ctx, w, found, idmap.Policy, "policies", "users", rows)
	}
}

// members are pages of the members of a collection of all users of the largest client.
func (w *walker) members(rows int) pair {
	return func(ctx context.Context) both {
		found := all[domain.CollectionID](ctx, w.data, "SELECT id FROM collections WHERE client_id = $1 AND name = $2",
			w.data.clients[0], measuredCollection)
		return ofClient(ctx, w, found, idmap.Collection, "collections", "members", rows)
	}
}

// ofClient are pages of a list that belongs to an object of the largest client, the
// one that was found.
func ofClient[K domain.Kind](
	ctx context.Context, w *walker, found []domain.ID[K], kind idmap.Kind, objects, list string, rows int,
) both {
	if len(found) != 1 {
		fail("%d %s in the place of one: name another --data-dir", len(found), objects)
	}
	client := w.number(ctx, idmap.Client, w.data.clients[0].String())
	number := w.number(ctx, kind, found[0].String())
	return w.same(fmt.Sprintf("/v1/clients/%d/%s/%d/%s?limit=%d", client, objects, number, list, rows),
		pathOf(w.data.clients[0], fmt.Sprintf("/%s/%s/%s?limit=%d", objects, found[0], list, rows)))
}

// sentMails are pages of mails that were sent, each time of another user: at a limit
// of 100 all mails of the 30 days, at 20 a page that more mails follow.
func (w *walker) sentMails(limit int) pair {
	return func(ctx context.Context) both {
		readers := w.data.readers(ctx)
		user := func(i int) domain.UserID { return readers[i%len(readers)] }
		return both{
			func(i int) []byte {
				return request("POST", fmt.Sprintf("/v1/sentemails?limit=%d", limit), w.keys[0],
					object{"user_infima_id": user(i).UUID(), "start_time": mailsSince})
			},
			func(i int) []byte { return w.get(emailsPath(user(i), limit)) },
		}
	}
}

// number is what v1 knows an object by.
func (w *walker) number(ctx context.Context, kind idmap.Kind, id string) int {
	entries := must(idmap.New(w.data.db.DB, 0).Describe(ctx, kind, id))
	if len(entries) == 0 {
		fail("%s has no number", id)
	}
	return int(entries[0].Number)
}

// lookup compares look-ups of the numbers of clients, of which none are cached, with
// the same over connections that plan each statement anew.
func (w *walker) lookup(n int) finder {
	return func(ctx context.Context) figure {
		where := must(url.Parse(w.data.url))
		query := where.Query()
		query.Set("plan_cache_mode", "force_custom_plan")
		where.RawQuery = query.Encode()
		anew := must(db.Open(where.String()))
		defer anew.Close()

		times := w.times(4000)
		took := inTurns(ctx, warm(times), times,
			func(int) time.Duration { return w.lookedUp(ctx, w.data.db, n) },
			func(int) time.Duration { return w.lookedUp(ctx, anew, n) })
		return ratio(median(took[0]), median(took[1]))
	}
}

// lookedUp is how long a look-up of the numbers of n clients takes.
func (w *walker) lookedUp(ctx context.Context, d *db.DB, n int) time.Duration {
	registry := idmap.New(d.DB, 0)
	keys := make([]idmap.IDKey, n)
	for i, id := range w.data.clients[:n] {
		keys[i] = idmap.IDKey{Kind: idmap.Client, ID: idmap.UUID(id)}
	}
	begin := time.Now()
	found := must(registry.Numbers(ctx, keys))
	took := time.Since(begin)
	if len(found) != n {
		fail("%d of %d clients have a number", len(found), n)
	}
	return took
}

// compare compares pages that have so many rows and are the same in both versions.
func (w *walker) compare(rows, times int, of pair) finder {
	return func(ctx context.Context) figure {
		requests := of(ctx)
		for i := range 3 {
			w.sameRows(rows, requests.v1(i), requests.v2(i))
		}
		return w.versus(ctx, times, requests.v1, requests.v2)
	}
}

// rows is what is compared of a page of either version: by what its rows are known.
type rows struct {
	Items []row
	Data  []row
	Page  struct {
		NextCursor string `json:"next_cursor"`
	}
	Total int
}

type row struct {
	Email, Subject, Name string
	Company              string `json:"client_name"`
}

func (r row) String() string { return cmp.Or(r.Email, r.Name, r.Company, r.Subject) }

// sameRows wants pages of both versions to have n rows, and the same.
func (w *walker) sameRows(n int, v1, v2 []byte) {
	a, b := ask[rows](w.service.address, v1), ask[rows](w.service.address, v2)
	if len(a.Items) != n || len(b.Data) != n {
		fail("v1 shows %d rows, v2 %d, and not %d", len(a.Items), len(b.Data), n)
	}
	for i := range a.Items {
		if a.Items[i].String() != b.Data[i].String() {
			fail("row %d is another in v1 than in v2", i)
		}
	}
}

// walk walks through all users of the largest client in both versions, page by page in
// turns, a few times over. Each page of a walk counts with its quickest time: what else
// the machine did then is not the walk's.
func (w *walker) walk(ctx context.Context) figure {
	path, to := w.pathOfUsers(ctx), w.service.address
	cursors := make([]string, w.pages)
	for i := range cursors {
		a, b := ask[rows](to, w.offset(path, i, 0)), ask[rows](to, w.cursor(cursors[i]))
		// Data that are used again have the users of an earlier run's writes too.
		if len(a.Items) != pageSize || a.Total < w.data.users || a.Items[pageSize-1].Email != b.Data[pageSize-1].Email {
			fail("at page %d the walks part", i)
		}
		if i+1 < w.pages {
			cursors[i+1] = "&cursor=" + b.Page.NextCursor
		}
	}

	const walks = 3
	took := timed(ctx, 0, walks*w.pages,
		lane{to: to, next: func(i int) []byte { return w.offset(path, i%w.pages, 0) }},
		lane{to: to, next: func(i int) []byte { return w.cursor(cursors[i%w.pages]) }})
	return ratio(w.quickest(took[0]), w.quickest(took[1]))
}

// quickest is the time of a walk whose pages are the quickest of some walks.
func (w *walker) quickest(took []time.Duration) (sum time.Duration) {
	least := took[:w.pages]
	for walk := range slices.Chunk(took[w.pages:], w.pages) {
		for i, t := range walk {
			least[i] = min(least[i], t)
		}
	}
	for _, t := range least {
		sum += t
	}
	return sum
}

// offset is the request for a page of the largest client's users, with one of the
// keys, and cursor that of v2 for the page behind a cursor.
func (w *walker) offset(path string, page, key int) []byte {
	return request("GET", fmt.Sprintf("%s&offset=%d", path, page*pageSize), w.keys[key], nil)
}

func (w *walker) cursor(cursor string) []byte {
	return w.get(pathOf(w.data.clients[0], "/users?limit=50"+cursor))
}

// end compares a walk's last page with a first one. The first pages are another key's:
// a walk that begins anew forgets where the pages of the one before ended.
func (w *walker) end(ctx context.Context) figure {
	path := w.pathOfUsers(ctx)
	return w.versus(ctx, 1000, always(w.offset(path, w.pages-1, 0)), always(w.offset(path, 0, 1)))
}

// jump jumps to where no walk has been before: each time to another place
// around the middle, with a key that has not walked there.
func (w *walker) jump(ctx context.Context) figure {
	path := w.pathOfUsers(ctx)
	cold := func(i int) []byte {
		return request("GET", fmt.Sprintf("%s&offset=%d", path, w.data.users/2+7*i), w.keys[2], nil)
	}
	return w.versus(ctx, 150, cold, always(w.offset(path, 0, 1)))
}

// largeOfV1 are the first, the middle and the last page of a walk over each list that
// grows with the number of users, and a jump in the larger database beside a first page.
func largeOfV1(s *sizes) (measures []measure) {
	papers := s.both(func(ctx context.Context, d *data) { d.papers(ctx) })
	for _, l := range []struct {
		name  string
		of    func(*walker) pair
		needs func(context.Context)
	}{
		{"/v1/clients", func(w *walker) pair { return w.clients }, s.both(fresh)},
		{"/v1/clients/{id}/users", func(w *walker) pair { return w.users }, nil},
		{"/v1 members of a collection of all users", func(w *walker) pair { return w.members(pageRows) }, papers},
		{"/v1 users of a policy for all users", func(w *walker) pair { return w.policyUsers(pageRows) }, papers},
		{"/v1/clients/{id}/darkweb/exposures", func(w *walker) pair { return w.exposures }, nil},
	} {
		for i, place := range []string{"first", "middle", "last"} {
			measures = append(measures, measure{name: fmt.Sprintf("%s: %s page of a walk", l.name, place), needs: l.needs,
				bound: atMost(pagesBar), run: s.compare(300, func(ctx context.Context, b *bench) func(int) []byte {
					w := &walker{bench: b}
					return always(w.at(l.of(w)(ctx).v1(0), i))
				})})
		}
	}
	w := &walker{bench: s.large, pages: s.large.data.users / pageSize}
	return append(measures, measure{name: fmt.Sprintf("v1 cold jump to the end of %d users / first page", s.large.data.users),
		bound: atMost(100), run: w.jumpToEnd}) // 0.1 µs for each row that is skipped
}

// exposures are the first pages of the users whose data were found in breaches.
func (w *walker) exposures(ctx context.Context) both {
	return w.same(fmt.Sprintf("/v1/clients/%d/darkweb/exposures?limit=50", w.number(ctx, idmap.Client, w.data.clients[0].String())),
		pathOf(w.data.clients[0], "/dark-web/users?limit=50"))
}

// at is the request for a list's first (0), middle (1) or last (2) page, given that for
// the first. The page before it was read, as on a walk. The first pages are another key's.
func (w *walker) at(first []byte, place int) []byte {
	path := strings.Fields(string(first))[1]
	if place == 0 {
		return request("GET", path, w.keys[1], nil)
	}
	total := ask[rows](w.service.address, w.get(path)).Total
	offset := total - pageSize
	if place == 1 {
		offset = total / 2
	}
	ask[rows](w.service.address, w.get(fmt.Sprintf("%s&offset=%d", path, offset-pageSize)))
	return w.get(fmt.Sprintf("%s&offset=%d", path, offset))
}

// jumpToEnd jumps to where no walk has been before, near the end of the largest client's
// users.
func (w *walker) jumpToEnd(ctx context.Context) figure {
	path := w.pathOfUsers(ctx)
	cold := func(i int) []byte {
		return request("GET", fmt.Sprintf("%s&offset=%d", path, w.data.users-pageSize-7*i), w.keys[2], nil)
	}
	return w.versus(ctx, 150, cold, always(w.offset(path, 0, 1)))
}

// retirement compares v1's first pages with those of a v1 that knows nothing of its
// retirement.
func (w *walker) retirement(of pair) finder {
	return w.beside("service-plain", func(ctx context.Context, plain *child) figure {
		next := of(ctx).v1
		return compared(ctx, w.times(4000), lane{to: w.service.address, next: next}, lane{to: plain.address, next: next})
	})
}

// nginxConfig makes an nginx that does nothing but hand requests on, over
// connections that it keeps.
const nginxConfig = `
daemon off; worker_processes 1; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 256; }
http {
	access_log off; keepalive_requests 1000000;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	upstream service { server %[3]s; keepalive 16; keepalive_requests 1000000; }
	server {
		listen %[2]s;
		location / { proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}
`

// findNginx finds the program; it is not installed where the path is empty.
func findNginx() string {
	for _, name := range []string{"nginx", "/usr/sbin/nginx"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// proxied compares v1's pages with v2's behind an nginx that only hands requests on:
// what the translation costs beside a hop that does nothing.
func (w *walker) proxied(program string, of pair) finder {
	return func(ctx context.Context) figure {
		requests := of(ctx)
		free := must(net.Listen("tcp", "127.0.0.1:0"))
		address := free.Addr().String()
		check(free.Close())
		dir := must(os.MkdirTemp(w.folder, "nginx"))
		config := filepath.Join(dir, "nginx.conf")
		check(os.WriteFile(config, fmt.Appendf(nil, nginxConfig, dir, address, w.service.address), 0o600))
		nginx := exec.Command(program, "-p", dir, "-c", config, "-e", filepath.Join(dir, "error.log"))
		check(nginx.Start())
		defer func() {
			_ = nginx.Process.Signal(os.Interrupt)
			_ = nginx.Wait() // it says how it was ended
		}()
		listens(address)
		return compared(ctx, w.times(2000), lane{to: w.service.address, next: requests.v1},
			lane{to: address, next: requests.v2})
	}
}

// listens waits until a server listens at an address.
func listens(address string) {
	for try := 1; ; try++ {
		c, err := net.Dial("tcp", address)
		if err == nil {
			check(c.Close())
			return
		}
		if try == 200 {
			fail("wait for nginx: %w", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
