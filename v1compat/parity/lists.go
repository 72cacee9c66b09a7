package parity

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"partnerapi/domain"
	"partnerapi/v1compat"
	"partnerapi/v2/op"
)

// list is what one request of v1 shows. Where v2 has the same, the route's translators
// say.
type list struct {
	*v1compat.Asked
	spec
	run *run
	// sample is how many of the rows that both sides have are compared, spread evenly; 0
	// is all.
	sample int
	v1     request // without a page, but where it is exact
	// exact says that the request is for one page, which alone is compared.
	exact bool
	// status is what v1 has to answer; 0 for what v2 does.
	status int
	// of is what the list is of; zero where it is of nothing.
	of Object
}

// spec says of a route how its items are paired and ordered (decisions 5.6).
type spec struct {
	// key is the member that identifies v1's items; empty where that is their place. kind
	// is the kind of objects whose id it is; empty where it is no id.
	key, kind string
	// element is the kind of the objects in the arrays of an item; empty for none.
	element string
	// order is the member that v1's items are ordered by, with a leading minus sign where
	// the first is the latest; empty where no member shows the order.
	order string
	// arrange puts all of v2's rows into v1's order; nil where v2 has that order.
	arrange func([]row) []row
	// all are the queries with which the list is read to see all of it; none for one
	// reading without.
	all []string
	// below are the routes whose lists each of the objects has.
	below []string
}

var specs = map[string]spec{
	"partner": {element: domain.AdminKind{}.Noun()},
	"clients": {
		key: "id", kind: "client", order: "created_date",
		below: []string{"collections", "policies", "reports", "exposures", "users"},
	},
	"users": {
		key: "id", kind: "user", order: "created_date", all: []string{"", "status=inactive"},
		below: []string{"training", "phishing", "sentemails"},
	},
	"training":           {key: "order", order: "order"},
	"phishing":           {arrange: lastSentFirst},
	"collections":        {key: "id", kind: "collection", order: "created_date", below: []string{"collection-members"}},
	"collection-members": {key: "user_infima_id", kind: "user"},
	"policies":           {key: "id", kind: "policy", order: "created_date", below: []string{"policy-users"}},
	"policy-users":       {key: "id", kind: "user"},
	"exposures":          {key: "id", kind: "user"},
	"reports": {
		key: "report_id", kind: "report", order: "created_date", arrange: backwards, below: []string{"download-report"},
	},
	"download-report": {key: "report_id", kind: "report"},
	"sentemails":      {order: "-event_time"},
}

// backwards is a list the other way round.
func backwards(rows []row) []row {
	slices.Reverse(rows)
	return rows
}

// lastSentFirst are results, the latest first.
func lastSentFirst(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int {
		if c := strings.Compare(memberOf(b.raw, "sent_at"), memberOf(a.raw, "sent_at")); c != 0 {
			return c
		}
		return strings.Compare(memberOf(b.raw, "result_id"), memberOf(a.raw, "result_id"))
	})
	return rows
}

// operation is the list's name in reports.
func (l *list) operation() string { return operationOf(l.Reading) }

func operationOf(r *v1compat.Reading) string { return r.Method + " /v1" + op.Braced(r.Path) }

// list is the list of a request.
func (r *run) list(ctx context.Context, asked request) (*list, error) {
	a, err := r.Facade.Ask(asked.method, asked.path, asked.body, v1compat.Outside{
		IDs: r.ids(ctx), Client: r.clientOf(ctx), Now: r.Now(),
	})
	if err != nil {
		return nil, err
	}
	if _, read := specs[a.Reading.ID]; !read {
		return nil, v1compat.ErrNoRoute
	}
	l := &list{Asked: a, spec: specs[a.Reading.ID], run: r, v1: asked, of: Object{Kind: a.Kind, V1: a.ID}}
	if user := memberOf(jsontext.Value(asked.body), mailUser); user != "" && a.Next != "" {
		l.of = Object{Kind: "user", V1: user}
	}
	return l, nil
}

// parents are v1's ids of what a list is of, by their kinds.
type parents map[string]string

// with are the parents of what an object has.
func (p parents) with(kind, id string) parents {
	p = maps.Clone(p)
	p[kind] = id
	return p
}

// fill puts ids in the place of a path's parameters.
func (p parents) fill(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			segments[i] = url.PathEscape(p[strings.TrimSuffix(name, "_id")])
		}
	}
	return strings.Join(segments, "/")
}

// emailDays is how many days of mails v1 shows (decisions 5.13).
const emailDays = 30

// listAt is the list of a route.
func (r *run) listAt(ctx context.Context, route, query string, of parents) (*list, error) {
	reading := r.readings[route]
	asked := request{method: reading.Method, path: "/v1" + of.fill(reading.Path)}
	if query != "" {
		asked.path += "?" + query
	}
	if route == "sentemails" { // of the same days on both sides
		start := r.Now().UTC().AddDate(0, 0, -emailDays).Truncate(time.Second).Format(time.RFC3339)
		asked.body = string(valueOf(map[string]any{mailUser: of["user"], "start_time": start}))
	}
	return r.list(ctx, asked)
}

// tree compares everything.
func (r *run) tree(ctx context.Context) error {
	if _, err := r.objects(ctx, "partner", "", nil); err != nil {
		return err
	}
	clients, err := r.objects(ctx, "clients", "", parents{})
	if err != nil {
		return err
	}
	if err := r.probe(ctx, clients); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
	for _, c := range clients {
		group.Go(func() error { return r.below(ctx, "clients", c) })
	}
	return group.Wait()
}

// objects compares a list, and returns those of its objects whose own lists are to be
// compared.
func (r *run) objects(ctx context.Context, route, query string, of parents) ([]parents, error) {
	l, err := r.listAt(ctx, route, query, of)
	if err != nil {
		return nil, err
	}
	pairs, err := l.compare(ctx)
	if err != nil || len(l.below) == 0 {
		return nil, err
	}
	var all []parents
	users := 0
	for _, i := range spread(len(pairs), r.Sample) {
		shown := pairs[i][0].value
		all = append(all, of.with(l.kind, memberOf(shown, l.key)))
		for _, name := range []string{"user_count", "inactive_user_count"} {
			users += len(spread(atoi(memberOf(shown, name)), r.Sample))
		}
	}
	if route == "clients" {
		r.total = len(all) + users
	}
	return all, nil
}

// spread are at most so many places of n, spread evenly; 0 is all.
func spread(n, most int) (places []int) {
	if most == 0 {
		most = n
	}
	most = min(n, most)
	for i := range most {
		places = append(places, i*(n-1)/max(most-1, 1))
	}
	return places
}

// below compares what an object of a route has, and what those objects have.
func (r *run) below(ctx context.Context, route string, object parents) error {
	for _, child := range specs[route].below {
		queries := specs[child].all
		if len(queries) == 0 {
			queries = []string{""}
		}
		for _, query := range queries {
			objects, err := r.objects(ctx, child, query, object)
			for i := 0; i < len(objects) && err == nil; i++ {
				err = r.below(ctx, child, objects[i])
			}
			if err != nil {
				return err
			}
		}
	}
	if route == "clients" || route == "users" {
		r.advance()
	}
	return nil
}

// probe compares how both sides refuse what they are to refuse: v1's documented errors
// (decisions 5.2 to 5.5).
func (r *run) probe(ctx context.Context, clients []parents) error {
	const none, malformed = unusedNumber, "007"
	nobody := domain.UserID(unusedID).UUID()
	probes := map[int][]request{
		401: {{method: "GET", path: "/v1/partner", noKey: true}},
		400: {
			get("/v1/clients?limit=x"), get("/v1/clients?offset=-1"), get("/v1/clients?ids=x"),
			post("/v1/sentemails", `{}`), post("/v1/sentemails", `{"user_infima_id":"nobody"}`),
		},
		404: {
			get("/v1/users/nobody/training"), get("/v1/users/" + nobody + "/training"), get("/v1/users/" + nobody + "/phishing"),
			post("/v1/sentemails", `{"user_infima_id":"`+nobody+`"}`),
		},
	}
	for _, below := range specs["clients"].below {
		path := "/v1" + r.readings[below].Path
		probes[403] = append(probes[403], get(parents{"client": none}.fill(path)))
		probes[400] = append(probes[400], get(parents{"client": malformed}.fill(path)))
	}
	if len(clients) > 0 {
		in := "/v1/clients/" + clients[0]["client"]
		probes[400] = append(probes[400], get(in+"/users?status=nobody"))
		probes[404] = append(probes[404], get(in+"/collections/"+none+"/members"), get(in+"/policies/"+none+"/users"),
			get(in+"/reports/"+none))
	}
	for _, status := range slices.Sorted(maps.Keys(probes)) {
		for _, asked := range probes[status] {
			l, err := r.list(ctx, asked)
			if err != nil {
				return err
			}
			l.exact, l.status = true, status
			if _, err := l.compare(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
