package v2_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// crowd is a partner with 600 clients, of which the first has 600 users and 600
// admins: more than any page, in plain SQL.
func crowd(t *testing.T) *world {
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	now := w.Clock.Now()
	w.Exec(`INSERT INTO clients (id, partner_id, name, name_key, summarized_at, created_at, updated_at)
		SELECT gen_random_uuid(), $1, 'Client ' || n, 'client ' || n, $2, $2::timestamptz - n * interval '1 second', $2 FROM generate_series(1, 600) AS n`,
		w.tenant.ID, now)
	w.Exec(`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, department, status, role, preferred_language, source, score, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'u' || n || '@example.com', 'U', n::text, 'u ' || n, 'Team ' || n, 'active', 'standard', 'en', 'api', 300 + n % 50, $2::timestamptz - n * interval '1 second', $2
		FROM generate_series(1, 600) AS n`, w.client.ID, now)
	w.Exec("UPDATE clients SET users_active = 601 WHERE id = $1", w.client.ID)
	w.Exec(`INSERT INTO admins (id, partner_id, client_id, email, name, role, created_at)
		SELECT gen_random_uuid(), $1, $2, 'a' || n || '@example.com', 'A', 'viewer', $3 FROM generate_series(1, 600) AS n`,
		w.tenant.ID, w.client.ID, now)
	w.Exec(userEverywhere, now)
	crowdParts(w)
	w.Exec("ANALYZE")
	return w
}

// crowdParts adds more than a page of what else the client and its first user
// have. Only some of the collections are filled.
func crowdParts(w *world) {
	now := w.Clock.Now()
	w.Exec(`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		SELECT $1, gen_random_uuid(), n, n, 'api', $2, $2 FROM generate_series(1, 600) AS n`, w.client.ID, now)
	w.Exec(`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'Acceptable use', 'tenant', $1, true, $2, $2, $2 FROM generate_series(1, 600) AS n`, w.client.ID, now)
	w.parts.collections = w.parts.collections[:10]
	filled := make([]string, len(w.parts.collections))
	for i, c := range w.parts.collections {
		filled[i] = c.UUID()
	}
	w.Exec(`INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
		SELECT u.client_id, c, u.id, $3 FROM users AS u, unnest($2::text[]::uuid[]) AS c WHERE u.client_id = $1 ON CONFLICT DO NOTHING`,
		w.client.ID, filled, now)
	w.Exec("UPDATE collections SET member_count = 601 WHERE id = ANY($1::text[]::uuid[])", filled)
	w.Exec(`INSERT INTO exposures (client_id, user_id, breach_name, severity, data_classes, first_seen_at)
		SELECT client_id, id, $2, 'low', '{Names}', $3 FROM users WHERE client_id = $1 ON CONFLICT DO NOTHING`, w.client.ID, breach, now)
	w.Exec(`INSERT INTO courses (id, title, renewal_months, created_at)
		SELECT gen_random_uuid(), 'Course ' || n, 12, $1 FROM generate_series(1, 600) AS n`, now)
	w.Exec(`INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on)
		SELECT $1, $2, id, 2000, $3, '2026-12-01' FROM courses WHERE title LIKE 'Course %'`, w.client.ID, w.user.ID, now)
	w.Exec(`INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, audience_id, evaluated_at, created_at)
		SELECT $1, gen_random_uuid(), 'hipaa', 'group', gen_random_uuid(), $2, $2 FROM generate_series(1, 600) AS n`, w.client.ID, now)
	w.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
		SELECT gen_random_uuid(), 'Template ' || n, 'en', 'it', 'S', 'it@example.com', '', '', $1 FROM generate_series(1, 600) AS n`, now)
	w.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, created_at, updated_at)
		SELECT $1, gen_random_uuid(), $2, $3, 'sent', $4, $4, $4, $4 FROM generate_series(1, 600) AS n`, w.client.ID, w.user.ID, w.parts.template, now)
	w.Exec(`INSERT INTO phishing_labels (client_id, key, label, sends, cancelled, first_send_at, last_send_at)
		SELECT $1, n, n, 1, 0, $2, $2 FROM generate_series(1, 600) AS n`, w.client.ID, now)
	w.Exec(`INSERT INTO reported_emails (client_id, id, user_id, message_id, subject, sender, classification, reported_at, updated_at)
		SELECT $1, gen_random_uuid(), $2, n || '@example.com', 'S', 'a@example.com', 'pending', $3, $3 FROM generate_series(1, 600) AS n`,
		w.client.ID, w.user.ID, now)
	w.Exec(`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
		SELECT $1, gen_random_uuid(), 'policy', 'pdf', 'ready', $2, $2 FROM generate_series(1, 600) AS n`, w.client.ID, now.Add(-24*time.Hour))
	w.Exec(`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		SELECT $1, $2, gen_random_uuid(), $3, 'a@example.com', 'S' || n, 'smtp', 'welcome' FROM generate_series(1, 600) AS n`, w.client.ID, w.user.ID, now)
	w.Exec(`INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at, unchanged)
		SELECT $1, gen_random_uuid(), 'completed', 'schedule', $2, $2, n FROM generate_series(1, 600) AS n`, w.client.ID, now)
	w.Exec(`INSERT INTO published_events (partner_id, position, client_id, id, type, created_at, body)
		SELECT $1, n, $2, gen_random_uuid(), 'user.updated', $3, `+plainEvent+` FROM generate_series(1001, 1600) AS n`,
		w.tenant.ID, w.client.ID, now)
	w.Exec(`INSERT INTO audit_entries (at, partner_id, key_id, key_prefix, operation, method, path, request_id, client_id)
		SELECT $3, k.partner_id, k.id, k.prefix, 'users.update', 'PATCH', '/v2/users', 'r', $2 FROM api_keys AS k, generate_series(1, 600)
		WHERE k.partner_id = $1`, w.tenant.ID, w.client.ID, now)
	w.Exec(`INSERT INTO webhooks (partner_id, id, key_id, url, events, status, created_at, updated_at, secret)
		SELECT partner_id, gen_random_uuid(), key_id, url, events, status, created_at, updated_at, secret
		FROM webhooks, generate_series(1, 600) AS n WHERE id = $1`, w.parts.webhook)
	w.Exec(`INSERT INTO webhook_deliveries (webhook_id, id, partner_id, position, client_id, event_id, type, created_at, due_at)
		SELECT webhook_id, gen_random_uuid(), partner_id, position, client_id, event_id, type, created_at, due_at
		FROM webhook_deliveries, generate_series(1, 600) AS n WHERE id = $1`, w.parts.delivery)
}

// userEverywhere adds a user of one address to all clients but that of the world, at $1.
const userEverywhere = `INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, score, created_at, updated_at)
	SELECT id, gen_random_uuid(), '` + everywhere + `', 'E', 'E', 'e e', 'active', 'standard', 'en', 'api', 700, $1, $1
	FROM clients WHERE name <> 'Client'`

// statements counts those of one read, the key being known already.
func (w *world) statements(path string) (n, rows int) {
	w.T.Helper()
	w.Get("/v2/clients?ids=", w.tenant.Key).Want(200)
	n = w.Statements.During(func() {
		r := w.Get(path, w.tenant.Key).Want(200)
		if data, ok := r.Field("data").([]any); ok {
			rows = len(data)
		}
	})
	return n, rows
}

// TestStatementsOfLists: every list, in every order, takes the same number of
// statements for a page of 1 and of 500.
func TestStatementsOfLists(t *testing.T) {
	w := crowd(t)
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if !isList(o) {
			return
		}
		for _, sort := range sortsOf(o) {
			path := pathOf(t, o, w.ids(), "sort="+sort, "limit=")
			one, n := w.statements(path + "1")
			if n != 1 {
				t.Fatalf("%s has %d rows for a page of 1", o.Meta().ID, n)
			}
			all, n := w.statements(path + "500")
			if n != 500 && !(o.Meta().ID == "frameworks.list" && n == len(domain.Frameworks)) {
				t.Fatalf("%s has %d rows: fill more than a page in crowd", o.Meta().ID, n)
			}
			if one != all || all > 4 { // a check, the horizon, and reads
				t.Errorf("sort %q: %d statements for one row, %d for 500", sort, one, all)
			}
			next := w.Get(path+"1", w.tenant.Key).Field("page.next_cursor").(string)
			if later, _ := w.statements(path + "500&cursor=" + next); later > all {
				t.Errorf("sort %q: %d statements for a later page, %d for the first", sort, later, all)
			}
		}
	})
}

func isList(o op.Operation) bool {
	_, list := o.Output().FieldByName("Data")
	return list
}

// TestStatementsOfStaleLists: a refresh is one statement, however many clients
// are stale.
func TestStatementsOfStaleLists(t *testing.T) {
	w := crowd(t)
	counts := map[int]int{}
	for _, limit := range []int{1, 500} {
		w.Clock.Advance(time.Hour)
		counts[limit], _ = w.statements(fmt.Sprintf("/v2/clients?limit=%d", limit))
	}
	if counts[1] != counts[500] || counts[500] != 5 { // the horizon, a read, the stamp, a refresh, and a read
		t.Errorf("stale pages take %v statements", counts)
	}
	for query, want := range map[string][2]int{ // on stale clients, and on fresh ones
		"sort=risk_score":                    {5, 3}, // a check, the stamp, a refresh, the horizon, and a read
		"updated_since=2020-01-01T00:00:00Z": {5, 3},
	} {
		w.Clock.Advance(time.Hour)
		for i, n := range want {
			if got, _ := w.statements("/v2/clients?limit=500&" + query); got != n {
				t.Errorf("%s takes %d statements, want %d of %v", query, got, n, want[:i+1])
			}
		}
	}
}

// TestStatementsOfReads: what reads one object takes the same number of
// statements for an empty client and a crowd.
func TestStatementsOfReads(t *testing.T) {
	w := crowd(t)
	empty := w.AddClient(w.tenant, "Empty")
	alone := w.pair(empty, w.AddUser(w.tenant, empty.ID, "alone@example.com"))
	w.Get("/v2/clients?sort=risk_score", w.tenant.Key).Want(200)
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		if o.Meta().Scope != domain.Read || isList(o) {
			return
		}
		few, _ := w.statements(pathOf(t, o, alone))
		many, _ := w.statements(pathOf(t, o, w.ids()))
		if few != many || few == 0 {
			t.Errorf("%d statements for one user, %d for 601", few, many)
		}
		if o.Meta().ID == "clients.get" && many != 1 {
			t.Errorf("a client takes %d statements", many)
		}
	})
}

// TestStatementsOfWrites: what names many users or mails, or concerns all users of a
// client, takes as many statements as for one.
func TestStatementsOfWrites(t *testing.T) {
	w := newSender(t, 31)
	var users []string
	for _, u := range w.users {
		users = append(users, u.ID.String())
	}
	client, collection := "/v2/clients/"+w.client.ID.String(), w.AddCollection(w.client.ID, "Some")
	for path, body := range map[string]struct {
		member string
		ids    []string
	}{
		w.sendPath():                   {"user_ids", users},
		w.sendPath() + "/cancel":       {"result_ids", w.scheduled()},
		client + "/training/reminders": {"user_ids", users},
		client + "/collections/" + collection.String() + "/members": {"user_ids", users},
	} {
		count := func(ids []string) int {
			return w.Statements.During(func() {
				if r := w.Do("POST", path, w.tenant.Key, map[string]any{body.member: ids}); r.Status >= 300 {
					t.Errorf("%s: %d %s", path, r.Status, r.Body)
				}
			})
		}
		count(body.ids[:1])
		if one, many := count(body.ids[1:2]), count(body.ids[2:]); one != many {
			t.Errorf("%s: %d statements for one, %d for 29", path, one, many)
		}
	}

	policy := w.tenantPolicy()
	remind := func() int {
		w.policies("") // the key is known
		return w.Statements.During(func() {
			w.Do("POST", w.policiesPath()+"/"+policy.String()+"/reminders", w.tenant.Key, nil).Want(http.StatusAccepted)
		})
	}
	few := remind()
	w.more(100)
	w.Clock.Advance(24 * time.Hour)
	if many := remind(); few != many {
		t.Errorf("%d statements for reminders of 31 users, %d for 131", few, many)
	}
}

// TestKnownKeyTakesNoStatement: a key is looked up once in its memory's time.
func TestKnownKeyTakesNoStatement(t *testing.T) {
	w := newWorld(t, v2test.Options{Limits: v2test.Unlimited})
	path := "/v2/clients/" + w.client.ID.String()
	for i, want := range []int{2, 1, 1} {
		if n := w.Statements.During(func() { w.Get(path, w.tenant.Key).Want(200) }); n != want {
			t.Errorf("request %d takes %d statements, not %d", i, n, want)
		}
	}
}
