//go:build slow

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"partnerapi/db/seed"
	"partnerapi/domain"
)

// replayedOf is of how many writes one is sent again with its Idempotency-Key.
const replayedOf = 4

// before is what was there before the partner moved.
type before struct {
	// result and link are those of a simulated mail to a user, report and file those of a
	// report.
	user, result, link, report, file string
	webhook                          string
	early                            map[string]bool // the events of before the webhook
	// v1Users and v2Users are those of the client that nobody writes to, as the versions
	// list them.
	v1Users, v2Users []string
}

// prepare makes what is to be found again after the move.
func (c *twoCells) prepare() {
	c.t.Helper()
	b := &c.before
	b.report = "/v2/clients/" + c.worked.id + "/reports/" + into[identified](c.router.do("POST", "/v2/clients/"+c.worked.id+"/reports",
		c.key, fields{"type": "executive_summary"}).want(http.StatusCreated)).ID
	b.file = c.download(b.report, "/reports/")

	c.is(0, "SELECT NOT EXISTS (SELECT FROM events)") // all are published
	b.early = map[string]bool{}
	for _, e := range c.feed(c.key) {
		b.early[e.ID] = true
	}
	hook := into[struct{ ID, Secret string }](c.router.do("POST", "/v2/webhooks", c.key,
		fields{"url": c.events.server.URL, "events": domain.EventTypes}).want(http.StatusCreated))
	c.events.mu.Lock()
	c.events.secret, b.webhook = hook.Secret, "/v2/webhooks/"+hook.ID
	c.events.mu.Unlock()

	b.v1Users, b.v2Users = c.v1List("users", c.quiet), idsOf(listed[identified](c, c.key, "/v2/clients/"+c.quiet.id+"/users"))
}

// download waits for a report's file, and fetches it. Its link begins with a path.
func (c *twoCells) download(report, begins string) string {
	c.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(retryPause) {
		link := into[struct {
			URL *string `json:"download_url"`
		}](c.get(report, c.key)).URL
		if link == nil {
			continue
		}
		if !strings.HasPrefix(*link, c.router.address+begins) {
			c.t.Errorf("the report is at %s", *link)
		}
		status, file := read(c.t, *link)
		if status != http.StatusOK {
			c.t.Fatalf("the report's file: %d %s", status, file)
		}
		return file
	}
	c.t.Fatal("the report is not made")
	return ""
}

// listed reads all of a list of version 2.
func listed[T any](c *twoCells, key, path string) (all []T) {
	c.t.Helper()
	for cursor := ""; ; {
		page := into[listPage[T]](c.get(path+"?limit=100&cursor="+url.QueryEscape(cursor), key))
		all, cursor = append(all, page.Data...), page.Page.Next
		if !page.Page.More {
			return all
		}
	}
}

func idsOf(list []identified) (ids []string) {
	for _, item := range list {
		ids = append(ids, item.ID)
	}
	return ids
}

// feed reads all events.
func (c *twoCells) feed(key string) (events []told) {
	c.t.Helper()
	for _, item := range listed[json.RawMessage](c, key, "/v2/events") {
		e := told{text: string(item)}
		if err := json.Unmarshal(item, &e); err != nil {
			c.t.Error(err)
		}
		events = append(events, e)
	}
	return events
}

// v1List is each object of a client's list in version 1, as its bytes say.
func (c *twoCells) v1List(list string, client tenantOf) (ids []string) {
	c.t.Helper()
	for {
		page := into[struct {
			Items []struct{ ID json.RawMessage }
			Total int
		}](c.get(fmt.Sprintf("/v1/clients/%d/%s?limit=50&offset=%d", client.number, list, len(ids)), c.key))
		for _, item := range page.Items {
			ids = append(ids, strings.Trim(string(item.ID), `"`))
		}
		if len(ids) >= page.Total || len(page.Items) == 0 {
			return ids
		}
	}
}

// check wants everything that was answered to be in the second cell. That the rows are those
// of the first is TestMove of db/move.
func (c *twoCells) check() {
	c.t.Helper()
	c.status(0, "is served by cell 01")
	c.status(1, "came from cell 00 and is served here")
	c.checkWritten()
	c.checkReplayed()
	c.checkEvents()
	c.checkLinks()
	c.checkWork()
	c.checkLeft()
	for _, i := range c.integrators {
		c.t.Logf("%s: %d rounds, %d answers of 503", i.name, i.rounds.Load(), i.refused)
	}
	for _, r := range c.cells {
		r.finish()
	}
}

// checkWritten wants each write that was answered to be there once.
func (c *twoCells) checkWritten() {
	c.t.Helper()
	type user struct {
		ID, Email, Department string
		Language              string `json:"preferred_language"`
	}
	for _, i := range c.integrators {
		there := map[string][]user{}
		for _, u := range listed[user](c, i.key, "/v2/clients/"+i.client.id+"/users") {
			there[u.Email] = append(there[u.Email], u)
		}
		for _, u := range i.users {
			got := there[u.email]
			switch {
			case len(got) != 1:
				c.t.Errorf("%s is there %d times", u.email, len(got))
			case u.department != "" && (got[0].ID != u.id || got[0].Department != u.department):
				c.t.Errorf("%s is %+v", u.email, got[0])
			case u.department == "" && got[0].Language != "es":
				c.t.Errorf("%s is %+v", u.email, got[0])
			}
			delete(there, u.email)
		}
		for email := range there {
			if strings.HasPrefix(email, i.name) {
				c.t.Errorf("nobody was told of %s", email)
			}
		}
		c.checkCollections(i)
	}
}

// checkCollections wants an integrator's collections to have their numbers, and a member
// each.
func (c *twoCells) checkCollections(i *integrator) {
	c.t.Helper()
	if len(i.collections) == 0 {
		return
	}
	got := c.v1List("collections", i.client)
	for name, number := range i.collections {
		if n := len(slices.DeleteFunc(slices.Clone(got), func(id string) bool { return id != fmt.Sprint(number) })); n != 1 {
			c.t.Errorf("collection %d (%s) is there %d times", number, name, n)
		}
	}
	wrong := c.text(1, `SELECT name FROM collections AS c WHERE name LIKE $1 AND 1 <> (SELECT count(*) FROM collection_members AS m WHERE m.collection_id = c.id)
		UNION ALL SELECT name FROM collections WHERE name LIKE $1 GROUP BY name HAVING count(*) > 1`, i.name+"%")
	if wrong != "" {
		c.t.Errorf("collections without a member, or made twice: %s", wrong)
	}
}

// checkReplayed sends writes of before and of after the move again.
func (c *twoCells) checkReplayed() {
	c.t.Helper()
	for _, i := range c.integrators {
		for n := 0; n < len(i.made); n += replayedOf {
			made := i.made[n]
			again := c.router.do("POST", "/v2/clients/"+i.client.id+"/users", i.key, bodyOf(made.email), "Idempotency-Key", made.email).want(http.StatusCreated)
			if string(again.body) != made.answer {
				c.t.Errorf("created\n%s\nthen again\n%s", made.answer, again.body)
			}
			<-time.After(thinking)
		}
	}
}

// checkEvents wants the events that were followed by a cursor to be those that are listed
// now, in the order of their positions, with one for each write, and each of them to be
// delivered as it is listed.
func (c *twoCells) checkEvents() {
	c.t.Helper()
	for cell := range c.cells {
		c.is(cell, "SELECT NOT EXISTS (SELECT FROM events) AND NOT EXISTS (SELECT FROM webhook_deliveries WHERE status = 'waiting')")
	}
	delivered := 0
	for _, i := range c.integrators {
		list := c.feed(i.key)
		for range 2 + len(list)/pageOfWalk {
			if i.events.cursor == "" || !i.follow() {
				break
			}
		}
		var got, want []string
		ids := map[string]bool{}
		types := map[string][]domain.EventType{}
		for _, e := range list {
			want, ids[e.ID] = append(want, e.text), true
			types[e.label()] = append(types[e.label()], e.Type)
		}
		for _, e := range i.events.events {
			got = append(got, e.text)
		}
		if i.events.cursor != "" && !slices.Equal(got, want) || len(ids) != len(list) {
			c.t.Errorf("%s was shown %d events, and %d are listed, of which %d differ", i.name, len(got), len(list), len(ids))
		}
		for _, u := range i.users {
			if !slices.Equal(types[u.email], u.told) {
				c.t.Errorf("%s: the events are %v, the writes %v", u.email, types[u.email], u.told)
			}
		}
		if i.moves && delivered == 0 {
			delivered = c.checkDelivered(list)
		}
	}
	positions := c.text(1, "SELECT e.id::text FROM published_events AS e JOIN partners AS p ON p.id = e.partner_id WHERE p.name = $1 ORDER BY e.position", seed.DemoPartner)
	var order []string
	for _, e := range c.feed(c.key) {
		id, err := domain.ParseID[domain.EventKind](e.ID)
		if err != nil {
			c.t.Fatal(err)
		}
		order = append(order, id.UUID())
	}
	if strings.Join(order, "\n") != positions {
		c.t.Error("the events are not listed in the order of their positions")
	}
}

// checkDelivered returns how many events were delivered.
func (c *twoCells) checkDelivered(list []told) (delivered int) {
	c.t.Helper()
	c.events.mu.Lock()
	defer c.events.mu.Unlock()
	texts, repeated := map[string]string{}, 0
	for _, e := range list {
		if texts[e.ID] = e.text; c.before.early[e.ID] {
			continue
		}
		if delivered++; len(c.events.got[e.ID]) == 0 {
			c.t.Errorf("%s was not delivered", e.text)
		}
	}
	for id, got := range c.events.got {
		repeated += len(got) - 1
		for _, arrived := range got {
			if arrived.body != texts[id] {
				c.t.Errorf("delivered\n%s\nwhich is listed as\n%s", arrived.body, texts[id])
			}
		}
	}
	c.t.Logf("%d events were delivered, %d of them once more", delivered, repeated)
	return delivered
}

// checkLinks follows the links of before.
func (c *twoCells) checkLinks() {
	c.t.Helper()
	answer, err := http.Get(c.before.link)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if at := answer.Request.URL.String(); answer.StatusCode != http.StatusOK || !strings.HasPrefix(at, c.router.address+"/c01/t/") {
		c.t.Errorf("the link of a simulated mail leads to %s, which answers %d", at, answer.StatusCode)
	}
	results := into[struct{ Data []fields }](c.get("/v2/clients/"+c.worked.id+"/phishing/results?user_id="+c.before.user, c.key)).Data
	at := slices.IndexFunc(results, func(r fields) bool { return r["result_id"] == c.before.result })
	if at < 0 || results[at]["status"] != "clicked" {
		c.t.Errorf("the result %s is not clicked: %v", c.before.result, results)
	}
	c.get(c.before.webhook, c.key)
	if file := c.download(c.before.report, "/c01/reports/"); file != c.before.file {
		c.t.Errorf("the report has %d bytes and had %d", len(file), len(c.before.file))
	}
}

// checkLeft asks the cell that the partner left.
func (c *twoCells) checkLeft() {
	c.t.Helper()
	left := c.direct[0]
	for _, path := range []string{"/v1/clients", "/v2/clients", "/mcp"} {
		for _, i := range c.integrators {
			if !i.moves {
				continue
			}
			if answer := left.do("POST", path, i.key, fields{}).want(http.StatusMisdirectedRequest); answer.header.Get("X-Cell") != "01" {
				c.t.Errorf("%s of the old cell names the cell %q", path, answer.header.Get("X-Cell"))
			}
		}
	}
	for _, i := range c.integrators {
		if !i.moves {
			left.do("GET", "/v2/clients", i.key, nil).want(http.StatusOK)
		}
	}
}
