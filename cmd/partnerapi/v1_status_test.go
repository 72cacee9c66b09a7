package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"partnerapi/cmd/internal/v1cmd"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
)

// statusNow is when the tests of the status take place.
var statusNow = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// retired is a demonstration whose keys are each at another place on their way.
type retired struct {
	t     *testing.T
	db    *db.DB
	clock *domain.ManualClock
	flag  string
}

func newRetired(t *testing.T) *retired {
	t.Helper()
	r := &retired{t: t, flag: demonstration(t), clock: domain.NewManualClock(statusNow)}
	r.db = opened(t, r.flag)
	return r
}

// called records calls of a key, of which failed ones are the first, on some days
// before today.
func (r *retired) called(prefix, operation string, from, through, calls, failures int, agents ...string) {
	r.t.Helper()
	surface := "v1"
	if strings.Contains(operation, "/v2/") {
		surface = "v2"
	}
	_, err := r.db.SQL().ExecContext(r.t.Context(), `
		INSERT INTO v1_usage (key_id, day, surface, operation, calls, failures, first_at, last_at, user_agents)
		SELECT k.id, d::date, $2::text, $3::text, $6::int, $7::int, d + interval '1 hour', d + interval '9 hours', string_to_array($8::text, '|')
		FROM api_keys AS k, generate_series($1::timestamptz - $4::int * interval '1 day', $1::timestamptz - $5::int * interval '1 day', interval '1 day') AS d
		WHERE k.prefix = $9::text`,
		domain.DateOf(statusNow).Time(), surface, operation, from, through, calls, failures, strings.Join(agents, "|"), prefix)
	if err != nil {
		r.t.Fatal(err)
	}
}

// scene has keys at all places.
func (r *retired) scene() {
	r.t.Helper()
	const users, nextUsers = "GET /v1/clients/{client_id}/users", "GET /v2/clients/{client_id}/users"
	r.called("pk_demo_all", "GET /v1/clients", 29, 0, 1200, 2, "acme-sync/2.4", "curl/8.5.0")
	r.called("pk_demo_all", "GET /v2/clients", 4, 1, 900, 0, "acme-sync/3.0")
	r.called("pk_demo_all", users, 29, 8, 300, 0, "acme-sync/2.4")
	r.called("pk_demo_all", nextUsers, 10, 0, 310, 0, "acme-sync/3.0")
	r.called("pk_demo_readonly", "POST /v1/sentemails", 20, 0, 40, 40, `<script>alert("1")</script>`, "Reporter (+http://reports.example/bot)")
	r.called("pk_demo_subset", "GET /v1/clients", 14, 12, 7, 0, "night-job")
	r.called("pk_demo_subset", "GET /v2/clients", 11, 2, 9, 3, "night-job")
	r.called("pk_demo_other", "GET /v1/partner", 76, 75, 3, 0)
}

func (r *retired) read(c v1cmd.StatusCmd) *v1cmd.Status {
	r.t.Helper()
	if c.Days == 0 {
		c.Days = 30
	}
	st, err := c.Read(context.Background(), r.db, retire.NewStore(r.db.DB, r.clock), r.clock.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

func (r *retired) table(c v1cmd.StatusCmd) string {
	r.t.Helper()
	var out bytes.Buffer
	if err := r.read(c).WriteTable(&out); err != nil {
		r.t.Fatal(err)
	}
	return out.String()
}

func (r *retired) announce() {
	r.t.Helper()
	a := retire.Announcement{Announced: domain.DateOf(statusNow).AddDays(-10).Time(), Sunset: domain.DateOf(statusNow).AddDays(374).Time()}
	if err := retire.NewStore(r.db.DB, r.clock).Announce(r.t.Context(), a); err != nil {
		r.t.Fatal(err)
	}
}

// golden compares with a file beside this one; -update writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("not %s (%v), which -update writes:\n%s", name, err, got)
	}
}

func TestStatusTable(t *testing.T) {
	t.Parallel()
	r := newRetired(t)
	if got := r.table(v1cmd.StatusCmd{}); got != "The end of v1 is not announced: the command v1 announce does that.\n"+
		"In the last 30 days: 0 calls of v1 by 0 keys, of which 0 failed.\n\nNo key called v1 in the last 400 days.\n" {
		t.Errorf("at first:\n%s", got)
	}
	r.scene()
	r.announce()
	golden(t, "v1_status_golden.txt", []byte(r.table(v1cmd.StatusCmd{})))

	one := r.table(v1cmd.StatusCmd{Key: "pk_demo_subset"})
	if !strings.Contains(one, "night-job") || strings.Contains(one, "pk_demo_all") || !strings.Contains(one, "21 calls of v1 by 1 key") {
		t.Errorf("of one key:\n%s", one)
	}
}

// TestStatusJSON: the items are those of GET /v1/usage.
func TestStatusJSON(t *testing.T) {
	t.Parallel()
	r := newRetired(t)
	r.scene()
	r.announce()
	var out bytes.Buffer
	if err := r.read(v1cmd.StatusCmd{Days: 3}).WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	golden(t, "v1_status_golden.json", out.Bytes())
	var got struct {
		Keys []struct {
			Key   string
			Items []json.RawMessage
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Keys) != 4 {
		t.Fatalf("%d keys (%v)", len(got.Keys), err)
	}
}

// TestStatusItems: the command shows a key's items as the key itself reads them.
func TestStatusItems(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	first := serving(t, flag, "--demo")
	first.do("GET", "/v1/clients", "pk_demo_all", nil, "User-Agent", "acme/1")
	first.get("/v1/clients?limit=x", "pk_demo_all")
	first.get("/v1/partner", "pk_demo_all")
	first.get("/v1/partner", "pk_demo_other")
	first.finish()
	second := serving(t, flag, "--demo")
	own := into[struct{ Items []any }](second.get("/v1/usage", "pk_demo_all")).Items
	var shown struct {
		Keys []struct {
			Key   string
			Items []any
		}
	}
	text := must(t, "v1", "status", flag, "--json", "--key=pk_demo_all", "--days=400")
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err)
	}
	if len(own) != 2 || len(shown.Keys) != 1 || fmt.Sprint(shown.Keys[0].Items) != fmt.Sprint(own) {
		t.Errorf("the key reads %v, the command shows %v", own, shown)
	}
}

func TestStatusPage(t *testing.T) {
	t.Parallel()
	r := newRetired(t)
	r.scene()
	r.announce()
	file := filepath.Join(t.TempDir(), "status.html")
	if err := os.WriteFile(file, []byte("the page before"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.read(v1cmd.StatusCmd{Days: 5}).WritePage(file); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "v1_status_golden.html", page)
	checkStatusPage(t, page)
	for _, words := range []string{
		"<strong>374</strong> days left", "&lt;script&gt;alert", "pk_demo_readonly", "not begun", "<td class=\"num\">6,000</td>",
	} {
		if !strings.Contains(string(page), words) {
			t.Errorf("the page has no %s", words)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); err != nil || len(left) != 1 {
		t.Errorf("files %v (%v)", left, err)
	}
	if err := r.read(v1cmd.StatusCmd{}).WritePage(filepath.Join(t.TempDir(), "none", "status.html")); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}

// voids are the elements of HTML that have no end.
var voids = []string{"meta", "br"}

// checkStatusPage wants a page that needs nothing from elsewhere, runs nothing, and whose
// elements are all closed and named.
func checkStatusPage(t *testing.T, page []byte) {
	t.Helper()
	var open []string
	ids, needed := map[string]bool{}, []string{}
	policy, style := "", ""
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for kind := tokens.Next(); kind != html.ErrorToken; kind = tokens.Next() {
		token := tokens.Token()
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			attributes := map[string]string{}
			for _, a := range token.Attr {
				attributes[a.Key] = a.Val
				elsewhere := slices.Contains([]string{"src", "href", "action", "srcset", "data", "poster", "xlink:href"}, a.Key) && !strings.HasPrefix(a.Val, "#")
				if elsewhere || a.Key == "style" || strings.HasPrefix(a.Key, "on") || strings.Contains(a.Val, "//") {
					t.Errorf("<%s %s=%q>", token.Data, a.Key, a.Val)
				}
			}
			if slices.Contains([]string{"script", "link", "iframe", "object", "embed", "form", "base", "img"}, token.Data) {
				t.Errorf("there is a <%s>", token.Data)
			}
			if token.Data == "th" && attributes["scope"] == "" || token.Data == "svg" && attributes["aria-label"] == "" {
				t.Errorf("a <%s> that says nothing", token.Data)
			}
			if attributes["http-equiv"] != "" {
				policy = attributes["content"]
			}
			if id := attributes["id"]; id != "" && ids[id] {
				t.Errorf("two elements have the id %s", id)
			} else if id != "" {
				ids[id] = true
			}
			needed = append(needed, attributes["aria-labelledby"], strings.TrimPrefix(attributes["href"], "#"))
			if kind == html.StartTagToken && !slices.Contains(voids, token.Data) {
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> within %v", token.Data, open)
			}
			open = open[:len(open)-1]
		case html.TextToken:
			if len(open) > 0 && open[len(open)-1] == "style" {
				style = token.Data
			}
		}
	}
	for _, id := range needed {
		if id != "" && !ids[id] {
			t.Errorf("there is no element %s", id)
		}
	}
	if len(open) > 0 {
		t.Errorf("elements are open: %v", open)
	}
	checkStatusStyle(t, policy, style)
}

// checkStatusStyle wants a policy that allows this style and nothing else.
func checkStatusStyle(t *testing.T, policy, style string) {
	t.Helper()
	digest := sha256.Sum256([]byte(style))
	if want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"; !strings.Contains(policy, want) ||
		!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s, without %s", policy, want)
	}
	if regexp.MustCompile(`url\(|@import|//`).MatchString(style) {
		t.Error("the style refers to something")
	}
}

// TestStatusOfTheEnd: the status says when v1 can be deleted, and by what.
func TestStatusOfTheEnd(t *testing.T) {
	t.Parallel()
	r := newRetired(t)
	r.called("pk_demo_all", "GET /v1/clients", 60, 40, 10, 0)
	r.announce()
	if _, err := r.db.SQL().ExecContext(t.Context(), `UPDATE v1_state SET announced_at = $1, sunset_at = $2, ended_at = $3`,
		statusNow.AddDate(-2, 0, 0), statusNow.AddDate(-1, 0, 0), statusNow.AddDate(0, 0, -20)); err != nil {
		t.Fatal(err)
	}
	says := func(words ...string) {
		t.Helper()
		got := r.table(v1cmd.StatusCmd{})
		for _, w := range words {
			if !strings.Contains(got, w) {
				t.Errorf("does not say %q:\n%s", w, got)
			}
		}
	}
	says("v1 was ended on 2026-05-26", "It can be deleted from 2026-06-25 on, unless it is called before; nobody called it since then.", "  off  ")
	r.called("pk_demo_all", "GET /v1/clients", 5, 5, 1, 1)
	says("It can be deleted from 2026-07-10 on, unless it is called before; its last call was on 2026-06-10.")
	if at := r.read(v1cmd.StatusCmd{Key: "pk_demo_other"}).DeletableAt; at == nil || v1cmd.DayOf(at.Time) != "2026-07-10" {
		t.Errorf("can be deleted at %v", at)
	}
	r.clock.Advance(40 * 24 * time.Hour)
	says("It can be deleted, as nobody called it since then: run make remove-v1", "OF_V1", "idmap/drop.sql", "partnerapi migrate")
	checkStatusPage(t, pageOf(t, r.read(v1cmd.StatusCmd{})))
}

// TestStatusOfTheSunset: days left, and days past.
func TestStatusOfTheSunset(t *testing.T) {
	t.Parallel()
	r := newRetired(t)
	r.announce()
	for _, step := range []struct {
		days        int
		table, page string
	}{
		{0, "The sunset of v1 is on 2027-06-24, in 374 days. It was announced on 2026-06-05.", "<strong>374</strong> days left"},
		{373, "is on 2027-06-24, in 1 day.", "<strong>1</strong> day left"},
		{1, "is on 2027-06-24, in 0 days.", "<strong>0</strong> days left"},
		{3, "The sunset of v1 was on 2027-06-24, 3 days ago: the command v1 end", "<strong>3</strong> days past its sunset"},
	} {
		r.clock.Advance(time.Duration(step.days) * 24 * time.Hour)
		if got := r.table(v1cmd.StatusCmd{}); !strings.Contains(got, step.table) {
			t.Errorf("does not say %q:\n%s", step.table, got)
		}
		page := pageOf(t, r.read(v1cmd.StatusCmd{}))
		checkStatusPage(t, page)
		if !strings.Contains(string(page), step.page) {
			t.Errorf("the page does not say %q", step.page)
		}
	}
}

func pageOf(t *testing.T, st *v1cmd.Status) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := st.WritePage(file); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestStatusCommand runs the command line.
func TestStatusCommand(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	file := filepath.Join(t.TempDir(), "status.html")
	if out := must(t, "v1", "status", flag, "--html="+file); out != "wrote "+file+"\n" {
		t.Errorf("printed %q", out)
	}
	if out := must(t, "v1", "status", flag, "--days=1"); !strings.Contains(out, "In the last 1 day:") {
		t.Errorf("printed %q", out)
	}
	must(t, "v1", "phase", flag, "pk_demo_other", "read_only")
	if out := must(t, "v1", "status", flag, "--key=pk_demo_o"); !strings.Contains(out,
		"pk_demo_other (pk_demo_other) did not call v1 in the last 400 days. It is in phase read_only.\n") {
		t.Errorf("printed %q", out)
	}
	must(t, "v1", "status", flag, "--key=pk_demo_other", "--html="+file)
	if page, err := os.ReadFile(file); err != nil || !strings.Contains(string(page), "It is in phase read_only.") {
		t.Errorf("the page is %s (%v)", page, err)
	}
	refused(t, 1, []string{"v1", "status", flag, "--key=pk_nobody00"}, "pk_nobody00", "keys list")
	refused(t, 1, []string{"v1", "status", flag, "--key=pk_demo"}, "4 keys begin with", "keys list")
	refused(t, 2, []string{"v1", "status", flag, "--days=0"}, "--days", "400")
	refused(t, 2, []string{"v1", "status", flag, "--days=401"}, "--days")
	refused(t, 2, []string{"v1", "status", flag, "--json", "--html=" + file}, "--json", "--html")
	if help := must(t, "v1", "status", "--help"); !strings.Contains(help, "half-way") || !strings.Contains(help, "can be deleted") {
		t.Errorf("the help is\n%s", help)
	}
}

// TestStatusOfOneDay draws a day alone, and a key that is no longer valid.
func TestStatusOfOneDay(t *testing.T) {
	t.Parallel()
	r := newRetired(t)
	r.called("pk_demo_all", "GET /v1/clients", 0, 0, 1_234_567, 0)
	r.called("pk_demo_all", "GET /v1/removed", 0, 0, 1, 0)
	must(t, "keys", "revoke", r.flag, "pk_demo_all")
	st := r.read(v1cmd.StatusCmd{Days: 1})
	page := pageOf(t, st)
	checkStatusPage(t, page)
	if !strings.Contains(string(page), "1,234,567") || !strings.Contains(string(page), "(ended)") {
		t.Errorf("the page is %s", page)
	}
	if v := st.Keys[0].Verdict; v != usage.NotBegun {
		t.Errorf("verdict %s", v)
	}
}
