package v1compat

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/op"
)

// legacyMirror is all that the legacy integration knows: what each object is
// called, by the path of its list and by v1's id.
type legacyMirror map[string]map[string]string

func (m legacyMirror) put(path string, id any, name string) {
	if m[path] == nil {
		m[path] = map[string]string{}
	}
	m[path][fmt.Sprint(id)] = name
}

// readAll reads all that the key reaches, as the integration does each night. Where
// the client has no monitoring, v1 documents 403.
func (c *legacy) readAll() (legacyMirror, error) {
	m := legacyMirror{}
	partner, err := legacyCall[legacyPartner](c, http.StatusOK, http.MethodGet, "/v1/partner", nil)
	if err != nil {
		return nil, err
	}
	m.put("partner", "", partner.Name)
	clients, err := legacyList[legacyClient](c, "/v1/clients", 2)
	if err != nil {
		return nil, err
	}
	for _, k := range clients {
		m.put("clients", k.ID, k.Name)
		if err := c.readClient(m, fmt.Sprint(k.ID)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (c *legacy) readClient(m legacyMirror, client string) error {
	at := "/v1/clients/" + client
	users, err := legacyList[legacyUser](c, at+"/users?status=all", 2)
	if err != nil {
		return err
	}
	for _, u := range users {
		m.put("users/"+client, u.ID, u.Email)
		if err := c.readUser(m, u.ID); err != nil {
			return err
		}
	}
	collections, err := legacyList[legacyCollection](c, at+"/collections", 3)
	for _, k := range collections {
		m.put("collections/"+client, k.ID, k.Name)
		members, failed := legacyList[legacyMember](c, fmt.Sprintf("%s/collections/%d/members", at, k.ID), 2)
		err = errors.Join(err, failed)
		for _, u := range members {
			m.put(fmt.Sprintf("members/%s/%d", client, k.ID), u.User, u.Email)
		}
	}
	policies, failed := legacyList[legacyPolicy](c, at+"/policies", 3)
	err = errors.Join(err, failed)
	for _, p := range policies {
		m.put("policies/"+client, p.ID, p.Title)
		_, failed := legacyList[legacyPolicyUser](c, fmt.Sprintf("%s/policies/%d/users?status=all", at, p.ID), 2)
		err = errors.Join(err, failed)
	}
	_, failed = legacyList[legacyExposures](c, at+"/darkweb/exposures", 5)
	var refusal *legacyRefusal
	if !errors.As(failed, &refusal) || refusal.status != http.StatusForbidden {
		err = errors.Join(err, failed)
	}
	reports, failed := legacyList[legacyReport](c, at+"/reports", 2)
	err = errors.Join(err, failed)
	for _, r := range reports {
		m.put("reports/"+client, r.ID, r.Type)
		_, failed := legacyList[legacyReport](c, at+"/reports/"+r.ID, 20)
		err = errors.Join(err, failed)
	}
	return err
}

func (c *legacy) readUser(m legacyMirror, user string) error {
	courses, err := legacyList[legacyTraining](c, "/v1/users/"+user+"/training", 4)
	for _, k := range courses {
		m.put("training/"+user, k.Order, k.Course)
	}
	results, failed := legacyList[legacyPhishing](c, "/v1/users/"+user+"/phishing", 1)
	err = errors.Join(err, failed)
	for i, r := range results {
		m.put("phishing/"+user, i, string(r.Status))
	}
	_, failed = legacyListBy[legacyEmail](c, http.MethodPost, "/v1/sentemails", map[string]any{"user_infima_id": user}, 2)
	return errors.Join(err, failed)
}

// writeAll makes one change of each kind, in the first client that it knows; round
// makes names that are not taken.
func (c *legacy) writeAll(m legacyMirror, round int) (err error) {
	client := slices.Min(slices.Collect(maps.Keys(m["clients"])))
	at := "/v1/clients/" + client
	try := func(failed error) { err = errors.Join(err, failed) }
	post := func(path string, body any) {
		_, failed := legacyCall[legacyDone](c, http.StatusOK, http.MethodPost, path, body)
		try(failed)
	}

	_, failed := legacyCall[legacyCreatedClient](c, http.StatusCreated, http.MethodPost, "/v1/clients",
		map[string]any{"company_name": fmt.Sprint("Acquired ", round)})
	try(failed)
	user, failed := legacyCall[legacyCreatedUser](c, http.StatusCreated, http.MethodPost, at+"/users",
		map[string]any{"email": fmt.Sprintf("new%d@example.com", round), "first_name": "New"})
	try(failed)
	collection, failed := legacyCall[legacyCollection](c, http.StatusCreated, http.MethodPost, at+"/collections",
		map[string]any{"name": fmt.Sprint("Joined in ", round)})
	try(failed)
	if err != nil {
		return err // nothing to go on with
	}
	members := fmt.Sprintf("%s/collections/%d/members", at, collection.ID)
	post("/v1/users/"+user.ID, map[string]any{"role": "finance"})
	_, failed = legacyCall[legacyMessage](c, http.StatusOK, http.MethodPost, "/v1/sendphishing",
		map[string]any{"user_id": user.ID, "phishing_template": c.template})
	try(failed)
	post(members, map[string]any{"user_infima_id": user.ID})
	_, failed = legacyCall[legacyDone](c, http.StatusOK, http.MethodDelete, members+"/"+user.ID, nil)
	try(failed)
	return err
}

// legacyYear is the last year of version 1 for one integration. The phase of its
// key is what the script of the year sets.
type legacyYear struct {
	*service
	client *legacy
	key    retire.Key
	phase  retire.Phase
	open   bool // a window of a brownout, by the script's own reckoning
	known  legacyMirror
	round  int
}

func (y *legacyYear) set(phase retire.Phase) {
	y.T.Helper()
	y.phase = phase
	y.follow(y.retirement.SetPhase(y.T.Context(), retire.Scope{Key: y.key.ID}, phase, time.Time{}))
}

// works runs the integration once, and holds it against what the phase says: where
// that refuses nothing the integration sees nothing but what v1's document has, and
// else it sees 410 and nothing else.
func (y *legacyYear) works(when string) {
	y.T.Helper()
	closed := y.phase == retire.Off || y.phase == retire.Brownout && y.open
	known, err := y.client.readAll()
	switch {
	case closed && !errors.Is(err, errLegacyGone):
		y.T.Fatalf("%s: a read is not refused: %v", when, err)
	case !closed && err != nil:
		y.T.Fatalf("%s: %v", when, err)
	case !closed:
		y.known = known
	}
	y.round++
	err = y.client.writeAll(y.known, y.round)
	if closed = closed || y.phase == retire.ReadOnly; closed != errors.Is(err, errLegacyGone) || !closed && err != nil {
		y.T.Fatalf("%s: a write: %v", when, err)
	}
}

// through lets days go by, on each of which the integration works.
func (y *legacyYear) through(days, every int, when string) {
	y.T.Helper()
	for d := 0; d < days; d += every {
		y.Clock.Advance(time.Duration(every) * day)
		y.works(fmt.Sprintf("%s, day %d", when, d+every))
	}
}

// TestYearOfALegacyIntegrator: an integration that knows v1's document alone works
// through announcement, brownout, migration and end, and sees nothing else than the
// document says before its key's phase does.
func TestYearOfALegacyIntegrator(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	c := s.caller("Integrator")
	for _, step := range slices.Concat(office, phishingSteps, collectionSteps, policySteps, darkWebSteps, trainingSteps, mailSteps) {
		s.Clock.Advance(time.Second)
		step.do(c)
	}
	y := &legacyYear{service: s, phase: retire.On}
	y.client = &legacy{base: s.URL, key: c.tenant.Key, http: http.DefaultClient}
	if _, err := fmt.Sscan(c.known["first"], &y.client.template); err != nil {
		t.Fatal(err)
	}
	y.key = retire.KeyOf(domain.CallerFrom(s.As(c.tenant.Key)))
	ctx := t.Context()
	s.Clock.Advance(day) // so that its calls are counted apart
	y.works("before the announcement")

	began := s.Clock.Now()
	y.follow(y.retirement.Announce(ctx, retire.Announcement{Announced: began, Sunset: began.AddDate(1, 0, 0)}))
	y.through(60, 30, "announced")
	y.brownout()
	y.set(retire.ReadOnly)
	y.through(30, 30, "read only")
	y.set(retire.On)
	y.through(30, 30, "on again")
	y.migrate()

	if err := y.retirement.End(ctx, y.ending()); err == nil {
		t.Fatal("v1 was ended before its sunset")
	}
	s.Clock.Set(began.AddDate(1, 0, 0))
	y.works("at the sunset, which refuses nothing")
	if err := y.retirement.End(ctx, y.ending()); err == nil {
		t.Fatal("v1 was ended while a key calls it")
	}
	s.Clock.Advance(31 * day)
	y.phase = retire.Off
	y.follow(y.retirement.End(ctx, y.ending()))
	y.works("at the end")
	y.checkUsage()
	y.migrate() // exchange and v2 go on
}

// ending is what the command that ends v1 finds.
func (y *legacyYear) ending() (e retire.EndRequest) {
	y.T.Helper()
	err := y.usage.Flush(y.T.Context())
	calls, failed := usage.LastCalls(y.T.Context(), y.DB, y.Clock.Now().Add(-retire.CallerWindow))
	if err = errors.Join(err, failed); err != nil {
		y.T.Fatal(err)
	}
	e.Calls = calls
	return e
}

// brownout puts the key through two windows of an hour, a week apart.
func (y *legacyYear) brownout() {
	y.T.Helper()
	y.set(retire.Brownout)
	y.works("in a brownout without windows")
	first := y.Clock.Now().Add(time.Hour)
	_, err := y.retirement.AddBrownout(y.T.Context(), retire.Window{Start: first, For: time.Hour, Every: 7 * day, Count: 2})
	y.follow(err)
	for week := range 2 {
		start := first.AddDate(0, 0, 7*week)
		for _, at := range []struct {
			time.Time
			open bool
		}{
			{start.Add(-time.Second), false}, {start, true}, {start.Add(time.Hour - time.Second), true}, {start.Add(time.Hour), false},
		} {
			y.Clock.Set(at.Time)
			y.open = at.open
			y.works(fmt.Sprintf("week %d, %s, in a window: %t", week, at.Format(time.TimeOnly), at.open))
		}
	}
}

// migrate moves the integration: it exchanges the ids that it knows, reads v2, and
// finds the same objects.
func (y *legacyYear) migrate() {
	y.T.Helper()
	clients := y.exchange("client", slices.Collect(maps.Keys(y.known["clients"])))
	y.sameAs("clients", clients, y.v2List("/v2/clients?limit=2", "name"))
	for number, id := range clients {
		for kind, list := range map[string][2]string{
			"users": {"user", "email"}, "collections": {"collection", "name"}, "policies": {"policy", "title"},
		} {
			path := kind + "/" + number
			ids := y.exchange(list[0], slices.Collect(maps.Keys(y.known[path])))
			y.sameAs(path, ids, y.v2List("/v2/clients/"+id+"/"+kind+"?limit=3", list[1]))
			if kind == "collections" {
				for n, k := range ids {
					members := fmt.Sprintf("members/%s/%s", number, n)
					users := y.exchange("user", slices.Collect(maps.Keys(y.known[members])))
					y.sameAs(members, users, y.v2Items("/v2/clients/"+id+"/collections/"+k+"/members?limit=3", "user_id", "email"))
				}
			}
		}
	}
}

// exchange asks for the v2 ids of v1's, all of which it gets.
func (y *legacyYear) exchange(kind string, ids []string) map[string]string {
	y.T.Helper()
	asked := make([]any, len(ids))
	for i, id := range ids {
		asked[i] = id
		if kind != "user" {
			var n int
			fmt.Sscan(id, &n)
			asked[i] = n
		}
	}
	var answer struct {
		Items []struct {
			V1 any    `json:"v1"`
			V2 string `json:"v2"`
		} `json:"items"`
		Invalid []any `json:"invalid"`
	}
	y.Do(http.MethodPost, "/v1/ids/exchange", y.client.key, map[string]any{"kind": kind, "ids": asked}).Want(http.StatusOK).Into(&answer)
	if len(answer.Items) != len(ids) || len(answer.Invalid) > 0 {
		y.T.Fatalf("exchange of %v: %+v", asked, answer)
	}
	found := map[string]string{}
	for _, item := range answer.Items {
		found[fmt.Sprint(item.V1)] = item.V2
	}
	return found
}

// v2List reads a list of v2 by cursor: the value of a field, by id.
func (y *legacyYear) v2List(path, field string) map[string]string {
	return y.v2Items(path, "id", field)
}

func (y *legacyYear) v2Items(path, id, field string) map[string]string {
	y.T.Helper()
	all := map[string]string{}
	for next := path; next != ""; {
		var page struct {
			Data []map[string]any `json:"data"`
			Page op.PageInfo      `json:"page"`
		}
		y.Get(next, y.client.key).Want(http.StatusOK).Into(&page)
		for _, item := range page.Data {
			all[fmt.Sprint(item[id])] = fmt.Sprint(item[field])
		}
		if next = ""; page.Page.NextCursor != nil {
			next = path + "&cursor=" + *page.Page.NextCursor
		}
	}
	return all
}

// sameAs compares what v1 said of a list with what v2 says. Since v1 was read last,
// only the integration itself wrote: what it made is in v2 too.
func (y *legacyYear) sameAs(path string, ids, inV2 map[string]string) {
	y.T.Helper()
	for number, name := range y.known[path] {
		if got := inV2[ids[number]]; got != name {
			y.T.Errorf("%s %s is %q in v1, and %s %q in v2", path, number, name, ids[number], got)
		}
	}
}

// checkUsage: the service counted what the integration did, refusals too.
func (y *legacyYear) checkUsage() {
	y.T.Helper()
	if err := y.usage.Flush(y.T.Context()); err != nil {
		y.T.Fatal(err)
	}
	var usage struct {
		Items []struct {
			Calls     int      `json:"calls"`
			Operation string   `json:"operation"`
			Agents    []string `json:"user_agents"`
			Successor string   `json:"successor"`
		} `json:"items"`
	}
	y.Get("/v1/usage", y.client.key).Want(http.StatusOK).Into(&usage)
	calls := 0
	for _, item := range usage.Items {
		if slices.Contains(item.Agents, "legacy-integration/1.4") {
			calls += item.Calls
		}
		if !strings.Contains(item.Successor, " /v2/") {
			y.T.Errorf("%s has the successor %q", item.Operation, item.Successor)
		}
	}
	if calls != y.client.calls {
		y.T.Errorf("%d calls were counted of %d", calls, y.client.calls)
	}
}
