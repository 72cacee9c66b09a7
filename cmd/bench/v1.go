package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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

// Its functions have to be in place before main runs, by a file that may not
// be there: the one thing that init is for.
func init() {
	older.migrate = func(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.SQL()) }
	older.mount = mountV1
	older.measure = measureV1
	children["serve-plain"] = serving(newPlainService)
}

func mountV1(ctx context.Context, d *db.DB, api *v2.API, edge *ginop.Edge, engine *gin.Engine, log *slog.Logger) error {
	keeper, err := retire.Keep(ctx, retire.NewStore(d.SQL(), nil))
	if err != nil {
		return err
	}
	go keeper.Watch(ctx, log)
	used := usage.New(d.SQL(), domain.SystemClock{}, log)
	go func() {
		tick := time.NewTicker(usage.Every)
		defer tick.Stop()
		used.Run(ctx, tick.C)
	}()
	return mountFacade(ctx, v1compat.Config{Usage: used, Lifecycle: keeper.State}, d, api, edge, engine, log)
}

// newPlainService is the service, whose v1 knows nothing of its retirement: no links to
// successors, no use that is counted, no phases. It has a process of its own.
func newPlainService(ctx context.Context) (http.Handler, error) {
	older.mount = func(ctx context.Context, d *db.DB, api *v2.API, edge *ginop.Edge, engine *gin.Engine, log *slog.Logger) error {
		return mountFacade(ctx, v1compat.Config{Plain: true}, d, api, edge, engine, log)
	}
	return newService(ctx)
}

func mountFacade(ctx context.Context, c v1compat.Config, d *db.DB, api *v2.API, edge *ginop.Edge, engine *gin.Engine,
	log *slog.Logger) error {
	c.Registry, c.Release = idmap.New(d.SQL(), 100_000), op.Latest
	go c.Registry.Watch(ctx, log)
	return v1compat.New(api, c).Mount(edge, engine)
}

// pageSize is the largest page of v1's lists.
const pageSize = 50

// lists are the paths of the same rows in both versions.
type lists struct{ v1, v2 string }

func measureV1(ctx context.Context, b *bench) ([]result, error) {
	largest := b.data.clients[0]
	number, err := b.number(ctx, idmap.Client, largest.String())
	if err != nil {
		return nil, err
	}
	clients := lists{"/v1/clients?limit=50", "/v2/clients?limit=50&sort=created_at"}
	users := lists{
		fmt.Sprintf("/v1/clients/%d/users?limit=50&status=all", number),
		fmt.Sprintf("/v2/clients/%s/users?limit=50", largest),
	}
	c, err := dial(b.service.said)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	w := &walker{bench: b, connection: c, users: users}
	return b.perform(ctx, []measure{
		{"v1 page of clients", nil, func(ctx context.Context) ([]result,
			error) {
			return w.page(ctx, "v1 page of clients / v2's", clients)
		}},
		{"v1 page of users", nil, func(ctx context.Context) ([]result,
			error) {
			return w.page(ctx, "v1 page of users / v2's", users)
		}},
		{"v1 pages behind a proxy", nil, func(ctx context.Context) ([]result,
			error) {
			return w.proxied(ctx, clients, users)
		}},
		{"v1 walk by offset", nil, w.walk},
		{"v1 cold jump", nil, w.jump},
		{"v1 pages of policy users", b.data.papers, w.policyUsers},
		{"v1 pages of members", b.data.papers, w.members},
		{"v1 sent mails", b.data.mails, w.sentMails},
		{"v1 retirement", nil, func(ctx context.Context) ([]result, error) {
			return b.retirement(ctx, clients, users)
		}},
	})
}

// retirement compares v1's first pages with those of a v1 that knows nothing of its
// retirement.
func (b *bench) retirement(ctx context.Context, of ...lists) (results []result, err error) {
	plain, err := start("serve-plain", b.progress, envURL+"="+b.data.url, envPartner+"="+b.data.partner.UUID())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plain.stop()) }()
	for i, name := range []string{"clients", "users"} {
		took, err := b.alternately(ctx, b.times(4000), func(int, int) []byte { return request(of[i].v1, b.keys[0]) }, b.service, plain)
		if err != nil {
			return nil, err
		}
		results = append(results,
			ratio("v1 page of "+name+" with links, usage and phases / without", took[0], took[1], 1.05))
	}
	return results, nil
}

// number is what v1 knows an object by.
func (b *bench) number(ctx context.Context, kind idmap.Kind, id string) (int, error) {
	entries, err := idmap.New(b.data.db.SQL(), 0).Describe(ctx, kind, id)
	if err != nil || len(entries) == 0 {
		return 0, errors.Join(err, fmt.Errorf("%s has no number", id))
	}
	return int(entries[0].Number), nil
}

// walker measures v1's lists, one request at a time: what counts is how long a
// caller waits.
type walker struct {
	*bench
	connection *connection
	users      lists
}

// page compares the first pages of a list.
func (w *walker) page(ctx context.Context, name string, of lists) ([]result, error) {
	v1, v2 := request(of.v1, w.keys[0]), request(of.v2, w.keys[0])
	return w.pages(ctx, name, pageSize, 2000, always(v1), always(v2))
}

// proxied compares v1's first pages with v2's behind an nginx that only hands
// requests on: what the translation costs beside a hop that does nothing.
func (w *walker) proxied(ctx context.Context, of ...lists) ([]result, error) {
	address, stop, err := proxied(w.service.said)
	if err != nil {
		return nil, err
	}
	if address == "" {
		fmt.Fprintln(w.progress, "  left out: nginx is not installed")
		return nil, nil
	}
	defer func() { _ = stop() }()
	hop, err := dial(address)
	if err != nil {
		return nil, err
	}
	defer hop.Close()
	var results []result
	for i, name := range []string{"clients", "users"} {
		v1, v2 := request(of[i].v1, w.keys[0]), request(of[i].v2, w.keys[0])
		var direct, proxied []time.Duration
		for range w.times(2000) {
			a, err := w.connection.timed(v1)
			if err != nil {
				return nil, err
			}
			b, err := hop.timed(v2)
			if err != nil {
				return nil, err
			}
			direct, proxied = append(direct, a), append(proxied, b)
		}
		results = append(results, ratio("v1 page of "+name+" / v2's behind nginx", median(direct), median(proxied), 1))
	}
	return results, ctx.Err()
}

// pages compares pages of so many rows, that are the same in both versions.
func (w *walker) pages(ctx context.Context, name string, rows, times int, v1, v2 func(i int) []byte) ([]result, error) {
	for i := range 3 {
		if n, err := w.rows(v1(i), v2(i)); err != nil || n != rows {
			return nil, errors.Join(err, fmt.Errorf("the pages have %d rows and not %d", n, rows))
		}
	}
	a, b, err := pair(ctx, w.connection, w.times(times), v1, v2)
	return []result{ratio(name, a, b, 1.15)}, err
}

// policyUsers compares pages of the audience of a policy, which is all active
// users of the largest client.
func (w *walker) policyUsers(ctx context.Context) ([]result, error) {
	policy, err := w.measuredPolicy(ctx)
	if err != nil {
		return nil, err
	}
	return w.ofClient(ctx, "policy users", idmap.Policy, "policies", policy.String(), "users")
}

// members compares pages of the members of a collection of all users of the
// largest client.
func (w *walker) members(ctx context.Context) ([]result, error) {
	collection, err := w.measuredCollection(ctx)
	if err != nil {
		return nil, err
	}
	return w.ofClient(ctx, "members", idmap.Collection, "collections", collection.String(), "members")
}

// measuredPolicy finds the policy for all that is measured, and
// measuredCollection the collection.
func (w *walker) measuredPolicy(ctx context.Context) (domain.PolicyID, error) {
	return one(ids[domain.PolicyKind](ctx, w.data, "SELECT id::text FROM policies WHERE client_id = $1 AND title = $2",
		w.data.clients[0].UUID(), measuredPolicy+" 2"))
}

func (w *walker) measuredCollection(ctx context.Context) (domain.CollectionID, error) {
	return one(ids[domain.CollectionKind](ctx, w.data,
		"SELECT id::text FROM collections WHERE client_id = $1 AND name = $2",
		w.data.clients[0].UUID(), measuredCollection))
}

func one[T any](all []T, err error) (first T, _ error) {
	if err != nil || len(all) != 1 {
		return first, errors.Join(err, fmt.Errorf("%d in the place of one: name another --data-dir", len(all)))
	}
	return all[0], nil
}

// ofClient compares first pages, short and long ones, of a list that belongs to
// an object of the largest client.
func (w *walker) ofClient(ctx context.Context, what string, kind idmap.Kind, objects, id,
	list string) (results []result, err error) {
	client, err := w.number(ctx, idmap.Client, w.data.clients[0].String())
	if err != nil {
		return nil, err
	}
	number, err := w.number(ctx, kind, id)
	if err != nil {
		return nil, err
	}
	for _, rows := range []int{pageSize, 10 * pageSize} {
		v1 := request(fmt.Sprintf("/v1/clients/%d/%s/%d/%s?limit=%d", client, objects, number, list, rows), w.keys[0])
		v2 := request(fmt.Sprintf("/v2/clients/%s/%s/%s/%s?limit=%d", w.data.clients[0], objects, id, list, rows), w.keys[0])
		got, err := w.pages(ctx, fmt.Sprintf("v1 page of %d %s / v2's", rows, what), rows, 100_000/(50+rows), always(v1),
			always(v2))
		if err != nil {
			return nil, err
		}
		results = append(results, got...)
	}
	return results, nil
}

// sentMails compares the pages of mails that were sent, each time of another
// user: a page as usual, which holds all mails of the 30 days, and one that
// more mails follow.
func (w *walker) sentMails(ctx context.Context) (results []result, err error) {
	readers, err := w.data.readers(ctx)
	if err != nil {
		return nil, err
	}
	for _, limit := range []int{100, 20} {
		v1 := func(i int) []byte {
			return post(fmt.Sprintf("/v1/sentemails?limit=%d", limit), w.keys[0],
				fmt.Appendf(nil, `{"user_infima_id":%q,"start_time":%q}`, readers[i%len(readers)].UUID(), mailsSince))
		}
		v2 := func(i int) []byte { return request(emailsPath(readers[i%len(readers)], limit), w.keys[0]) }
		rows := min(limit, mailsShown)
		got, err := w.pages(ctx, fmt.Sprintf("v1 page of %d of a user's %d mails / v2's", rows, mailsShown), rows, 2000, v1,
			v2)
		if err != nil {
			return nil, err
		}
		if rows < mailsShown {
			got[0].bar = 0 // to count what follows is a statement more than v2 has
		}
		results = append(results, got...)
	}
	return results, nil
}

// pair times two requests in turns, so many times each, on one connection, and
// returns their median times.
func pair(ctx context.Context, c *connection, times int, a, b func(i int) []byte) (time.Duration, time.Duration,
	error) {
	var as, bs []time.Duration
	for i := range times {
		for k := range 2 {
			next, to := a, &as
			if (i+k)%2 == 1 {
				next, to = b, &bs
			}
			took, err := c.timed(next(i))
			if err != nil {
				return 0, 0, err
			}
			*to = append(*to, took)
		}
		if ctx.Err() != nil {
			return 0, 0, ctx.Err()
		}
	}
	return median(as), median(bs), nil
}

// answer is what the measures read of a page of either version.
type answer struct {
	Items []struct {
		Email, Subject string
		Name           string `json:"client_name"`
	}
	Data []struct{ Email, Subject, Name string }
	Page struct {
		NextCursor *string `json:"next_cursor"`
	}
	Total int
}

// fetch sends a request, returns its answer and adds the time to spent.
func (w *walker) fetch(request []byte, spent *time.Duration) (a answer, err error) {
	var body bytes.Buffer
	begin := time.Now()
	if err := w.connection.send(request, &body); err != nil {
		return a, err
	}
	*spent += time.Since(begin)
	return a, json.Unmarshal(body.Bytes(), &a)
}

// rows is how many rows both pages have, and they must be the same.
func (w *walker) rows(v1, v2 []byte) (int, error) {
	var spent time.Duration
	a, err := w.fetch(v1, &spent)
	if err != nil {
		return 0, err
	}
	b, err := w.fetch(v2, &spent)
	if err != nil {
		return 0, err
	}
	if len(a.Items) != len(b.Data) {
		return 0, fmt.Errorf("v1 shows %d rows and v2 %d", len(a.Items), len(b.Data))
	}
	for i := range a.Items {
		shown, same := a.Items[i], b.Data[i]
		if cmp.Or(shown.Email, shown.Name, shown.Subject) != cmp.Or(same.Email, same.Name, same.Subject) {
			return 0, fmt.Errorf("row %d is another in v1 than in v2", i)
		}
	}
	return len(a.Items), nil
}

// offset is the request for a page of the largest client's users.
func (w *walker) offset(n int, key string) []byte {
	return request(fmt.Sprintf("%s&offset=%d", w.users.v1, n), key)
}

// walk walks through all users of the largest client in both versions, page by
// page in turns, a few times over, and then compares a walk's last page with a
// first one. Each page of a walk counts with its quickest time: what else the
// machine did then is not the walk's.
func (w *walker) walk(ctx context.Context) ([]result, error) {
	pages := w.data.users / pageSize
	byOffset, byCursor := make([]time.Duration, pages), make([]time.Duration, pages)
	for range 3 {
		if err := w.once(ctx, byOffset, byCursor); err != nil {
			return nil, err
		}
	}
	// The first pages are another key's: a walk that begins anew forgets where
	// the pages of the one before ended.
	last := w.offset((pages-1)*pageSize, w.keys[0])
	end, first, err := pair(ctx, w.connection, w.times(1000), always(last), always(w.offset(0, w.keys[1])))
	return []result{
		ratio("v1 walk: last page / first", end, first, 1.1),
		ratio(fmt.Sprintf("v1 walk of %d users / v2's by cursor", w.data.users), sum(byOffset), sum(byCursor), 1.3),
	}, err
}

// once walks once, and keeps the times of the pages that were quicker than
// before.
func (w *walker) once(ctx context.Context, byOffset, byCursor []time.Duration) error {
	cursor := ""
	for i := range byOffset {
		var a, b time.Duration
		page, err := w.fetch(w.offset(i*pageSize, w.keys[0]), &a)
		if err != nil {
			return err
		}
		next, err := w.fetch(request(w.users.v2+cursor, w.keys[0]), &b)
		if err != nil {
			return err
		}
		if len(page.Items) != pageSize || page.Total != w.data.users ||
			page.Items[pageSize-1].Email != next.Data[pageSize-1].Email {
			return fmt.Errorf("at offset %d the walks part", i*pageSize)
		}
		if next.Page.NextCursor != nil {
			cursor = "&cursor=" + *next.Page.NextCursor
		}
		keepLess(&byOffset[i], a)
		keepLess(&byCursor[i], b)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

func keepLess(kept *time.Duration, took time.Duration) {
	if *kept == 0 || took < *kept {
		*kept = took
	}
}

func sum(times []time.Duration) (total time.Duration) {
	for _, t := range times {
		total += t
	}
	return total
}

// jump jumps to where no walk has been before: each time to another place
// around the middle, with a key that has not walked there.
func (w *walker) jump(ctx context.Context) ([]result, error) {
	middle := w.data.users / 2
	cold := func(i int) []byte { return w.offset(middle+7*i, w.keys[2]) }
	jumped, first, err := pair(ctx, w.connection, w.times(150), cold, always(w.offset(0, w.keys[1])))
	return []result{ratio("v1 cold jump to the middle / first page", jumped, first, 20)}, err
}
