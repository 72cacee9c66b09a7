package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v1compat"
	v2 "partnerapi/v2"
	"partnerapi/v2/op/ginop"
)

// This file is all that the measurement knows of version 1, and goes with it.

// Its functions have to be in place before main runs, by a file that may not
// be there: the one thing that init is for.
func init() {
	older.migrate = func(ctx context.Context, d *db.DB) error { return idmap.Migrate(ctx, d.SQL()) }
	older.mount = mountV1
	older.measure = measureV1
}

func mountV1(ctx context.Context, d *db.DB, api *v2.API, edge *ginop.Edge, engine *gin.Engine, log *slog.Logger) error {
	registry := idmap.New(d.SQL(), 100_000)
	go registry.Watch(ctx, log)
	return v1compat.New(api, registry, nil, domain.SystemClock{}).Mount(edge, engine)
}

// pageSize is the largest page of v1's lists.
const pageSize = 50

// lists are the paths of the same rows in both versions.
type lists struct{ v1, v2 string }

func measureV1(ctx context.Context, b *bench) ([]result, error) {
	largest := b.data.clients[0]
	entries, err := idmap.New(b.data.db.SQL(), 0).Describe(ctx, idmap.Client, largest.String())
	if err != nil || len(entries) == 0 {
		return nil, errors.Join(err, errors.New("the largest client has no number"))
	}
	clients := lists{"/v1/clients?limit=50", "/v2/clients?limit=50&sort=created_at"}
	users := lists{
		fmt.Sprintf("/v1/clients/%d/users?limit=50&status=all", entries[0].Number),
		fmt.Sprintf("/v2/clients/%s/users?limit=50", largest),
	}
	c, err := dial(b.service.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	w := &walker{bench: b, connection: c, users: users}
	var results []result
	for _, m := range []struct {
		name    string
		measure func(context.Context) ([]result, error)
	}{
		{"v1 page of clients", func(ctx context.Context) ([]result, error) { return w.page(ctx, "v1 page of clients / v2's", clients) }},
		{"v1 page of users", func(ctx context.Context) ([]result, error) { return w.page(ctx, "v1 page of users / v2's", users) }},
		{"v1 walk by offset", w.walk},
		{"v1 cold jump", w.jump},
	} {
		end, wanted := b.begin(m.name)
		if !wanted {
			continue
		}
		got, err := m.measure(ctx)
		if err := errors.Join(err, end()); err != nil {
			return nil, fmt.Errorf("%s: %w", m.name, err)
		}
		results = append(results, got...)
	}
	return results, nil
}

// walker measures v1's lists, one request at a time: what counts is how long a
// caller waits.
type walker struct {
	*bench
	connection *connection
	users      lists
}

// times is how often a page is timed.
func (w *walker) times(n int) int {
	if w.quick {
		return n / 5
	}
	return n
}

// page compares the first pages of a list.
func (w *walker) page(ctx context.Context, name string, of lists) ([]result, error) {
	v1, v2 := request(of.v1, w.keys[0]), request(of.v2, w.keys[0])
	if rows, err := w.rows(v1, v2); err != nil || rows != pageSize {
		return nil, errors.Join(err, fmt.Errorf("the pages have %d rows", rows))
	}
	a, b, err := pair(ctx, w.connection, w.times(2000), always(v1), always(v2))
	return []result{ratio(name, a, b, 1.15)}, err
}

func ratio(name string, a, b time.Duration, bar float64) result {
	return result{name: name, ours: took(a), reference: took(b), value: float64(a) / float64(b), bar: bar}
}

// answer is what the measures read of a page of either version.
type answer struct {
	Items []struct {
		Email string
		Name  string `json:"client_name"`
	}
	Data []struct {
		Email string
		Name  string
	}
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
		if a.Items[i].Email != b.Data[i].Email || a.Items[i].Name != b.Data[i].Name {
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
		if len(page.Items) != pageSize || page.Total != w.data.users || page.Items[pageSize-1].Email != next.Data[pageSize-1].Email {
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
