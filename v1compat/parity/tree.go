package parity

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"partnerapi/domain"
)

// parents are v1's ids of the objects in a path, by their kinds.
type parents map[string]string

// fill replaces the parameters of a path, or of a body, such as :user_id, by ids.
func (p parents) fill(path string) string {
	var pairs []string
	for kind, id := range p {
		pairs = append(pairs, ":"+kind+"_id", url.PathEscape(id))
	}
	return strings.NewReplacer(pairs...).Replace(path)
}

// daysOfMails is the number of days whose emails v1 shows (decisions 5.13).
const daysOfMails = 30

// listOf returns a list's query. list is a route's ID, for some with ?query; path has the objects in the route's path.
func (r *run) listOf(ctx context.Context, list string, path parents) (*query, error) {
	route, query, _ := strings.Cut(list, "?")
	t := r.routes[route]
	v1 := request{method: t.Method, path: "/v1" + path.fill(t.Path)}
	if t.Paged {
		v1.path = withQuery(v1.path+"?"+query, "limit", pageLimit)
	}
	if route == "sentemails" { // both sides list the same days
		start := r.Now().UTC().AddDate(0, 0, -daysOfMails).Truncate(time.Second).Format(time.RFC3339)
		v1.body = string(valueOf(map[string]any{userOfMails: path["user"], "start_time": start}))
	}
	return r.query(ctx, v1)
}

// compareAll compares the partner, the clients, errors, and then the lists of up to maxInFlight clients at a time.
func (r *run) compareAll(ctx context.Context) error {
	if _, err := r.compareList(ctx, "partner", parents{}); err != nil {
		return err
	}
	clients, err := r.compareList(ctx, "clients", parents{})
	if err != nil {
		return err
	}
	if err := r.compareErrors(ctx, clients); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxInFlight)
	for _, client := range clients {
		group.Go(func() error { return r.compareChildren(ctx, "clients", client) })
	}
	return group.Wait()
}

// compareList compares a list, and returns the sample of its objects whose children are to be compared, each by the ids
// of its parents and its own; nil if they have no children. For the clients it sets the total of the progress.
func (r *run) compareList(ctx context.Context, list string, path parents) (objects []parents, err error) {
	q, err := r.listOf(ctx, list, path)
	if err != nil {
		return nil, err
	}
	pairs, err := q.compare(ctx)
	if err != nil || len(q.children) == 0 {
		return nil, err
	}
	users := 0 // whose lists will be compared
	for _, i := range spread(len(pairs), r.Sample) {
		object := pairs[i][0] // v1's row
		ids := maps.Clone(path)
		ids[q.kind] = object.subject.id
		objects = append(objects, ids)
		for _, name := range []string{"user_count", "inactive_user_count"} {
			n, _ := strconv.Atoi(memberOf(object.value, name)) // 0 for objects other than clients
			users += len(spread(n, r.Sample))
		}
	}
	if list == "clients" {
		r.total = len(objects) + users
	}
	return objects, nil
}

// compareChildren compares the lists that an object of a route has, and the children of their objects.
func (r *run) compareChildren(ctx context.Context, route string, object parents) error {
	for _, list := range specs[route].children {
		objects, err := r.compareList(ctx, list, object)
		child, _, _ := strings.Cut(list, "?") // the route of the list's objects
		for i := 0; i < len(objects) && err == nil; i++ {
			err = r.compareChildren(ctx, child, objects[i])
		}
		if err != nil {
			return err
		}
	}
	if route == "clients" || route == "users" { // the progress counts clients and users
		r.advance()
	}
	return nil
}

// compareErrors compares the errors that v1 documents (decisions 5.2 to 5.4).
func (r *run) compareErrors(ctx context.Context, clients []parents) error {
	const none, malformed = unusedNumber, "007"
	nobody := domain.UserID(unusedID).UUID()
	requests := map[int][]request{
		http.StatusUnauthorized: {{method: http.MethodGet, path: "/v1/partner", noKey: true}},
		http.StatusBadRequest: {
			get("/v1/clients?limit=x"), get("/v1/clients?offset=-1"), get("/v1/clients?ids=x"),
			post("/v1/sentemails", `{}`), post("/v1/sentemails", `{"user_infima_id":"nobody"}`),
		},
		http.StatusNotFound: {
			get("/v1/users/nobody/training"), get("/v1/users/" + nobody + "/training"), get("/v1/users/" + nobody + "/phishing"),
			post("/v1/sentemails", `{"user_infima_id":"`+nobody+`"}`),
		},
	}
	add := func(status int, paths ...string) {
		for _, path := range paths {
			requests[status] = append(requests[status], get(path))
		}
	}
	for _, list := range specs["clients"].children {
		route, _, _ := strings.Cut(list, "?")
		path := "/v1" + r.routes[route].Path
		add(http.StatusForbidden, parents{"client": none}.fill(path))
		add(http.StatusBadRequest, parents{"client": malformed}.fill(path))
	}
	if len(clients) > 0 {
		client := "/v1/clients/" + clients[0]["client"]
		add(http.StatusBadRequest, client+"/users?status=nobody")
		add(http.StatusNotFound, client+"/collections/"+none+"/members", client+"/policies/"+none+"/users", client+"/reports/"+none)
	}
	for _, status := range slices.Sorted(maps.Keys(requests)) {
		if err := r.compareRequests(ctx, requests[status], status); err != nil {
			return err
		}
	}
	return nil
}

// compareRequests compares the responses to requests of v1, one after the other, a single page each. status is what v1
// must answer; 0 means the same as v2.
func (r *run) compareRequests(ctx context.Context, requests []request, status int) error {
	for _, v1 := range requests {
		q, err := r.query(ctx, v1)
		if err != nil {
			return err
		}
		q.onePage, q.status = true, status
		if _, err := q.compare(ctx); err != nil {
			return err
		}
	}
	return nil
}
