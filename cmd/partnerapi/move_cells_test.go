//go:build slow

package main

import (
	"bytes"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/db/seed"
	"partnerapi/domain"
)

// TestMoveBehindRouter moves a partner from one cell to another while integrators of both
// versions work and a webhook is delivered to. The cells are processes with a database, a
// key and a store of reports each, behind nginx. The command move is killed at several steps,
// as kill -9 does, is taken back once, and then brought to its end. Callers see some answers
// of 503 to their writes and nothing else of it; those of another partner see nothing.
func TestMoveBehindRouter(t *testing.T) {
	t.Parallel()
	c := newTwoCells(t)
	c.begin()
	c.await(roundsBefore)

	c.killed(1, "LOCK TABLE users IN SHARE MODE", waitsFor("users"))
	c.status(0, "is being copied to cell 01")
	c.run("move", "cancel").wantExit(0, "the move is canceled")
	for i := range c.cells {
		c.status(i, "PARTNER  STATE  BEGAN  MOVED  KEPT UNTIL  ID\n")
	}
	c.is(1, "SELECT NOT EXISTS (SELECT FROM users) AND NOT EXISTS (SELECT FROM risk_history)")
	c.await(roundsBefore)

	c.killed(1, "LOCK TABLE sent_emails IN SHARE MODE", waitsFor("sent_emails"))
	c.is(1, "SELECT EXISTS (SELECT FROM users)")
	c.status(1, "is arriving from cell 00")

	// It waits for a transaction that had begun before it.
	c.killed(0, "SELECT pg_current_xact_id()", "SELECT EXISTS (SELECT FROM moves WHERE step = 'holding')")
	c.status(0, "writes are rejected")

	// The new cell serves the partner, and the old one does not know.
	c.killed(0, "LOCK TABLE moved_keys IN SHARE MODE", waitsFor("moved_keys"))
	c.status(0, "writes are rejected until you run move again")
	c.status(1, "came from cell 00 and is served here")
	c.run("move", "cancel").wantExit(1, "the new cell already serves the partner")
	c.exec(0, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN moves'")
	said := c.run("move").wantExit(0, "cell 01 now serves the partner")
	for asked := true; asked; asked = c.direct[0].do("GET", "/v2/clients", c.key, nil).status == http.StatusOK { // it hears of it late
		page := into[listPage[identified]](c.get("/v2/clients/"+c.quiet.id+"/users?limit=3", c.key))
		if got := idsOf(page.Data); !slices.Equal(got, c.before.v2Users[:3]) {
			t.Fatalf("the users of the client are %v, not %v", got, c.before.v2Users[:3])
		}
		<-time.After(retryPause)
	}

	c.await(roundsAfter)
	for _, i := range c.integrators {
		if i.moves && !strings.Contains(said, prefix(i.key)) {
			t.Errorf("the router's table gets no line of %s: %s", prefix(i.key), said)
		}
	}
	c.end()
	c.check()
}

// twoCells are two cells behind nginx: the demonstration is in the first, and its first
// partner moves to the second.
type twoCells struct {
	t           *testing.T
	flags, keys [2]string // of the databases; the keys that secrets are encrypted with
	dirs        [2]string
	dbs         [2]*db.DB
	cells       [2]*running
	direct      [2]caller // past the router
	router      caller
	events      *receivers
	hook        subscription

	key string // of the partner
	// Nobody writes to the client quiet, and the integrators to the others, the last of
	// which is the other partner's.
	quiet, worked, other tenantOf
	integrators          []*integrator
	before               before
}

// tenantOf is a client in both versions.
type tenantOf struct {
	id     string
	number int
}

func newTwoCells(t *testing.T) *twoCells {
	t.Helper()
	at, router := behindNginx(t, map[string]string{})
	c := &twoCells{t: t, events: openReceivers(t, nil)}
	c.flags = [2]string{demonstration(t), databaseFlag(t)}
	c.router = caller{t, router, &http.Transport{}}
	t.Cleanup(c.router.transport.(*http.Transport).CloseIdleConnections)
	for i, path := range []string{"", "/c01"} {
		c.keys[i], c.dirs[i], c.dbs[i] = freshKey(t), t.TempDir(), opened(t, c.flags[i])
		c.direct[i] = caller{t, "http://" + at[i], c.router.transport}
		c.cells[i] = process(t, c.dirs[i], c.flags[i], fmt.Sprintf("--cell=0%d", i), "--cell-count=16", "--listen="+at[i],
			"--public-url="+c.router.address+path, "--trusted-proxies=127.0.0.1", "--release=latest", "--encryption-key="+c.keys[i],
			"--report-store="+c.store(i), "--webhook-allow-private", "--webhook-ca="+c.events.ca)
	}
	c.key = c.newKey(seed.DemoPartner)
	own, others := c.tenants(c.key), c.tenants(c.newKey(seed.OtherDemoPartner))
	c.quiet, c.worked, c.other = own[0], own[1], others[0]
	c.send()
	c.catalogues()
	return c
}

func (c *twoCells) store(i int) string { return "file://" + filepath.Join(c.dirs[i], "store") }

func (c *twoCells) newKey(partner string) string {
	return newKey(c.t, c.flags[0], "--name=x", "--partner="+partner, "--clients=all", "--scopes=read,write")
}

// tenants are the two oldest clients of a key.
func (c *twoCells) tenants(key string) (list [2]tenantOf) {
	c.t.Helper()
	for i, client := range into[struct{ Data []identified }](c.get("/v2/clients?limit=2&sort=created_at", key)).Data {
		list[i].id = client.ID
	}
	for i, client := range into[struct{ Items []numbered }](c.get("/v1/clients?limit=2", key)).Items {
		list[i].number = client.ID
	}
	return list
}

// get reads by the router.
func (c *twoCells) get(path, key string) response {
	c.t.Helper()
	return c.router.do("GET", path, key, nil).want(http.StatusOK)
}

func (c *twoCells) exec(cell int, statement string, args ...any) {
	c.t.Helper()
	execute(c.t, c.dbs[cell], statement, args...)
}

// text is what a query says in a cell's database, a line for each row.
func (c *twoCells) text(cell int, query string, args ...any) (text string) {
	c.t.Helper()
	query = "SELECT coalesce(string_agg(line, E'\\n'), '') FROM (" + query + ") AS q (line)"
	if err := c.dbs[cell].SQL().QueryRowContext(c.t.Context(), query, args...).Scan(&text); err != nil {
		c.t.Fatalf("%s: %v", query, err)
	}
	return text
}

// is waits until a query says true in a cell's database.
func (c *twoCells) is(cell int, query string) {
	c.t.Helper()
	await(c.t, query, func() bool { return c.text(cell, "SELECT ("+query+")::text") == "true" })
}

// simulated is a template of the operator's own, in the form that the command takes.
const simulated = `[{"name": "Parcel", "subject": "Your parcel", "from_address": "post@example.com", "deception_score": 2,
	"html": "<a href=\"{{url}}\">Track it</a>", "text": "{{url}}", "indicators": {"sender": {"internal": 2}}}]`

// send has a simulated mail sent by an imported template, and keeps its link.
func (c *twoCells) send() {
	t := c.t
	t.Helper()
	must(t, "templates", "import", c.flags[0], "--language=en", "--category=parcels", secretFile(t, []byte(simulated)))
	var template domain.TemplateID
	if err := c.dbs[0].SQL().QueryRow("SELECT id FROM phishing_templates WHERE name = 'Parcel'").Scan(&template); err != nil {
		t.Fatal(err)
	}
	c.before.user = into[struct{ Data []identified }](c.get("/v2/clients/"+c.worked.id+"/users?status=active&limit=1", c.key)).Data[0].ID
	c.before.result = into[struct {
		Sends []struct {
			ResultID string `json:"result_id"`
		}
	}](c.router.do("POST", "/v2/clients/"+c.worked.id+"/phishing/sends", c.key,
		fields{"user_ids": []string{c.before.user}, "template_id": template}).want(http.StatusAccepted)).Sends[0].ResultID
	sent := "FROM phishing_results WHERE template_id = '" + template.UUID() + "' AND sent_at IS NOT NULL"
	c.is(0, "SELECT EXISTS (SELECT "+sent+")")
	// Who follows a link within two seconds is a scanner.
	c.exec(0, "UPDATE phishing_results SET sent_at = sent_at - interval '1 minute' WHERE template_id = $1", template)
	c.before.link = c.linkOfMail()
}

// linkOfMail is the link of a mail in the first cell's outbox.
func (c *twoCells) linkOfMail() string {
	c.t.Helper()
	link := regexp.MustCompile(regexp.QuoteMeta(c.router.address) + `/t/[\w-]+`)
	mails, err := filepath.Glob(filepath.Join(c.dirs[0], "outbox", "*.eml"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range mails {
		raw, err := os.ReadFile(name)
		if err != nil {
			c.t.Fatal(err)
		}
		text, _ := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(raw))) // up to what is not encoded so
		if found := link.Find(text); found != nil {
			return string(found)
		}
	}
	c.t.Fatalf("none of %d mails has a link", len(mails))
	return ""
}

// catalogues brings the catalogues to the second cell, as the command says.
func (c *twoCells) catalogues() {
	t := c.t
	t.Helper()
	dry := append(c.args("move"), "--dry-run")
	template := c.text(0, "SELECT id::text FROM phishing_templates WHERE name = 'Parcel'")
	refused(t, 1, dry, "lacks objects that the partner uses (1 of the kind", template, "of the kind breach): ")
	must(t, "catalogue", "import", c.flags[1], secretFile(t, []byte(must(t, "catalogue", "export", c.flags[0]))))
	if said := must(t, dry...); !strings.Contains(said, "nothing prevents the move") {
		t.Errorf("the dry run says %s", said)
	}
}

// args are the command line of move or of one below it.
func (c *twoCells) args(words ...string) []string {
	args := append(words, seed.DemoPartner, c.flags[0], "--to="+strings.TrimPrefix(c.flags[1], "--database-url="))
	if len(words) == 1 {
		args = append(args, "--encryption-key="+c.keys[0], "--to-key="+secretFile(c.t, []byte(c.keys[1])),
			"--report-store="+c.store(0), "--to-report-store="+c.store(1))
	}
	return args
}

// movedByAnother reports whether the command ended because another one moves the partner:
// PostgreSQL keeps the lock of one that was killed for a moment more.
func (r *running) movedByAnother() bool {
	<-r.ended
	return strings.Contains(r.logs.String(), "another command is moving this partner")
}

// run runs a command to its end.
func (c *twoCells) run(words ...string) *running {
	c.t.Helper()
	r := spawned(c.t, c.args(words...)...)
	for try := 1; r.movedByAnother() && try < mostTries; try++ {
		<-time.After(retryPause)
		r = spawned(c.t, c.args(words...)...)
	}
	return r
}

// wantExit wants a command that has ended to have exited with a status and to have said the
// words. It returns what it said.
func (r *running) wantExit(code int, words string) string {
	r.t.Helper()
	said := r.out.String() + r.logs.String()
	if r.code != code || !strings.Contains(said, words) {
		r.t.Fatalf("exit %d, not %d with %q:\n%s", r.code, code, words, said)
	}
	r.t.Log(said)
	return said
}

// waitsFor is the query whether anybody waits for a lock of a table.
func waitsFor(table string) string {
	return `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = '` + table + `'::regclass
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`
}

// killed moves the partner until a query says true, while a transaction of a cell's database
// holds that up, and kills the command there.
func (c *twoCells) killed(cell int, holdsUp, reached string) {
	c.t.Helper()
	tx, err := c.dbs[cell].SQL().BeginTx(c.t.Context(), nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(c.t.Context(), holdsUp); err != nil {
		c.t.Fatalf("%s: %v", holdsUp, err)
	}
	r := spawned(c.t, c.args("move")...)
	await(c.t, reached, func() (is bool) {
		if err := tx.QueryRowContext(c.t.Context(), reached).Scan(&is); err != nil {
			c.t.Fatalf("%s: %v", reached, err)
		}
		select {
		case <-r.ended:
			if is {
				break
			}
			if !r.movedByAnother() {
				c.t.Fatalf("the move ends before %s:\n%s", reached, r.logs)
			}
			r = spawned(c.t, c.args("move")...)
		default:
		}
		return is
	})
	r.kill()
	c.t.Logf("killed at %s:\n%s", reached, r.logs)
}

// status wants move status of a cell to have the words.
func (c *twoCells) status(cell int, words string) {
	c.t.Helper()
	if said := must(c.t, "move", "status", c.flags[cell]); !strings.Contains(said, words) {
		c.t.Errorf("in cell %d the status is not %q but %s", cell, words, said)
	}
}
