package parity

import (
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"partnerapi/v1compat"
	"partnerapi/v2/op"
)

// list is what one route of v1 shows of one parent, and where v2 has the same.
type list struct {
	*v1compat.Reading
	spec
	// v1 and v2 are the paths, with queries that have filters only.
	v1, v2 string
	// exact is the one page of v1 that is asked for; nil for all.
	exact *exactPage
	// of is what the list is of; zero where it is of nothing.
	of Object
	// body is that of v1's request, where it has one.
	body string
	// known are members of v1's items that v2 has in the request in their place.
	known map[string]jsontext.Value
}

// exactPage is a page of v1 as it was asked for once.
type exactPage struct {
	path          string
	limit, offset int // that the path asks for
}

// spec says of a route how its items are paired and ordered (decisions 5.6).
type spec struct {
	// key is the member that identifies v1's items; empty where that is
	// their place.
	key string
	// kind is the kind of objects whose id the key is; empty where it is no id.
	kind string
	// limit is the page that is asked for, and most what v1 moves higher ones to.
	limit, most int
	// order is the member that v1's items are ordered by, with a leading minus sign where
	// the first is the latest; empty where no member shows the order.
	order string
	// sort is v2's query for v1's order.
	sort string
	// arrange puts all of v2's rows into v1's order; nil where v2 has that order.
	arrange func([]row) []row
	// filters are the queries with which the list is read to see all of it, each as v1
	// and as v2 have it; none for one reading without.
	filters []object
	// below are the routes whose lists each of the objects has.
	below []string
}

var specs = map[string]spec{
	"partner": {},
	"clients": {
		key: "id", kind: "client", limit: 50, most: 50, order: "created_date", sort: "created_at",
		below: []string{"collections", "policies", "reports", "exposures", "users"},
	},
	"users": {
		key: "id", kind: "user", limit: 50, most: 50, order: "created_date", sort: "created_at",
		filters: []object{{"", "status=active"}, {"status=inactive", "status=inactive"}},
		below:   []string{"training", "phishing", "sentemails"},
	},
	"training": {key: "order", limit: 50, most: 50, order: "order"},
	"phishing": {limit: 50, most: 50, arrange: lastSentFirst},
	"collections": {
		key: "id", kind: "collection", limit: 500, most: 1000, order: "created_date", below: []string{"collection-members"},
	},
	"collection-members": {key: "user_infima_id", kind: "user", limit: 500, most: 1000},
	"policies": {
		key: "id", kind: "policy", limit: 500, most: 1000, order: "created_date", below: []string{"policy-users"},
	},
	"policy-users": {key: "id", kind: "user", limit: 500, most: 1000},
	"exposures":    {key: "id", kind: "user", limit: 500, most: 1000},
	"reports": {
		key: "report_id", kind: "report", limit: 50, most: 50, order: "created_date", arrange: backwards,
		below: []string{"download-report"},
	},
	"download-report": {key: "report_id", kind: "report", limit: 20, most: 50},
	"sentemails":      {limit: 500, most: 1000, order: "-event_time", arrange: asIs},
}

// operation is the list's name in reports.
func (l *list) operation() string { return operationOf(l.Reading) }

func operationOf(r *v1compat.Reading) string {
	return r.Method + " /v1" + op.Braced(r.Path)
}

// object is an object's id in both versions, as it stands in paths.
type object struct{ v1, v2 string }

// parents are what a list is of, by their kinds.
type parents map[string]object

// with are the parents of what an object has.
func (p parents) with(kind string, o object) parents {
	p = maps.Clone(p)
	p[kind] = o
	return p
}

// list is the list of a route. filters are the queries of both versions.
func (r *run) list(route string, filters object, of parents) *list {
	l := &list{Reading: r.readings[route], spec: specs[route]}
	l.v1 = "/v1" + filled(l.Path, func(kind string) string { return of[kind].v1 })
	l.v2 = "/v2" + filled(l.Successor.Meta().Path, func(kind string) string { return of[kind].v2 })
	if kinds := kindsIn(l.Path); len(kinds) > 0 {
		l.isOf(kinds[len(kinds)-1], of)
	}
	if filters.v1 != "" {
		l.v1 += "?" + filters.v1
	}
	if l.sort != "" {
		l.v2 = withQuery(l.v2, "sort", l.sort)
	}
	if filters.v2 != "" {
		l.v2 += separator(l.v2) + filters.v2
	}
	switch route {
	case "phishing": // with since the list has no mails that were not sent
		l.v2 = withQuery(l.v2, "user_id", of["user"].v2, "since", "0001-01-01T00:00:00Z")
	case "sentemails":
		l.isOf("user", of)
		l.mails(r.Now().UTC().AddDate(0, 0, -emailDays).Truncate(time.Second), nil)
	}
	return l
}

func (l *list) isOf(kind string, of parents) { l.of = Object{kind, of[kind].v1, of[kind].v2} }

// emailDays is how many days of mails v1 shows (decisions 5.13).
const emailDays = 30

// v1Types are the types of mails that v1 knows.
var v1Types = []string{"training-invite", "phishing", "phish-reminder", "certificate", "monthly-report"}

// mails makes the list that of the mails within 30 days of a time; no types are all that
// v1 knows.
func (l *list) mails(start time.Time, types []string) {
	from := start.Format(time.RFC3339Nano)
	filter := ""
	if len(types) == 0 {
		types = v1Types
	} else {
		filter = `,"message_types":["` + strings.Join(types, `","`) + `"]`
	}
	l.body = `{"user_infima_id":"` + l.of.V1 + `","start_time":"` + from + `"` + filter + `}`
	path, _, _ := strings.Cut(l.v2, "?")
	l.v2 = withQuery(path, "since", from, "until", start.AddDate(0, 0, emailDays).Format(time.RFC3339Nano),
		"message_types", strings.Join(types, ","))
	l.known = map[string]jsontext.Value{"user_infima_id": text(strings.ToLower(l.of.V1))}
}

// filled is a path with ids in the place of its parameters.
func filled(path string, id func(kind string) string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			segments[i] = url.PathEscape(id(strings.TrimSuffix(name, "_id")))
		}
	}
	return strings.Join(segments, "/")
}

// kindsIn are the kinds of the objects that the parameters of a path name.
func kindsIn(path string) (kinds []string) {
	for s := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(s, ":"); ok {
			kinds = append(kinds, strings.TrimSuffix(name, "_id"))
		}
	}
	return kinds
}

// withQuery adds parameters to a path, which may have some.
func withQuery(path string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return path + separator(path) + values.Encode()
}

// separator stands between a path and the next parameter.
func separator(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}

// backwards is a list the other way round.
func backwards(rows []row) []row {
	slices.Reverse(rows)
	return rows
}

func asIs(rows []row) []row { return rows }

// lastSentFirst are the results that were sent, the latest first.
func lastSentFirst(rows []row) []row {
	rows = slices.DeleteFunc(rows, func(r row) bool {
		at := memberOf(r.raw, "sent_at")
		return at == "null" || at == ""
	})
	slices.SortFunc(rows, func(a, b row) int {
		if c := strings.Compare(memberOf(b.raw, "sent_at"), memberOf(a.raw, "sent_at")); c != 0 {
			return c
		}
		return strings.Compare(memberOf(b.raw, "result_id"), memberOf(a.raw, "result_id"))
	})
	return rows
}

// tree compares everything.
func (r *run) tree(ctx context.Context) error {
	if _, err := r.compareList(ctx, r.list("partner", object{}, nil)); err != nil {
		return err
	}
	clients, err := r.objects(ctx, "clients", object{}, parents{})
	if err != nil {
		return err
	}
	if err := r.probe(ctx, clients); err != nil {
		return err
	}
	r.total = len(clients)
	for _, c := range clients {
		r.total += c.users
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
	err = r.below(ctx, group, "clients", clients)
	if waited := group.Wait(); err == nil {
		err = waited
	}
	return err
}

// entry is an object that both sides show, with what it is of.
type entry struct {
	parents
	users int // of a client, that are to be compared
}

// objects compares a list, and returns the objects that both sides show.
func (r *run) objects(ctx context.Context, route string, filters object, of parents) ([]entry, error) {
	l := r.list(route, filters, of)
	pairs, err := r.compareList(ctx, l)
	if err != nil || len(l.below) == 0 {
		return nil, err
	}
	var all []entry
	n := r.most(len(pairs))
	for i := range n {
		pair := pairs[i*(len(pairs)-1)/max(n-1, 1)]
		o := object{v1: memberOf(pair[0].value, l.key)}
		if pair[1].raw != nil {
			o.v2 = memberOf(pair[1].raw, "id")
		}
		s := entry{parents: of.with(l.kind, o)}
		for _, name := range []string{"user_count", "inactive_user_count"} {
			n, _ := strconv.Atoi(memberOf(pair[0].value, name))
			s.users += r.most(n)
		}
		all = append(all, s)
	}
	return all, nil
}

// below compares what the objects of a route have, each with the group where that has
// room.
func (r *run) below(ctx context.Context, group *errgroup.Group, route string, objects []entry) error {
	for _, o := range objects {
		compare := func() error {
			for _, child := range specs[route].below {
				if err := r.walk(ctx, group, child, o.parents); err != nil {
					return err
				}
			}
			if route == "clients" || route == "users" {
				r.advance()
			}
			return nil
		}
		if group.TryGo(compare) {
			continue
		}
		if err := compare(); err != nil {
			return err
		}
	}
	return nil
}

// walk compares the lists of a route, and what their objects have.
func (r *run) walk(ctx context.Context, group *errgroup.Group, route string, of parents) error {
	filters := specs[route].filters
	if len(filters) == 0 {
		filters = []object{{}}
	}
	for _, filter := range filters {
		objects, err := r.objects(ctx, route, filter, of)
		if err != nil {
			return err
		}
		if err := r.below(ctx, group, route, objects); err != nil {
			return err
		}
	}
	return nil
}

// most is how many of n objects are compared.
func (r *run) most(n int) int {
	if r.Sample > 0 {
		return min(n, r.Sample)
	}
	return n
}
