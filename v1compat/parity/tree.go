package parity

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"
)

// specs are how the routes' lists are paired (decisions 5.6).
var specs = map[string]spec{
	"partner":            {},
	"clients":            {key: "id", limit: 50, most: 50, order: "created_date", sort: "created_at"},
	"users":              {key: "id", limit: 50, most: 50, order: "created_date", sort: "created_at"},
	"training":           {key: "order", limit: 50, most: 50, order: "order"},
	"phishing":           {limit: 50, most: 50, arrange: lastSentFirst},
	"collections":        {key: "id", limit: 500, most: 1000, order: "created_date"},
	"collection-members": {key: "user_infima_id", limit: 500, most: 1000},
	"policies":           {key: "id", limit: 500, most: 1000, order: "created_date"},
	"policy-users":       {key: "id", limit: 500, most: 1000},
	"exposures":          {key: "id", limit: 500, most: 1000},
	"reports":            {key: "report_id", limit: 50, most: 50, order: "created_date", arrange: backwards},
	"download-report":    {key: "report_id", limit: 20, most: 50},
	"sentemails":         {limit: 500, most: 1000, order: "-event_time", arrange: asIs},
}

// object is an object's id in both versions, as it stands in paths.
type object struct{ v1, v2 string }

// list is the list of a route, its parents in the order of v1's path. filters are the
// queries of both versions.
func (r *run) list(route string, filters object, parents ...object) *list {
	l := &list{reading: r.readings[route], spec: specs[route]}
	l.v1 = "/v1" + filled(l.reading.Path, func(o object) string { return o.v1 }, parents)
	l.v2 = "/v2" + filled(l.reading.Successor.Meta().Path, func(o object) string { return o.v2 }, parents)
	if filters.v1 != "" {
		l.v1 += "?" + filters.v1
	}
	if l.sort != "" {
		l.v2 += "?sort=" + l.sort
	}
	if filters.v2 != "" {
		separator := "?"
		if l.sort != "" {
			separator = "&"
		}
		l.v2 += separator + filters.v2
	}
	return l
}

// filled is a path with ids in the place of its parameters.
func filled(path string, id func(object) string, parents []object) string {
	segments := strings.Split(path, "/")
	n := 0
	for i, s := range segments {
		if strings.HasPrefix(s, ":") {
			segments[i] = url.PathEscape(id(parents[n]))
			n++
		}
	}
	return strings.Join(segments, "/")
}

// backwards is a list the other way round.
func backwards(objects []jsontext.Value) []jsontext.Value {
	slices.Reverse(objects)
	return objects
}

func asIs(objects []jsontext.Value) []jsontext.Value { return objects }

// lastSentFirst are the results that were sent, the latest first.
func lastSentFirst(objects []jsontext.Value) []jsontext.Value {
	type sent struct{ at, id string }
	by := map[string]sent{}
	out := slices.DeleteFunc(objects, func(o jsontext.Value) bool {
		at := memberOf(o, "sent_at")
		by[string(o)] = sent{at, memberOf(o, "result_id")}
		return at == "null" || at == ""
	})
	slices.SortFunc(out, func(a, b jsontext.Value) int {
		if c := strings.Compare(by[string(b)].at, by[string(a)].at); c != 0 {
			return c
		}
		return strings.Compare(by[string(b)].id, by[string(a)].id)
	})
	return out
}

// of is an object that a pair of rows shows, by the member of v1's item and that of
// v2's object.
func (r *run) of(v1, other row, item, member string) object {
	o := object{v1: memberOf(v1.value, item)}
	if other.raw != nil {
		o.v2 = memberOf(other.raw, member)
	}
	return o
}

// client is a client whose objects are to be compared.
type client struct {
	object
	users int
}

// tree compares everything.
func (r *run) tree(ctx context.Context) error {
	if err := r.compareList(ctx, r.list("partner", object{}), nil); err != nil {
		return err
	}
	var clients []client
	err := r.compareList(ctx, r.list("clients", object{}), func(_ context.Context, v1, other row) error {
		users := 0
		for _, name := range []string{"user_count", "inactive_user_count"} {
			n, _ := strconv.Atoi(memberOf(v1.value, name))
			users += r.most(n)
		}
		clients = append(clients, client{r.of(v1, other, "id", "id"), users})
		r.advance(0, 1+users)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.probe(ctx, clients); err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
	for _, c := range clients {
		if err := r.clientTree(ctx, group, c); err != nil {
			group.Go(func() error { return err })
			break
		}
	}
	return group.Wait()
}

// most is how many of so many objects are compared.
func (r *run) most(n int) int {
	if r.Sample > 0 {
		return min(n, r.Sample)
	}
	return n
}

// clientTree compares what a client has. The lists of users are walked here, and all
// else is done by the group.
func (r *run) clientTree(ctx context.Context, group *errgroup.Group, c client) error {
	do := func(work func(context.Context, object) error) {
		group.Go(func() error { return work(ctx, c.object) })
	}
	do(r.collections)
	do(r.policies)
	do(r.reports)
	do(func(ctx context.Context, c object) error {
		return r.compareList(ctx, r.list("exposures", object{}, c), nil)
	})
	for _, status := range []object{{"", "status=active"}, {"status=inactive", "status=inactive"}} {
		err := r.compareList(ctx, r.list("users", status, c.object), func(ctx context.Context, v1, other row) error {
			u := r.of(v1, other, "id", "id")
			group.Go(func() error { return r.user(ctx, c.object, u) })
			return nil
		})
		if err != nil {
			return err
		}
	}
	r.advance(1, 0)
	return nil
}

func (r *run) collections(ctx context.Context, c object) error {
	return r.compareList(ctx, r.list("collections", object{}, c), func(ctx context.Context, v1, other row) error {
		k := r.of(v1, other, "id", "id")
		return r.compareList(ctx, r.list("collection-members", object{}, c, k), nil)
	})
}

func (r *run) policies(ctx context.Context, c object) error {
	return r.compareList(ctx, r.list("policies", object{}, c), func(ctx context.Context, v1, other row) error {
		p := r.of(v1, other, "id", "id")
		return r.compareList(ctx, r.list("policy-users", object{}, c, p), nil)
	})
}

func (r *run) reports(ctx context.Context, c object) error {
	var all []object
	err := r.compareList(ctx, r.list("reports", object{}, c), func(_ context.Context, v1, other row) error {
		all = append(all, r.of(v1, other, "report_id", "id"))
		return nil
	})
	if err != nil {
		return err
	}
	n := r.most(len(all))
	for i := range n {
		report := all[i*(len(all)-1)/max(n-1, 1)]
		if err := r.compareList(ctx, r.list("download-report", object{}, c, report), nil); err != nil {
			return err
		}
	}
	return nil
}

// user compares what a user has.
func (r *run) user(ctx context.Context, c, u object) error {
	if err := r.compareList(ctx, r.list("training", object{}, u), nil); err != nil {
		return err
	}
	if err := r.compareList(ctx, r.phishing("", c, u), nil); err != nil {
		return err
	}
	start := r.Now().UTC().AddDate(0, 0, -emailDays).Truncate(time.Second)
	if err := r.compareList(ctx, r.emails(u, start, nil), nil); err != nil {
		return err
	}
	r.advance(1, 0)
	return nil
}

// phishing is the list of a user's simulated mails, of which v2 has the client's.
func (r *run) phishing(query string, c, u object) *list {
	l := r.list("phishing", object{v1: query}, c)
	l.v1 = "/v1" + filled(l.reading.Path, func(o object) string { return o.v1 }, []object{u})
	// With since the list has no mails that were not sent.
	l.v2 = withQuery(l.v2, "user_id", u.v2, "since", "0001-01-01T00:00:00Z")
	return l
}

// emailDays is how many days of mails v1 shows (decisions 5.13).
const emailDays = 30

// v1Types are the types of mails that v1 knows.
var v1Types = []string{"training-invite", "phishing", "phish-reminder", "certificate", "monthly-report"}

// emails is the list of the mails to a user within 30 days of a time; no types are all
// that v1 knows.
func (r *run) emails(u object, start time.Time, types []string) *list {
	from := start.Format(time.RFC3339Nano)
	filter := ""
	if len(types) == 0 {
		types = v1Types
	} else {
		filter = `,"message_types":["` + strings.Join(types, `","`) + `"]`
	}
	l := r.list("sentemails", object{}, u)
	l.body = `{"user_infima_id":"` + u.v1 + `","start_time":"` + from + `"` + filter + `}`
	l.v2 = withQuery(l.v2, "since", from, "until", start.AddDate(0, 0, emailDays).Format(time.RFC3339Nano),
		"message_types", strings.Join(types, ","))
	l.known = map[string]jsontext.Value{"user_infima_id": text(strings.ToLower(u.v1))}
	return l
}
