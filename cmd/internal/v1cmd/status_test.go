package v1cmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/db/dbtest/fixture"
	"partnerapi/db/dbtest/worldtest"
	"partnerapi/domain"
	"partnerapi/idmap/idmaptest"
	"partnerapi/platform/site/sitetest"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// noon is when the tests take place.
var noon = worldtest.Noon

// world is a service whose keys call version 1.
type world struct {
	*worldtest.World
	t   *testing.T
	url string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	url := dbtest.URL(t, idmaptest.Schema)
	d, err := db.Open(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	w := &world{worldtest.Of(t, d, domain.NewManualClock(noon)), t, url}
	for partner, keys := range map[string][]string{"Northlight": {"pk_all", "pk_readonly", "pk_subset"}, "Tidewater": {"pk_other"}} {
		id := db.NewID[domain.PartnerKind]()
		w.Add("partners", fixture.Row{"id": id, "name": partner, "name_key": partner})
		for _, key := range keys {
			w.Exec(`INSERT INTO api_keys (id, partner_id, name, prefix, digest, all_clients, scopes, networks, demo, created_at)
				VALUES (gen_random_uuid(), $1, $2, $2, $3, true, '{read}', '{}', false, $4)`, id, key, []byte(key), noon)
		}
	}
	return w
}

// called records calls of a key, of which failed ones are the first, on some days
// before today.
func (w *world) called(prefix, operation string, from, through, calls, failures int, agents ...string) {
	w.t.Helper()
	surface := usage.V1
	if slices.ContainsFunc(agents, func(a string) bool { return strings.HasPrefix(a, usage.ParityAgent) }) {
		surface = usage.Parity
	}
	if strings.Contains(operation, "/v2/") {
		surface = usage.V2
	}
	w.Exec(`INSERT INTO v1_usage (key_id, day, surface, operation, calls, failures, first_at, last_at, user_agents)
		SELECT k.id, d::date, $2::text, $3::text, $6::int, $7::int, d + interval '1 hour', d + interval '9 hours', string_to_array($8::text, '|')
		FROM api_keys AS k, generate_series($1::timestamptz - $4::int * interval '1 day', $1::timestamptz - $5::int * interval '1 day', interval '1 day') AS d
		WHERE k.prefix = $9::text`,
		domain.DateOf(noon).Time(), string(surface), operation, from, through, calls, failures, strings.Join(agents, "|"), prefix)
}

// scene has keys at all places on their way, and announces the end.
func (w *world) scene() {
	w.t.Helper()
	const users, nextUsers = "GET /v1/clients/{client_id}/users", "GET /v2/clients/{client_id}/users"
	w.called("pk_all", "GET /v1/clients", 29, 0, 1200, 2, "acme-sync/2.4", "curl/8.5.0")
	w.called("pk_all", "GET /v2/clients", 4, 1, 900, 0, "acme-sync/3.0")
	w.called("pk_all", users, 29, 8, 300, 0, "acme-sync/2.4")
	w.called("pk_all", nextUsers, 10, 0, 310, 0, "acme-sync/3.0")
	w.called("pk_readonly", "POST /v1/sentemails", 20, 0, 40, 40, `<script>alert("1")</script>`, "Reporter (+http://reports.example/bot)")
	w.called("pk_subset", "GET /v1/clients", 14, 12, 7, 0, "night-job")
	w.called("pk_subset", "GET /v2/clients", 11, 2, 9, 3, "night-job")
	w.called("pk_other", "GET /v1/partner", 76, 75, 3, 0)
	w.announce()
}

func (w *world) announce() {
	w.t.Helper()
	a := retire.Announcement{Announced: domain.DateOf(noon).AddDays(-10).Time(), Sunset: domain.DateOf(noon).AddDays(374).Time()}
	w.Must(retire.NewStore(w.DB.DB, w.Clock).Announce(w.t.Context(), a))
}

func (w *world) read(c StatusCmd) *Status {
	w.t.Helper()
	if c.Days == 0 {
		c.Days = 30
	}
	st, err := c.Read(w.t.Context(), w.DB, retire.NewStore(w.DB.DB, w.Clock), w.Clock.Now())
	w.Must(err)
	return st
}

func (w *world) table(c StatusCmd) string {
	w.t.Helper()
	var out bytes.Buffer
	w.Must(w.read(c).WriteTable(&out, c.Operations))
	return out.String()
}

// text is the status as text with spaces in place of the ends of lines.
func (w *world) text(c StatusCmd) string {
	w.t.Helper()
	return strings.Join(strings.Fields(w.table(c)), " ")
}

// page is the page of a status, which needs nothing from elsewhere and runs nothing.
func (w *world) page(c StatusCmd) string {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "status.html")
	w.Must(os.WriteFile(file, []byte("the page before"), 0o600))
	w.Must(w.read(c).WritePage(file))
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		w.t.Errorf("files %v (%v)", left, err)
	}
	text, err := os.ReadFile(file)
	w.Must(err)
	page := string(text)
	policy, style := "", ""
	for _, n := range sitetest.Read(w.t, file, page).Nodes {
		switch {
		case slices.Contains([]string{"script", "link", "iframe", "object", "embed", "form", "base", "img"}, n.Data):
			w.t.Errorf("there is a <%s>", n.Data)
		case n.Data == "th" && sitetest.Attribute(n, "scope") == "", n.Data == "svg" && sitetest.Attribute(n, "aria-label") == "":
			w.t.Errorf("a <%s> that says nothing", n.Data)
		case n.Data == "style":
			style = n.FirstChild.Data
		case sitetest.Attribute(n, "http-equiv") != "":
			policy = sitetest.Attribute(n, "content")
		}
		if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool {
			return strings.Contains(a.Val, "//") || slices.Contains([]string{"src", "href", "action", "srcset", "data", "poster"}, a.Key) && !strings.HasPrefix(a.Val, "#")
		}) {
			w.t.Errorf("<%s %v> leads elsewhere", n.Data, n.Attr)
		}
	}
	digest := sha256.Sum256([]byte(style))
	if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"; !strings.Contains(policy, want) ||
		!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		w.t.Errorf("the policy is %s, without %s", policy, want)
	}
	if regexp.MustCompile(`url\(|@import|//`).MatchString(style) {
		w.t.Error("the style refers to something")
	}
	return page
}

// json is a status as JSON, on one line.
func (w *world) json(c StatusCmd) string {
	w.t.Helper()
	var out, compact bytes.Buffer
	w.Must(w.read(c).WriteJSON(&out))
	w.Must(json.Compact(&compact, out.Bytes()))
	return compact.String()
}

// holds wants a text to hold all of the parts.
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("has no %s:\n%s", part, text)
		}
	}
}

// TestStatusOfParity verifies that the calls of parity are shown apart, as table, JSON and page, and that a key which
// only parity used neither appears among the callers, nor holds up the end of v1, nor is named in a reminder.
func TestStatusOfParity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.admin("Tidewater", "owner@tidewater.example", "owner")
	w.called("pk_all", "GET /v1/clients", 1, 1, 5, 0, "acme-sync/2.4")
	w.called("pk_other", "GET /v1/partner", 2, 1, 30, 4, usage.ParityAgent+"2.4")
	w.called("pk_other", "GET /v1/clients", 50, 50, 7, 0, usage.ParityAgent+"2.4")
	w.announce()

	holds(t, w.table(StatusCmd{Operations: true}), "In the last 30 days: 5 calls of v1 by 1 key, of which 0 failed.\n",
		"\nCalls of v1 by partnerapi parity, which compares both versions; they are not counted above:\n"+
			"KEY       NAME      PARTNER    LAST CALL          CALLS  FAILED\npk_other  pk_other  Tidewater  2026-06-14 09:00Z     60       8\n")
	holds(t, w.json(StatusCmd{}), `"parity":[{"key":"pk_other","name":"pk_other","partner":"Tidewater","live":true,`+
		`"last_at":"2026-06-14T09:00:00.000000Z","calls":60,"failures":8,"items":[{"day":"2026-06-14","operation":"GET /v1/partner","calls":30,`,
		`"user_agents":["partnerapi-parity/2.4"],"successor":"GET /v2/partner"}`)
	page := w.page(StatusCmd{})
	holds(t, page, `<h2 id="parity">Comparisons</h2>`, `<code>pk_other</code>`)
	if strings.Contains(w.page(StatusCmd{Key: "pk_all"}), "Comparisons") {
		t.Error("the page of a key that parity never used has comparisons")
	}
	if st := w.read(StatusCmd{Key: "pk_other"}); len(st.Keys) != 0 || len(st.Parity) != 1 || st.Parity[0].Calls != 60 {
		t.Errorf("got %+v, want a key that only parity used", st)
	}

	last, err := usage.LastCalls(t.Context(), w.DB, noon.Add(-retire.CallerWindow))
	if err != nil || len(last) != 1 || last[0].Prefix != "pk_all" {
		t.Errorf("got last calls %v (%v), want one", last, err)
	}
	mail := w.tell(mailFlags{DryRun: true}, retire.RemindMail, func(context.Context) error { return nil })
	if !strings.Contains(mail, "To: owner@tidewater.example") || strings.Contains(mail, "pk_other") {
		t.Errorf("the reminder is\n%s", mail)
	}
}

// statusHead is the beginning of the status of the scene.
const statusHead = `The sunset of v1 is on 2027-06-24, in 374 days. It was announced on 2026-06-05.
New keys can use v1. To change that, run partnerapi v1 phase --new off.
In the last 30 days: 43,461 calls of v1 by 3 keys, of which 900 failed.
At the rate of the last 4 weeks, the last call will be around 2026-10-20, 247
days before the sunset.

Can v1 end? Not yet: 3 conditions are not met.
`

// statusKeys is the end of the status of the scene.
const statusKeys = `
Keys that still have to move:
KEY          NAME         PARTNER     LAST CALL    CALLS  VERDICT
pk_readonly  pk_readonly  Northlight  2026-06-15     840  not begun
pk_all       pk_all       Northlight  2026-06-15  42,600  half-way
2 other keys have moved, stopped or ended; --operations lists all keys.
`

// statusOperations is the end of the status of the scene with all operations.
const statusOperations = `
KEY          NAME         PARTNER     PHASE  LAST CALL           CALLS  FAILED  VERDICT
pk_all       pk_all       Northlight  on     2026-06-15 09:00Z  42,600      60  half-way
pk_readonly  pk_readonly  Northlight  on     2026-06-15 09:00Z     840     840  not begun
pk_subset    pk_subset    Northlight  on     2026-06-03 09:00Z      21       0  moved
pk_other     pk_other     Tidewater   on     2026-04-01 09:00Z       0       0  stopped

KEY          OPERATION                          SUCCESSOR                          LAST CALL           CALLS  FAILED  SUCCESSOR'S  VERDICT    USER AGENTS
pk_all       GET /v1/clients                    GET /v2/clients                    2026-06-15 09:00Z  36,000      60        3,600  half-way   acme-sync/2.4, curl/8.5.0
pk_all       GET /v1/clients/{client_id}/users  GET /v2/clients/{client_id}/users  2026-06-07 09:00Z   6,600       0        3,410  moved      acme-sync/2.4
pk_readonly  POST /v1/sentemails                GET /v2/users/{user_id}/emails     2026-06-15 09:00Z     840     840            0  not begun  <script>alert("1")</script>, Reporter (+http://reports.example/bot)
pk_subset    GET /v1/clients                    GET /v2/clients                    2026-06-03 09:00Z      21       0           90  moved      night-job
pk_other     GET /v1/partner                    GET /v2/partner                    2026-04-01 09:00Z       0       0            0  stopped    -
`

// checkWidth verifies that no line is wider than lineWidth, except commands.
func checkWidth(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > lineWidth && !strings.Contains(line, "→") {
			t.Errorf("got a line of %d characters, want at most %d: %s", n, lineWidth, line)
		}
	}
}

// TestStatus: when v1 ends, each key, and each of its operations with its successor, as a
// table, as JSON and as a page.
func TestStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const announce = "\n      → partnerapi v1 announce --sunset 2027-06-15\n"
	if got := w.table(StatusCmd{}); got != "The end of v1 is not announced. To announce it, run partnerapi v1 announce.\n"+
		"New keys can use v1. To change that, run partnerapi v1 phase --new off.\n"+
		"In the last 30 days: 0 calls of v1 by 0 keys, of which 0 failed.\nv1 was not called in the 4 weeks before today.\n\n"+
		"Can v1 end? Not yet: 2 conditions are not met.\nfail  the end of version 1 is not announced"+announce+
		"fail  the twelve months' notice has not begun"+announce+
		"ok    no key called version 1 in the last 30 days\nok    no release of version 2 has been served yet\n"+
		"warn  2 partners were never notified of the end\n        Northlight (no owner or admin)\n        Tidewater (no owner or admin)\n"+
		"      → partnerapi v1 announce --sunset 2027-06-15\n\nNo key called v1 in the last 400 days.\n" {
		t.Errorf("at first:\n%s", got)
	}
	w.scene()
	got := w.table(StatusCmd{})
	holds(t, got, statusHead, statusKeys)
	checkWidth(t, got)
	all := w.table(StatusCmd{Operations: true})
	if !strings.HasSuffix(all, statusOperations) {
		t.Errorf("with all operations:\n%s", all)
	}
	one := w.table(StatusCmd{Key: "pk_subset"})
	if strings.Contains(one, "pk_all") {
		t.Errorf("of one key:\n%s", one)
	}
	holds(t, one, "21 calls of v1 by 1 key", "No keys have to move.\n1 other key has moved")
	holds(t, w.table(StatusCmd{Key: "pk_subset", Operations: true}), "night-job")

	holds(t, w.json(StatusCmd{Days: 3}),
		`"days":3,"announcement":{"announced_at":"2026-06-05T00:00:00.000000Z","sunset_at":"2027-06-24T00:00:00.000000Z","days_left":374},"ended_at":null,"deletable_at":null,"new_keys":"on","rehearsals":[],"parity":[],"mails":[],"keys":[{"key":"pk_all",`,
		`"live":true,"phase":"on","phase_until":null,"last_at":"2026-06-15T09:00:00.000000Z","calls":3600,"failures":6,"verdict":"half-way","operations":[{"operation":"GET /v1/clients",`,
		`"successor_calls":1800,"successor_last_at":"2026-06-14T09:00:00.000000Z","user_agents":["acme-sync/2.4","curl/8.5.0"]}`)

	holds(t, w.page(StatusCmd{Days: 5}),
		"<strong>374</strong> days left", "&lt;script&gt;alert", "pk_readonly", "not begun", "<td class=\"num\">6,000</td>",
		// The days and the lines of the chart, of which today's part is apart, and an operation beside its successor.
		`from 2026-06-11 to 2026-06-15: 6,200 of v1, 1,240 today so far; 5,177 of its successors`,
		`<polyline class="calls" points="64.0,`, `<polyline class="calls today" points="`, `<polyline class="successors today" points="`,
		`<line class="event"`, ">now</text>",
		`<code>GET /v1/clients</code><br><code class="next">GET /v2/clients</code>`)
	if err := w.read(StatusCmd{}).WritePage(filepath.Join(t.TempDir(), "none", "status.html")); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}

// TestStatusOfRehearsals: the last rehearsal of each key is listed, also of one that never called
// v1, as a table, as JSON and on the page.
func TestStatusOfRehearsals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := retire.NewStore(w.DB.DB, w.Clock)
	start := func(prefix string, minutes time.Duration) {
		t.Helper()
		keys, err := w.Keys(t.Context())
		w.Must(err)
		key, err := findKey(keys, prefix)
		w.Must(err)
		_, err = store.StartRehearsal(t.Context(), key.ID, minutes*time.Minute)
		w.Must(err)
	}
	w.Clock.Set(noon)
	start("pk_all", 10)
	w.Clock.Advance(time.Hour)
	start("pk_other", 30)

	const table = `No key called v1 in the last 400 days.

Rehearsals:
KEY       PARTNER     LAST REHEARSAL     END
pk_other  Tidewater   2026-06-15 13:00Z  running until 2026-06-15 13:30Z
pk_all    Northlight  2026-06-15 12:00Z  2026-06-15 12:10Z
`
	if got := w.table(StatusCmd{}); !strings.HasSuffix(got, table) {
		t.Errorf("printed\n%s", got)
	}
	if got := w.table(StatusCmd{Key: "pk_all"}); strings.Contains(got, "running") || !strings.Contains(got, "2026-06-15 12:10Z") {
		t.Errorf("of one key\n%s", got)
	}
	holds(t, w.json(StatusCmd{}), `"rehearsals":[{"key":"pk_other","name":"pk_other","partner":"Tidewater","started_at":"2026-06-15T13:00:00.000000Z",`+
		`"ended_at":"2026-06-15T13:30:00.000000Z","running":true},{"key":"pk_all",`, `"running":false}]`)
	holds(t, w.page(StatusCmd{}), "<h2 id=\"rehearsals\">Rehearsals</h2>", "running until 2026-06-15 13:30Z")
}

// TestStatusUntilTheEnd: days left and days past, then when v1 can be deleted, and by what.
func TestStatusUntilTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.announce()
	for _, step := range []struct {
		days        int
		table, page string
	}{
		{0, "The sunset of v1 is on 2027-06-24, in 374 days. It was announced on 2026-06-05.", "<strong>374</strong> days left"},
		{373, "is on 2027-06-24, in 1 day.", "<strong>1</strong> day left"},
		{1, "is on 2027-06-24, in 0 days.", "<strong>0</strong> days left"},
		{3, "The sunset of v1 was on 2027-06-24, 3 days ago. To switch v1 off, run partnerapi v1 end.", "<strong>3</strong> days past the sunset"},
	} {
		w.Clock.Advance(time.Duration(step.days) * 24 * time.Hour)
		holds(t, w.text(StatusCmd{}), step.table)
		holds(t, w.page(StatusCmd{}), step.page)
	}

	w.Clock.Set(noon)
	w.called("pk_all", "GET /v1/clients", 60, 40, 10, 0)
	w.Exec(`UPDATE v1_state SET announced_at = $1, sunset_at = $2, ended_at = $3`,
		noon.AddDate(-2, 0, 0), noon.AddDate(-1, 0, 0), noon.AddDate(0, 0, -20))
	if text := w.table(StatusCmd{}); strings.Contains(text, "New keys") {
		t.Errorf("after the end:\n%s", text)
	}
	if st := w.read(StatusCmd{}); len(st.Checklist) != 0 || st.LastCall != nil {
		t.Errorf("got %+v, want no checklist and no forecast after the end", st)
	}
	holds(t, w.text(StatusCmd{Operations: true}), "v1 ended on 2026-05-26", " off ",
		"It can be deleted from 2026-06-25 on, unless it is called before then; no one has called it since then.")
	w.called("pk_all", "GET /v1/clients", 5, 5, 1, 1)
	holds(t, w.text(StatusCmd{}), "It can be deleted from 2026-07-10 on, unless it is called before then; its last call was on 2026-06-10.")
	if at := w.read(StatusCmd{Key: "pk_other"}).DeletableAt; at == nil || FormatDay(at.Time) != "2026-07-10" {
		t.Errorf("can be deleted at %v", at)
	}
	w.Clock.Advance(40 * 24 * time.Hour)
	holds(t, w.text(StatusCmd{}), "It can be deleted, as no one has called it since then. In the sources, run make remove-v1", "OF_V1", "idmap/drop.sql", "partnerapi migrate")
	w.page(StatusCmd{})
}

// TestStatusOfOneDay draws a day alone, and a key that is no longer valid.
func TestStatusOfOneDay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.called("pk_all", "GET /v1/clients", 0, 0, 1_234_567, 0)
	w.called("pk_all", "GET /v1/removed", 0, 0, 1, 0)
	w.Exec("UPDATE api_keys SET revoked_at = now() WHERE prefix = 'pk_all'")
	holds(t, w.page(StatusCmd{Days: 1}), "1,234,567", "(ended)")
	if v := w.read(StatusCmd{Days: 1}).Keys[0].Verdict; v != usage.NotBegun {
		t.Errorf("verdict %s", v)
	}
}

// TestStatusByPartner verifies that the page has partners and keys in the order of verdicts and calls, with the contacts
// of each partner and the last notice to it.
func TestStatusByPartner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.called("pk_other", "GET /v1/clients", 3, 0, 10_000, 0)
	w.admin("Northlight", "owner@northlight.example", "owner")
	w.admin("Northlight", "ada@northlight.example", "admin")
	w.tell(mailFlags{}, retire.AnnounceMail, func(context.Context) error { return nil })
	w.tell(mailFlags{}, retire.RemindMail, func(context.Context) error { return nil })
	w.Exec("UPDATE partner_mails SET sent_at = $1 WHERE recipient = 'ada@northlight.example'", noon)

	var order []string
	groups := w.read(StatusCmd{}).Groups()
	for _, g := range groups {
		for _, k := range g.Keys {
			order = append(order, g.Name+" "+k.Shown)
		}
	}
	want := []string{"Tidewater pk_other", "Northlight pk_readonly", "Northlight pk_all", "Northlight pk_subset"}
	if !slices.Equal(order, want) {
		t.Errorf("got %q, want %q", order, want)
	}
	holds(t, w.page(StatusCmd{}), "<h3>Northlight</h3>", "ada@northlight.example, owner@northlight.example · last notice v1-remind on 2026-06-15: 1 email sent, 1 waiting",
		"<h3>Tidewater</h3>", "no owner or admin to contact · never notified", `<span class="outcome unmet">not met</span>`,
		`<code class="command">partnerapi v1 remind --partner &#39;Tidewater&#39;</code>`)
	holds(t, w.table(StatusCmd{}), "Emails to partners: 2 sent, 2 waiting, 0 failed; the last was requested on\n2026-06-15.\n")
	checkWidth(t, w.table(StatusCmd{}))
}

// TestTimeline verifies that phases and brownouts are shown, as text, as JSON and on the time axis of the page, and those
// of another key not for one key.
func TestTimeline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	store := retire.NewStore(w.DB.DB, w.Clock)
	keys, err := w.Keys(t.Context())
	w.Must(err)
	key, err := findKey(keys, "pk_all")
	w.Must(err)
	w.Must(store.SetPhase(t.Context(), retire.Scope{}, retire.Brownout, time.Time{}))
	w.Must(store.SetPhase(t.Context(), retire.Scope{Partner: key.PartnerID}, retire.ReadOnly, noon.AddDate(0, 0, 9)))
	w.Must(store.SetPhase(t.Context(), retire.Scope{Key: key.ID}, retire.On, noon.AddDate(0, 0, 9)))
	_, err = store.AddBrownout(t.Context(), retire.Window{Start: noon.AddDate(0, 0, 2), For: time.Hour, Every: 48 * time.Hour, Count: 4})
	w.Must(err)
	_, err = store.AddBrownout(t.Context(), retire.Window{Start: noon.AddDate(1, 0, 0), For: time.Hour, Count: 1, Keys: []domain.KeyID{key.ID}})
	w.Must(err)

	w.Exec(`INSERT INTO v1_refusals (kind, id, day, refused) VALUES ('brownout', 1, '2026-06-17', 1000), ('brownout', 1, '2026-06-19', 240), ('phase', 2, '2026-06-17', 12)`)

	holds(t, w.table(StatusCmd{Operations: true}), `
Phases and brownouts:
WHAT             KEYS                          410  WHEN
phase brownout   all keys                        -  since 2026-06-15 12:00Z
phase read_only  keys of Northlight             12  from 2026-06-15 12:00Z until 2026-06-24 12:00Z
brownout 1       all keys in phase brownout  1,240  1h0m0s from 2026-06-17T12:00:00Z, every 48h0m0s, 4 times, the last until 2026-06-23T13:00:00Z
brownout 2       pk_all                          0  1h0m0s from 2027-06-15T12:00:00Z
`)
	holds(t, w.table(StatusCmd{}), `
WHAT             KEYS                          410  NEXT
phase brownout   all keys                        -  no end
phase read_only  keys of Northlight             12  until 2026-06-24 12:00Z
brownout 1       all keys in phase brownout  1,240  2026-06-17T12:00:00Z
`)
	holds(t, w.json(StatusCmd{}), `"timeline":[{"what":"phase brownout","keys":"all keys","from":"2026-06-15T12:00:00.000000Z","to":null,"windows":0,"refused":null},`,
		`{"what":"brownout 1","keys":"all keys in phase brownout","from":"2026-06-17T12:00:00.000000Z","to":"2026-06-23T13:00:00.000000Z","windows":4,"refused":1240},`)
	page := w.page(StatusCmd{Days: 10})
	holds(t, page, `<h2 id="timeline">Phases and brownouts</h2>`, "brownout 1: all keys in phase brownout, 1,240 × 410</text>", ">now</text>")
	if strings.Contains(page, "brownout 2: ") { // it lies beyond the axis, and is in the table
		t.Error("the axis of 10 days has a window of next year")
	}
	if n := strings.Count(page, `<rect class="bar`); n != 6 {
		t.Errorf("got %d bars, want one for each of 2 phases and 4 windows", n)
	}
	if text := w.table(StatusCmd{Key: "pk_other"}); strings.Contains(text, "read_only") || strings.Contains(text, "brownout 2") || !strings.Contains(text, "brownout 1") {
		t.Errorf("of one key:\n%s", text)
	}
}
