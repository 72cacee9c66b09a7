//go:build slow

package main

import (
	"os"
	"path/filepath"
	"strconv"

	"partnerapi/db"
	"partnerapi/domain"
)

const (
	// mailsMeanwhile become due one after another, mailEvery apart, while the partner
	// moves, and mailsLater when it has moved.
	mailsMeanwhile, mailEvery = 300, "100 ms"
	mailsLater                = 20
)

// workUnderWay is work that the first cell has when the partner moves.
type workUnderWay struct {
	report       string // which a worker of the first cell has begun and never ends
	first, later []string
}

// work gives the first cell a report that is in progress, and mails that wait.
func (c *twoCells) work() {
	c.t.Helper()
	id := db.NewID[domain.ReportKind]()
	c.exec(0, `INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at, tries, lease, due_at)
		SELECT client_id, $2, type, format, 'pending', now(), now(), 1, gen_random_uuid(), now() + interval '1 day'
		FROM reports WHERE status = 'ready' AND client_id = $1 LIMIT 1`, c.workedUUID(), id)
	c.underWay.report = "/v2/clients/" + c.worked.id + "/reports/" + id.String()
	c.underWay.first = c.mails(mailsMeanwhile, "now() + n * interval '"+mailEvery+"'")
	c.underWay.later = c.mails(mailsLater, "now() + interval '1 day'")
}

// workedUUID is the id of the client that is written to, as the database has it.
func (c *twoCells) workedUUID() string {
	c.t.Helper()
	id, err := domain.ParseID[domain.ClientKind](c.worked.id)
	if err != nil {
		c.t.Fatal(err)
	}
	return id.UUID()
}

// mails has n mails wait in the first cell, the nth until a time, and returns their ids.
func (c *twoCells) mails(n int, due string) []string {
	c.t.Helper()
	ids := []string{}
	for range n {
		ids = append(ids, db.NewID[domain.MessageKind]().UUID())
	}
	c.exec(0, `WITH asked AS (
			INSERT INTO mail_requests (client_id, id, type, user_id, created_at)
			SELECT client_id, m.id, 'welcome', u.id, now()
			FROM (SELECT client_id, id FROM users WHERE client_id = $1 AND status = 'active' LIMIT 1) AS u, unnest($2::uuid[]) AS m (id)
			RETURNING client_id, id
		)
		INSERT INTO outbox (client_id, id, kind, urgency, due_at)
		SELECT client_id, id, 'mail', 2, `+due+` FROM (SELECT client_id, id, row_number() OVER () AS n FROM asked) AS a`, c.workedUUID(), ids)
	c.exec(0, "SELECT pg_notify($1, '')", db.OutboxChannel)
	return ids
}

// checkWork wants the report to be made by the second cell, and each mail to be sent by one
// cell: those that were due later by the second, though the first has their rows at rest.
func (c *twoCells) checkWork() {
	c.t.Helper()
	if c.download(c.underWay.report, "/c01/reports/") == "" {
		c.t.Error("the report is empty")
	}
	for _, cell := range []int{0, 1} {
		c.exec(cell, "UPDATE outbox SET due_at = now() WHERE due_at > now() + interval '1 hour' AND id::text = ANY($1)", c.underWay.later)
		c.exec(cell, "SELECT pg_notify($1, '')", db.OutboxChannel)
	}
	all := append(c.underWay.first, c.underWay.later...)
	c.is(1, "SELECT NOT EXISTS (SELECT FROM outbox WHERE due_at < now() + interval '1 hour')")
	if n := c.text(1, "SELECT count(*)::text FROM mail_requests WHERE sent_at IS NOT NULL AND id::text = ANY($1)", all); n != strconv.Itoa(len(all)) {
		c.t.Errorf("%s of %d mails are sent", n, len(all))
	}
	sent := [2]int{}
	for n, id := range all {
		by := [2]bool{}
		for cell, dir := range c.dirs {
			_, err := os.Stat(filepath.Join(dir, "outbox", id+".eml"))
			if by[cell] = err == nil; by[cell] {
				sent[cell]++
			}
		}
		if by[0] == by[1] || n >= mailsMeanwhile && by[0] {
			c.t.Errorf("mail %d of %d: sent by the cells %v", n, len(all), by)
		}
	}
	c.t.Logf("%d and %d mails were sent by the cells", sent[0], sent[1])
}
