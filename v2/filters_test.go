package v2_test

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// filterMatrix reads lists of the demonstration with their filters.
type filterMatrix struct {
	*v2test.Harness
	key string
	// at are the ids of paths. own are ids that filters may name, by the filter's name,
	// and others' those of another partner.
	at, own, others ids
}

// TestFilterMatrix reads every list with every text of every filter, and with every two
// filters: a filter only narrows what the key reaches, some text of it narrows, another
// partner's id selects nothing, two filters select what both do, and a cursor of the list
// without the filter is refused with it. A new filter is among them by its declaration.
func TestFilterMatrix(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited})
	e := v2test.NewExamples(h, "examples", false)
	d := newDemo(t, h, e)
	m := filterMatrix{Harness: h, key: e.Key, at: d.of("user_id", d.user, "webhook_id", d.webhook)}
	client := "/v2/clients/" + d.client
	m.at["collection_id"] = m.longest(t, client+"/collections", "/members")
	m.at["policy_id"] = m.partlySigned(t, client+"/policies")
	result := h.Get(client+"/phishing/results?limit=1", e.Key).Want(200).Field("data").([]any)[0].(map[string]any)
	m.own = d.of("ids", d.client, "collection_id", d.collections[1], "result_id", result["result_id"].(string), "user_id", result["user_id"].(string),
		"course_id", d.course, "label", d.label,
		"group_id", h.All(client+"/users?limit=1", e.Key)[0]["group"].(map[string]any)["id"].(string),
		"external_id", h.Get(client, e.Key).Want(200).Field("external_id").(string),
		"key", domain.CallerFrom(h.As(e.Key)).Prefix, "operation", "users.update")
	m.others = othersIDs(h)
	demoLists(h, d)

	m.rows(t, "/v2/clients?sort=risk_score") // refreshes every summary
	spreadChanges(h)
	for _, o := range h.API.Set.All() {
		if filters := m.filters(t, o); len(filters) > 0 && o.Meta().ID != sums {
			t.Run(o.Meta().ID, func(t *testing.T) { m.in(t).check(t, o, filters) })
		}
	}
}

// periodOf are the parameters of lists that change items and select none.
var periodOf = map[string][]string{"usage.list": {"start_on", "end_on", "interval"}}

// sums is the list whose filters select what its items sum up, and not items.
const sums = "dark_web.users.list"

// demoLists adds items to lists of which the demonstration has too few.
func demoLists(h *v2test.Harness, d demo) {
	now := h.Clock.Now()
	client, user := idOf[domain.ClientKind](h.T, d.client), idOf[domain.UserKind](h.T, d.user)
	h.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		VALUES ($1, $2, gen_random_uuid(), $3, 'a@example.com', 'S', 'smtp', 'welcome')`, client, user, now)
	h.Exec(`INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at)
		SELECT $1, gen_random_uuid(), 'completed', 'schedule', day, day FROM unnest($2::timestamptz[]) AS day`,
		client, []time.Time{now, now.AddDate(0, 0, -30)})
	h.Exec(`INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id, client_id)
		SELECT $2::timestamptz - n % 4 * interval '8 days', k.partner_id, k.id, k.prefix, (ARRAY['users.update', 'users.create'])[n % 2 + 1],
			'', '', '', CASE WHEN n % 3 = 0 THEN $1::uuid END
		FROM clients AS c JOIN api_keys AS k USING (partner_id), generate_series(1, 24) AS n WHERE c.id = $1`, client, now)
	h.Exec(userEverywhere, now)
	h.Exec("UPDATE users SET department = NULL WHERE client_id = $1 AND last_name < 'D'", client)
	h.Exec("UPDATE users SET manager_email = 'boss@example.com' WHERE client_id = $1 AND last_name < 'M'", client)
	h.Exec("DELETE FROM events") // which hold a feed back that is read by time
	h.Exec(`INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
		SELECT partner_id, 1000 + n, id, gen_random_uuid(), (ARRAY['user.updated', 'client.updated'])[n % 2 + 1],
			$2::timestamptz - (n / 2 % 2 * 25 + 1) * interval '1 day', `+plainEvent+`
		FROM (SELECT *, row_number() OVER () AS n FROM clients
			WHERE partner_id = (SELECT partner_id FROM clients WHERE id = $1)) AS c`, client, now)
}

// in is the matrix for a subtest.
func (m filterMatrix) in(t *testing.T) filterMatrix {
	h := *m.Harness
	m.Harness, h.T = &h, t
	return m
}

// longest is the id, of a list's, whose list of another path has the most items.
func (m filterMatrix) longest(t *testing.T, path, below string) (id string) {
	most := 0
	for _, one := range column(m.Get(path, m.key).Want(200), "id") {
		if n := len(m.rows(t, path+"/"+one+below)); n > most {
			id, most = one, n
		}
	}
	return id
}

// partlySigned is the id of a policy that some of its users have signed, and others not.
func (m filterMatrix) partlySigned(t *testing.T, path string) string {
	for _, id := range column(m.Get(path, m.key).Want(200), "id") {
		users := path + "/" + id + "/users?status="
		if len(m.rows(t, users+"signed")) > 0 && len(m.rows(t, users+"unsigned")) > 0 {
			return id
		}
	}
	t.Fatal("the demonstration has no policy that some users have signed")
	return ""
}

// spreadChanges makes of every two rows one changed long ago and one changed today, where the demonstration changed all
// at the same time.
func spreadChanges(h *v2test.Harness) {
	now := h.Clock.Now()
	for _, t := range []struct{ table, keys, column string }{
		{"clients", "partner_id, id", "updated_at"}, {"collections", "client_id, id", "updated_at"},
		{"framework_assignments", "client_id, id", "changed_at"}, {"assignments", "client_id, user_id, course_id, round", "updated_at"},
	} {
		h.Exec(fmt.Sprintf(`WITH p AS (SELECT ctid AS row, row_number() OVER (ORDER BY %[2]s) AS place FROM %[1]s)
			UPDATE %[1]s AS t SET %[3]s = CASE WHEN place %% 2 = 1 THEN $1::timestamptz ELSE $2 END FROM p WHERE t.ctid = p.row`,
			t.table, t.keys, t.column), now.AddDate(0, 0, -30), now)
	}
	h.Exec("UPDATE framework_assignments SET created_at = changed_at") // a new one has changed too
}

// othersIDs are ids of another partner's objects, by the names of filters.
func othersIDs(h *v2test.Harness) ids {
	other := h.AddPartner("Another partner")
	client := h.AddClient(other, "Theirs")
	h.Exec("UPDATE clients SET external_id = 'their own' WHERE id = $1", client.ID)
	user := h.AddUser(other, client.ID, "theirs@example.com")
	parts := furnish(h, client.ID, user.ID, 1)
	at, result := parts.with(client.ID, user.ID), db.NewID[domain.ResultKind]()
	h.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, created_at, updated_at)
		VALUES ($1, $2, $3, $4, 'sent', $5, $5, $5, $5)`, client.ID, result, user.ID, parts.template, h.Clock.Now())
	at["ids"], at["result_id"] = at["client_id"], result.String()
	at["external_id"], at["course_id"], at["label"], at["group_id"] = "their own", strangers()["course_id"], "their label", user.Group.ID.String()
	return at
}

// filters are queries with one filter of a list each, by the filter's name. None for what
// is no list or has no filters.
func (m filterMatrix) filters(t *testing.T, o op.Operation) map[string][]string {
	filters := map[string][]string{}
	for _, p := range o.Input().Query {
		if !isList(o) || slices.Contains([]string{"limit", "cursor", "sort", "follow"}, p.Name) || slices.Contains(periodOf[o.Meta().ID], p.Name) {
			continue
		}
		for _, text := range m.texts(t, o, p) {
			filters[p.Name] = append(filters[p.Name], p.Name+"="+url.QueryEscape(text))
		}
	}
	return filters
}

// texts are texts of a filter, of which at least one selects some of the demonstration's
// objects only.
func (m filterMatrix) texts(t *testing.T, o op.Operation, p op.Param) []string {
	typ := p.Type
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case isID(p), p.Name == "label":
		if m.own[p.Name] == "" || m.others[p.Name] == "" {
			t.Fatalf("%s: the matrix has no %s: add it to own and othersIDs in filters_test.go", o.Meta().ID, p.Name)
		}
		return []string{m.own[p.Name], m.others[p.Name]}
	case typ == reflect.TypeFor[domain.Time]():
		days := map[string][]int{"since": {-20}, "until": {-10, 1}}[strings.TrimPrefix(p.Name, "completed_")] // since is before until
		if days == nil {
			days = []int{-20, 1}
		}
		var texts []string
		for _, n := range days {
			texts = append(texts, m.Clock.Now().AddDate(0, 0, n).Format(time.RFC3339))
		}
		return texts
	case m.own[p.Name] != "":
		return []string{m.own[p.Name], "x"}
	case p.Name == "q":
		return []string{"o", "an", "no such name"}
	case p.Name == "department":
		return []string{"FINANCE", "no such department"}
	case p.Name == "manager_email":
		return []string{"Boss@Example.com", "nobody@example.com"}
	}
	texts := filterTexts(t, p)
	for i := range texts {
		texts[i], _ = url.QueryUnescape(texts[i])
	}
	return texts
}

func isID(p op.Param) bool { return p.Name == "ids" || strings.HasSuffix(p.Name, "_id") }

func (m filterMatrix) check(t *testing.T, o op.Operation, filters map[string][]string) {
	read := func(query ...string) []string { return m.rows(t, pathOf(t, o, m.at, query...)) }
	every := read()
	if len(every) < 2 {
		t.Fatal("the demonstration has less than two items: give it more in demoLists")
	}
	cursor, _ := m.Get(pathOf(t, o, m.at, "limit=1"), m.key).Want(200).Field("page.next_cursor").(string)

	var selected []selection
	for name, queries := range filters {
		var one selection // that selects some of the list, where there is one
		for _, query := range queries {
			rows := read(query)
			if len(both(rows, every)) < len(rows) {
				t.Errorf("%s lists what the list without it does not", query)
			}
			if isID(op.Param{Name: name}) && strings.HasSuffix(query, m.others[name]) && len(rows) > 0 {
				t.Errorf("%s, another partner's, lists %d", query, len(rows))
			}
			if len(rows) < len(every) {
				checkInvalid(t, m.Get(pathOf(t, o, m.at, query, "limit=1", "cursor="+cursor), m.key), "cursor")
			}
			better := len(rows) > len(one.rows) || len(one.rows) == len(every)
			if one.query == "" || len(rows) < len(every) && better {
				one = selection{query, rows}
			}
		}
		if len(one.rows) == len(every) {
			t.Errorf("no text of %s narrows the list: %q: give the demonstration more in demoLists", name, queries)
		}
		if len(one.rows) == 0 && !slices.ContainsFunc(o.Input().Query, func(p op.Param) bool { return p.Name == name && isRequired(p) }) {
			t.Errorf("no text of %s selects anything: %q: give the demonstration some in demoLists", name, queries)
		}
		selected = append(selected, one)
	}
	for i, a := range selected {
		for _, b := range selected[:i] {
			if got, want := read(a.query, b.query), both(a.rows, b.rows); len(both(got, want)) != len(got) || len(got) != len(want) {
				t.Errorf("%s&%s lists %d, not the %d that both list", a.query, b.query, len(got), len(want))
			}
		}
	}
}

// selection is what a list has with a filter.
type selection struct {
	query string
	rows  []string
}

// both are the rows that are in two lists, in the order of the first.
func both(a, b []string) (rows []string) {
	in := map[string]bool{}
	for _, row := range b {
		in[row] = true
	}
	for _, row := range a {
		if in[row] {
			rows = append(rows, row)
		}
	}
	return rows
}

// rows reads a list to its end; each row is its JSON.
func (m filterMatrix) rows(t *testing.T, path string) (rows []string) {
	t.Helper()
	limit := "?limit=500"
	if strings.Contains(path, "?") {
		limit = "&limit=500"
	}
	for _, item := range m.All(path+limit, m.key) {
		rows = append(rows, text(t, item))
	}
	return rows
}
