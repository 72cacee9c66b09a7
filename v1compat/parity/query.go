package parity

import (
	"context"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/v1compat"
	"partnerapi/v2/op"
)

// query is a request of v1, or a whole list of it, and the request of v2 that follows it.
type query struct {
	*v1compat.Translated
	spec
	*run
	request request
	// onePage compares the page that request names; otherwise all pages.
	onePage bool
	// status is the status that v1 must answer; 0 means the same as v2.
	status int
	object Object // whose list it is; zero for none
	rules  rules
}

// spec says by what the items of a route are paired and ordered (decisions 5.6), and which lists their objects have.
type spec struct {
	// key is the member that identifies an item, and kind the kind of objects whose id it
	// is. Items without a key are paired by position; a key without a kind is not an id.
	key, kind string
	// element is the kind of the objects in the arrays of an item; empty for none.
	element string
	// order is the member by which v1's items are sorted, after a minus sign if
	// descending; empty if no member shows the order.
	order string
	// arrange sorts all of v2's rows as v1 does; nil if v2 has that order.
	arrange func([]row)
	// children are the lists of each object: a route's ID, and for some a query.
	children []string
}

var specs = map[string]spec{
	"partner": {element: domain.AdminID{}.Noun()},
	"clients": {
		key: "id", kind: "client", order: "created_date",
		children: []string{"collections", "policies", "reports", "exposures", "users", "users?status=inactive"},
	},
	"users": {
		key: "id", kind: "user", order: "created_date", children: []string{"training", "phishing", "sentemails"},
	},
	"training":           {key: "order", order: "order"},
	"phishing":           {arrange: latestFirst},
	"collections":        {key: "id", kind: "collection", order: "created_date", children: []string{"collection-members"}},
	"collection-members": {key: "user_infima_id", kind: "user"},
	"policies":           {key: "id", kind: "policy", order: "created_date", children: []string{"policy-users"}},
	"policy-users":       {key: "id", kind: "user"},
	"exposures":          {key: "id", kind: "user"},
	"reports": {
		key: "report_id", kind: "report", order: "created_date", arrange: slices.Reverse[[]row],
		children: []string{"download-report"},
	},
	"download-report": {key: "report_id", kind: "report"},
	"sentemails":      {order: "-event_time"},
}

// latestFirst sorts phishing results of v2, the latest first, and those of one time by descending id.
func latestFirst(rows []row) {
	slices.SortFunc(rows, func(a, b row) int {
		if c := strings.Compare(memberOf(b.value, "sent_at"), memberOf(a.value, "sent_at")); c != 0 {
			return c
		}
		return strings.Compare(memberOf(b.value, "result_id"), memberOf(a.value, "result_id"))
	})
}

// userOfMails is the member of v1's emails that v2 has in the path only.
const userOfMails = "user_infima_id"

// query returns the query of a request of v1. Its object is that of the path or, for the emails of one user, that user.
// For the emails of all users with an address, the key of each row is its user.
func (r *run) query(ctx context.Context, v1 request) (*query, error) {
	a, err := r.Facade.Translate(v1.method, v1.path, v1.body, v1compat.Lookups{
		IDs: r.ids(ctx), Client: r.clientOf(ctx), Now: r.Now(),
	})
	if err != nil {
		return nil, err
	}
	q := &query{Translated: a, spec: specs[a.Translator.ID], run: r, request: v1, object: Object{Kind: a.Kind, V1: a.ID}}
	if a.Email != "" {
		q.key, q.kind = userOfMails, "user"
	} else if user := memberOf(jsontext.Value(v1.body), userOfMails); user != "" && a.Next != "" { // v1 accepts it
		q.object = Object{Kind: "user", V1: user}
	}

	q.rules = rules{tolerated: r.Tolerate, element: q.element, twoServices: r.twoServices()}
	if !r.twoServices() {
		later, err := a.LaterFields(r.release)
		if err != nil {
			return nil, err
		}
		q.rules.explained = slices.Concat(a.GivenUp, later) // v2 has no value for these members
	}
	return q, nil
}

// operation is the query's name in reports.
func (q *query) operation() string { return operationOf(q.Translator) }

// operationOf returns the name of a route in reports, such as GET /v1/clients.
func operationOf(r *v1compat.Translator) string { return r.Method + " /v1" + op.Braced(r.Path) }
