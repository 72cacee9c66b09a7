package v1compat

import (
	"context"
	"net/http"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

// Usage lists a key's calls of version 1.
type Usage struct {
	Items []UsageItem `json:"items" doc:"Calls by day and operation, sorted by day (newest first), then by operation."`
	// Parity is apart: those calls come from no program that has to move.
	Parity []UsageItem `json:"parity" doc:"Calls by the partnerapi parity command, which compares both versions. These calls are not included in items but are sorted in the same way."`
}

// UsageItem counts a key's calls of one operation on one day.
type UsageItem struct {
	Day        domain.Date `json:"day" doc:"The day (UTC)."`
	Operation  string      `json:"operation" doc:"Method and path of the operation." example:"GET /v1/clients"`
	Calls      int64       `json:"calls" doc:"Number of requests, regardless of their status."`
	Failures   int64       `json:"failures" doc:"Number of these requests that returned a status of 400 or above or whose caller disconnected."`
	FirstAt    Time        `json:"first_at" doc:"When the first of these requests was completed."`
	LastAt     Time        `json:"last_at" doc:"When the last of these requests was completed."`
	UserAgents []string    `json:"user_agents" doc:"The first five distinct User-Agent headers of the requests, each up to 200 bytes."`
	Successor  string      `json:"successor" doc:"Method and path of the version 2 operation to call instead." example:"GET /v2/clients"`
}

// UsageItemOf converts a row for GET /v1/usage; successor is its operation's entry in Successors.
func UsageItemOf(r usage.Row, successor string) UsageItem {
	return UsageItem{
		Day: r.Day, Operation: r.Operation, Calls: r.Calls, Failures: r.Failures, FirstAt: Time{r.FirstAt}, LastAt: Time{r.LastAt},
		UserAgents: append([]string{}, r.UserAgents...), Successor: successor,
	}
}

type readUsage struct {
	Query struct {
		Days int `query:"days" default:"400" validate:"between=1 400" doc:"Number of days to return, including today."`
	}
}

// addUsageRoutes adds the route by which callers see which operations of v1 they still call.
func (f *Facade) addUsageRoutes() {
	addOwn(f, Meta{
		ID: "usage", Method: "GET", Path: "/usage", Status: http.StatusOK, Summary: "Get Usage",
		Description: "Returns the version 1 operations that the API key called, by day (UTC), each with the version 2 operation that " +
			"replaces it. If you omit `days`, the list covers the last 400 days. New calls appear within 10 seconds. Calls by " +
			"the `partnerapi parity` command are listed separately, and calls to operations that this service added to " +
			"version 1 are not counted.",
	}, f.readUsage)
}

// readUsage implements GET /v1/usage.
func (f *Facade) readUsage(ctx context.Context, in *readUsage) (*Usage, error) {
	out := &Usage{Items: []UsageItem{}, Parity: []UsageItem{}}
	if f.Usage == nil {
		return out, nil
	}
	from := domain.DateOf(f.Clock.Now()).AddDays(1 - in.Query.Days)
	rows, err := f.Usage.ByKey(ctx, domain.CallerFrom(ctx).Key, from)
	for _, r := range rows {
		list := &out.Items
		if r.Surface == usage.Parity {
			list = &out.Parity
		}
		*list = append(*list, UsageItemOf(r, f.successors[r.Operation]))
	}
	return out, err
}

// Successors maps each operation of version 1 to its successor in version 2, both as method and path: "GET
// /v1/clients" to "GET /v2/clients".
func (f *Facade) Successors() map[string]string { return f.successors }

// setOperations sets successors, from each operation of v1 to its successor, and counted, from the ID of a route of v1
// or of an operation of v2 to the operation. An operation is written as its method and path.
func (f *Facade) setOperations() {
	f.counted = map[usage.Surface]map[string]string{usage.V1: {}, usage.V2: {}}
	f.successors = map[string]string{}
	for _, r := range f.routes {
		if r.Additive {
			continue
		}
		next := r.Successor.Meta()
		operation := methodAndPath(r.Method, "/v1", r.Path)
		f.successors[operation] = methodAndPath(next.Method, "/v2", next.Path)
		f.counted[usage.V1][r.ID], f.counted[usage.V2][next.ID] = operation, f.successors[operation]
	}
}

// methodAndPath formats a method and a path as documents do: GET /v1/clients/{client_id}.
func methodAndPath(method, prefix, path string) string {
	return method + " " + prefix + op.Braced(path)
}

// count counts an answered request of an authenticated caller to an operation of v1, served or gone, or to the v2
// successor of one.
func (f *Facade) count(a ginop.Answered) {
	if a.Caller == nil {
		return
	}
	surface := usage.Surface(a.Surface)
	operation, ok := f.counted[surface][a.Operation]
	if !ok {
		return
	}
	f.Usage.Count(usage.Call{
		Key: a.Caller.Key, Surface: surface, Operation: operation, Status: a.Status, UserAgent: a.UserAgent,
	})
}
