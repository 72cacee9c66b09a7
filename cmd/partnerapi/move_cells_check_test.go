//go:build slow

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"partnerapi/db"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

// replayedOf is of how many writes one is sent again with its Idempotency-Key.
const replayedOf = 4

// mailsUnderWay become due one after another while the partner moves, and mailsLater when it has moved.
const mailsUnderWay, mailsLater = 300, 20

// before is what was there before the partner moved.
type before struct {
	// result and link are those of a simulated mail to a user, report and file those of a
	// report. mails wait.
	user, result, link, report, file string
	mails                            []string
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
	c.hook = subscription{key: c.key, types: domain.EventTypes}
	b.webhook = "/v2/webhooks/" + c.events.subscribe(c.router, "/", &c.hook)
	b.v1Users, b.v2Users = c.v1Users(), idsOf(listed[identified](c, c.key, "/v2/clients/"+c.quiet.id+"/users"))
	c.wait()
}

// wait has mails to a client wait in the first cell.
func (c *twoCells) wait() {
	c.t.Helper()
	client, err := domain.ParseID[domain.ClientKind](c.worked.id)
	if err != nil {
		c.t.Fatal(err)
	}
	for range mailsUnderWay + mailsLater {
		c.before.mails = append(c.before.mails, db.NewID[domain.MessageKind]().UUID())
	}
	c.exec(0, `INSERT INTO mail_requests (client_id, id, type, user_id, created_at)
		SELECT client_id, m.id, 'welcome', u.id, now()
		FROM (SELECT client_id, id FROM users WHERE client_id = $1 AND status = 'active' LIMIT 1) AS u, unnest($2::uuid[]) AS m (id)`,
		client, c.before.mails)
	c.exec(0, `INSERT INTO outbox (client_id, id, kind, urgency, due_at)
		SELECT $1::uuid, id, 'mail', 2, now() + CASE WHEN n <= $3 THEN n * interval '100 ms' ELSE interval '1 day' END
		FROM unnest($2::uuid[]) WITH ORDINALITY AS m (id, n)`, client, c.before.mails, mailsUnderWay)
	c.exec(0, "SELECT pg_notify($1, '')", db.OutboxChannel)
}

// download waits for a report's file, and fetches it. Its link begins with a path.
func (c *twoCells) download(report, begins string) string {
	c.t.Helper()
	var link *string
	await(c.t, "the report is made", func() bool {
		link = into[struct {
			URL *string `json:"download_url"`
		}](c.get(report, c.key)).URL
		return link != nil
	})
	if !strings.HasPrefix(*link, c.router.address+begins) {
		c.t.Errorf("the report is at %s", *link)
	}
	status, file := read(c.t, *link)
	if status != http.StatusOK {
		c.t.Fatalf("the report's file: %d %s", status, file)
	}
	return file
}

// listed reads all of a list of version 2.
func listed[T any](c *twoCells, key, path string) (all []T) {
	c.t.Helper()
	for cursor := ""; ; {
		page := into[listPage[T]](c.get(pagePathOf(path, 100, cursor), key))
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
func (c *twoCells) feed(key string) []told {
	c.t.Helper()
	all := eventReader{limit: 100}
	all.read(func(path string) (response, bool) { return c.get(path, key), true })
	return all.events
}

// v1Users are the users of the client that nobody writes to, as version 1 lists them.
func (c *twoCells) v1Users() (ids []string) {
	c.t.Helper()
	for {
		page := into[struct {
			Items []identified
			Total int
		}](c.get(fmt.Sprintf("/v1/clients/%d/users?limit=50&offset=%d", c.quiet.number, len(ids)), c.key))
		ids = append(ids, idsOf(page.Items)...)
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
	c.checkMails()
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
	}
}

// checkReplayed sends writes of before and of after the move again.
func (c *twoCells) checkReplayed() {
	c.t.Helper()
	for _, i := range c.integrators {
		for n, u := range i.users {
			if u.answer == "" || n%replayedOf > 0 {
				continue
			}
			again := c.router.do("POST", "/v2/clients/"+i.client.id+"/users", i.key, bodyOf(u.email), "Idempotency-Key", u.email)
			if string(again.want(http.StatusCreated).body) != u.answer {
				c.t.Errorf("created\n%s\nthen again\n%s", u.answer, again.body)
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
		if i.events.cursor != "" {
			i.events.read(i.get)
		}
		ids := map[string]bool{}
		types := map[string][]domain.EventType{}
		for _, e := range list {
			ids[e.ID] = true
			types[e.label()] = append(types[e.label()], e.Type)
		}
		got, want := textsOf(i.events.events, nil), textsOf(list, nil)
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
	texts := map[string]string{}
	for _, e := range list {
		if texts[e.ID] = e.text; c.before.early[e.ID] {
			continue
		}
		if delivered++; c.hook.gotten[e.ID] == nil {
			c.t.Errorf("%s was not delivered", e.text)
		}
	}
	for id, got := range c.hook.gotten {
		for _, body := range got.bodies {
			if body != texts[id] {
				c.t.Errorf("delivered\n%s\nwhich is listed as\n%s", body, texts[id])
			}
		}
	}
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

// checkMails wants each mail to be sent by one cell: those that were due later by the second, though the first has their
// rows at rest.
func (c *twoCells) checkMails() {
	c.t.Helper()
	mails := c.before.mails
	for _, cell := range []int{0, 1} {
		c.exec(cell, "UPDATE outbox SET due_at = now() WHERE due_at > now() + interval '1 hour' AND id::text = ANY($1)", mails)
		c.exec(cell, "SELECT pg_notify($1, '')", db.OutboxChannel)
	}
	c.is(1, "SELECT NOT EXISTS (SELECT FROM outbox WHERE due_at < now() + interval '1 hour')")
	sent := c.text(1, "SELECT count(*)::text FROM mail_requests WHERE sent_at IS NOT NULL AND id::text = ANY($1)", mails)
	if sent != fmt.Sprint(len(mails)) {
		c.t.Errorf("%s of %d mails are sent", sent, len(mails))
	}
	for n, id := range mails {
		by := [2]bool{}
		for cell, dir := range c.dirs {
			_, err := os.Stat(filepath.Join(dir, "outbox", id+".eml"))
			by[cell] = err == nil
		}
		if by[0] == by[1] || n >= mailsUnderWay && by[0] {
			c.t.Errorf("mail %d of %d: sent by the cells %v", n, len(mails), by)
		}
	}
}
