//go:build slow

package v2_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/v2test"
)

// plannedClient is one of the clients of TestPagingPlansOfTenants.
type plannedClient struct {
	client     domain.ClientID
	user       domain.UserID
	collection domain.CollectionID
	policies   [3]domain.PolicyID // of each scope
}

// plannedSQL gives a client ($1) of the prefix $2, the user $3, the collection
// $4, a group of the id $4, and the policies of $5, rows enough for a planner to
// care: 4,000 users in the collection and the group, of whom one has 2,000
// mails and 2,000 results, 2,000 collections and policies.
var plannedSQL = []string{
	`INSERT INTO groups (client_id, id, name, manual, created_at) VALUES ($1, $4, 'Group', false, '2026-01-01Z')`,
	`INSERT INTO users (client_id, id, email, first_name, last_name, name_key, status, role, preferred_language, source, group_id, score, created_at, updated_at)
		SELECT $1, CASE n WHEN 1 THEN $3::uuid ELSE md5($2 || 'u' || n)::uuid END, n || '@example.com', 'n', n::text, 'n ' || n,
			CASE WHEN n % 10 = 0 THEN 'inactive' ELSE 'active' END, 'standard', 'en', 'api', $4, 700, '2026-06-01Z'::timestamptz - n % 900 * interval '1 hour', '2026-06-01Z'
		FROM generate_series(1, 4000) AS n`,
	`UPDATE users SET department = CASE WHEN last_name::integer % 41 > 0 THEN 'Team ' || last_name::integer % 40 END, manager_email = last_name::integer % 40 || '@example.com' WHERE client_id = $1`,
	`UPDATE users SET score = 500 WHERE client_id = $1 AND last_name::integer % 16 = 0`,
	`UPDATE users SET next_due_on = '2026-06-01' WHERE client_id = $1 AND last_name::integer % 8 = 0`,
	`INSERT INTO collections (client_id, id, name, name_key, created_by, created_at, updated_at)
		SELECT $1, CASE n WHEN 1 THEN $4::uuid ELSE md5($2 || 'k' || n)::uuid END, n::text, n::text, 'api', '2026-06-01Z'::timestamptz - n % 900 * interval '1 hour', '2026-06-01Z'
		FROM generate_series(1, 2000) AS n`,
	`INSERT INTO groups (client_id, id, name, manual, created_at)
		SELECT $1, md5($2 || 'g' || n)::uuid, n::text, false, '2026-01-01Z' FROM generate_series(1, 2000) AS n`,
	`INSERT INTO framework_assignments (client_id, id, framework_id, audience_type, audience_id, evaluated_at, created_at)
		SELECT $1, md5($2 || 'f' || n)::uuid, 'soc2', 'group', md5($2 || 'g' || n)::uuid, '2026-06-14Z', '2026-06-01Z'::timestamptz - n % 900 * interval '1 hour'
		FROM generate_series(1, 2000) AS n`,
	`INSERT INTO collection_members (client_id, collection_id, user_id, added_at)
		SELECT $1, k, u.id, u.created_at FROM users AS u, (VALUES ($4::uuid), (md5($2 || 'k2')::uuid)) AS k (k) WHERE u.client_id = $1`,
	`INSERT INTO policies (client_id, id, title, scope_type, scope_id, requires_acknowledgment, reviewed_at, created_at, updated_at)
		SELECT $1, CASE WHEN n < 4 THEN ($5::text[])[n]::uuid ELSE md5($2 || 'p' || n)::uuid END, n::text,
			CASE n % 3 WHEN 0 THEN 'collection' WHEN 1 THEN 'tenant' ELSE 'user_container' END, CASE n WHEN 1 THEN $1 ELSE $4::uuid END, n < 4,
			'2026-06-01Z', '2026-06-01Z'::timestamptz - n % 900 * interval '1 hour', '2026-06-01Z'
		FROM generate_series(1, 2000) AS n`,
	`INSERT INTO policy_signatures (client_id, policy_id, user_id, version, signed_at)
		SELECT $1, p::uuid, u.id, 1, '2026-06-01Z' FROM users AS u, unnest($5::text[]) AS p WHERE u.client_id = $1 AND u.last_name::integer % 2 = 0`,
	`INSERT INTO exposures (client_id, user_id, breach_name, severity, data_classes, first_seen_at, updated_at)
		SELECT $1, u.id, b.name, 'low', '{Names}', u.created_at, u.created_at FROM users AS u, breaches AS b WHERE u.client_id = $1`,
	`INSERT INTO assignments (client_id, user_id, course_id, position, assigned_at, due_on)
		SELECT $1, u.id, c.id, 1, u.created_at, '2026-07-01' FROM users AS u, courses AS c WHERE u.client_id = $1 AND (u.id = $3 OR u.last_name::integer < 300)`,
	`UPDATE assignments SET completed_at = CASE WHEN hashtext(user_id::text || course_id) % 3 = 0 THEN assigned_at + interval '1 hour' END,
		due_on = CASE WHEN hashtext(user_id::text || course_id) % 7 = 0 THEN '2026-06-01'::date ELSE due_on END WHERE client_id = $1`,
	`UPDATE clients SET users_active = 3500, users_inactive = 500 WHERE id = $1`,
	`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, label, label_key, send_at, sent_at, created_at, updated_at)
		SELECT $1, md5($2 || 'r' || n)::uuid, CASE WHEN n % 3 = 0 THEN $3::uuid ELSE md5($2 || 'u' || n % 2000 + 2)::uuid END, t.id,
			CASE WHEN n % 4 = 0 THEN 'clicked' ELSE 'sent' END, CASE WHEN n % 7 = 0 THEN 'Drill' END, CASE WHEN n % 7 = 0 THEN 'drill' END,
			at, at, at, at
		FROM generate_series(1, 6000) AS n, phishing_templates AS t, LATERAL (SELECT '2026-06-01Z'::timestamptz - n % 900 * interval '1 hour' AS at) AS x`,
	`INSERT INTO phishing_labels (client_id, key, label, sends, cancelled, first_send_at, last_send_at)
		SELECT $1, n, n, 1, 0, '2026-06-01Z'::timestamptz - n % 900 * interval '1 hour', '2026-06-01Z' FROM generate_series(1, 2000) AS n`,
	`INSERT INTO phishing_label_days (client_id, label_key, day, sent)
		SELECT $1, n, '2026-06-01'::date - d, 1 FROM generate_series(1, 2000) AS n, generate_series(1, 5) AS d`,
	`INSERT INTO reported_emails (client_id, id, user_id, message_id, subject, sender, classification, reported_at, updated_at)
		SELECT $1, md5($2 || 'm' || n)::uuid, CASE WHEN n % 3 = 0 THEN $3::uuid ELSE md5($2 || 'u' || n % 2000 + 2)::uuid END, $2 || n, 'S', 'a@example.com',
			CASE WHEN n % 4 = 0 THEN 'spam' ELSE 'pending' END, at, at
		FROM generate_series(1, 6000) AS n, LATERAL (SELECT '2026-06-01Z'::timestamptz - n % 900 * interval '1 hour' AS at) AS x`,
	`INSERT INTO sync_runs (client_id, id, status, trigger, queued_at, updated_at)
		SELECT $1, md5($2 || 'y' || n)::uuid, 'completed', 'schedule', '2026-06-01Z'::timestamptz - n * interval '1 hour', '2026-06-01Z'::timestamptz - n * interval '1 hour'
		FROM generate_series(1, 3000) AS n`,
	`INSERT INTO reports (client_id, id, type, format, status, created_at, updated_at)
		SELECT $1, md5($2 || 'o' || n)::uuid, CASE WHEN n % 2 = 0 THEN 'policy' ELSE 'compliance' END, 'pdf', 'ready',
			'2026-06-01Z'::timestamptz - n % 900 * interval '1 hour', '2026-06-01Z'
		FROM generate_series(1, 2000) AS n`,
	`INSERT INTO sent_emails (client_id, user_id, id, sent_at, from_email, subject, send_method, message_type)
		SELECT $1, CASE WHEN n % 3 = 0 THEN $3::uuid ELSE md5($2 || 'u' || n % 2000 + 2)::uuid END, md5($2 || 'e' || n)::uuid,
			'2026-06-01Z'::timestamptz - n % 900 * interval '1 hour', 'it@example.com', n::text, 'smtp', CASE WHEN n % 2 = 0 THEN 'phishing' ELSE 'welcome' END
		FROM generate_series(1, 6000) AS n`,
}

// planned adds such a client.
func planned(h *v2test.Harness, tenant v2test.Partner, prefix string) plannedClient {
	c := plannedClient{client: h.AddClient(tenant, prefix).ID, user: db.NewID[domain.UserKind](), collection: db.NewID[domain.CollectionKind]()}
	policies := make([]string, len(c.policies))
	for i := range c.policies {
		c.policies[i] = db.NewID[domain.PolicyKind]()
		policies[i] = c.policies[i].UUID()
	}
	for _, sql := range plannedSQL {
		// A statement takes the parameters that it names and no others.
		h.Exec("WITH given AS (SELECT $1::uuid, $2::text, $3::uuid, $4::uuid, $5::text[]) "+sql, c.client, prefix, c.user, c.collection, policies)
	}
	return c
}

// catalogues are tables that belong to no client.
var catalogues = []string{"breaches", "courses", "phishing_templates"}

// checkTenant holds that a plan reads rows of the client alone, or single rows
// by their id, found by an index.
func checkTenant(t *testing.T, name string, plan queryPlan) {
	t.Helper()
	for _, n := range plan.nodes() {
		if slices.ContainsFunc(catalogues, func(c string) bool { return n.Relation == c || n.Index == c+"_pkey" }) {
			continue
		}
		whole := n.Node == "Seq Scan" || n.Index != "" && !strings.Contains(n.Condition, "client_id = ")
		if whole && !(strings.HasSuffix(n.Index, "_id_unique") && strings.HasPrefix(n.Condition, "(id = ")) {
			t.Errorf("%s reads other tenants' rows: %s %s%s %s, in\n%s", name, n.Node, n.Relation, n.Index, n.Condition, plan)
		}
	}
}

// checkOrdered holds that a page is read off an index in its order, with no
// sort, and from the cursor's place on where it has one.
func checkOrdered(t *testing.T, name string, plan queryPlan, indexes []string, place bool) {
	t.Helper()
	read := slices.IndexFunc(plan.nodes(), func(n queryPlan) bool { return slices.Contains(indexes, n.Index) })
	sorted := plan.has("Sort") && !plan.has("Merge Append") // of the weeks to come, which are empty
	if read < 0 || sorted || plan.has("Incremental Sort") {
		t.Errorf("%s is not read by %s in order:\n%s", name, indexes, plan)
		return
	}
	if place && !strings.Contains(plan.nodes()[read].Condition, "ROW(") {
		t.Errorf("%s begins anew:\n%s", name, plan)
	}
}

// plannedList is a list whose pages are planned. indexes are those that give it
// in its order; without any, its rows may be gathered and sorted: a single user's
// courses, and what is expected to be a few of the client's, those who signed or
// what changed.
type plannedList struct {
	op      op.Declaration
	at      ids
	query   string
	indexes []string
}

func plannedLists(c plannedClient) []plannedList {
	client, user := ids{"client_id": c.client.String()}, ids{"user_id": c.user.String()}
	collection := ids{"client_id": c.client.String(), "collection_id": c.collection.String()}
	policy := func(n int) ids {
		return ids{"client_id": c.client.String(), "policy_id": c.policies[n].String()}
	}
	const period, changed = "since=2026-05-10T00:00:00Z&until=2026-05-20T00:00:00Z", "updated_since=2026-05-10T00:00:00Z"
	users, group := []string{"users_by_creation", "users_by_status_created"}, []string{"users_by_group_status"}
	seen, mails := []string{"exposures_by_seen"}, []string{"sent_emails_by_time"}
	scheduled := []string{"phishing_results_by_send", "phishing_results_by_status_send"}
	reported, assigned := []string{"reported_emails_by_report"}, []string{"assignments_by_assigned"}
	open, completion := []string{"assignments_open_by_assigned", "assignments_by_assigned"}, []string{"assignments_by_completion_week"}
	return []plannedList{
		{api.ListCollections, client, "", []string{"collections_by_created"}},
		{api.ListClientFrameworks, client, "", []string{"framework_assignments_by_created"}},
		{api.ListMembers, collection, "", []string{"collection_members_by_added"}},
		{api.ListPolicies, client, "", []string{"policies_by_created"}},
		{api.ListPolicyUsers, policy(0), "", users},
		{api.ListPolicyUsers, policy(0), "status=signed", users},
		{api.ListPolicyUsers, policy(0), "status=unsigned", users},
		{api.ListPolicyUsers, policy(1), "", group},
		{api.ListPolicyUsers, policy(1), "status=signed", group},
		{api.ListPolicyUsers, policy(1), "status=unsigned", group},
		{api.ListPolicyUsers, policy(2), "", users},
		{api.ListPolicyUsers, policy(2), "status=signed", nil},
		{api.ListPolicyUsers, policy(2), "status=unsigned", users},
		{api.ListExposures, client, "", seen},
		{api.ListExposures, client, period, seen},
		{api.ListExposures, client, "sort=-first_seen_at", seen},
		{api.ListExposures, client, "sort=-first_seen_at&" + period, seen},
		{api.ListUsers, client, "overdue=true", nil},
		{api.ListUsers, client, "overdue=false", users},
		{api.ListUsers, client, "department=TEAM+7", nil},
		{api.ListUsers, client, "no_department=true", nil},
		{api.ListUsers, client, "manager_email=7@example.com&sort=-email", nil},
		{api.ListUsers, client, "grade=D", nil},
		{api.ListUsers, client, "grade=B", users},
		{api.ListUsers, client, "group_id=" + domain.GroupID(c.collection).String(), users},
		{api.ListUsers, client, "sort=last_name", []string{"users_by_last_name"}},
		{api.ListUsers, client, "sort=-last_name", []string{"users_by_last_name"}},
		{api.ListDepartments, client, "", nil},
		{api.ListDarkWebUsers, client, "", users},
		{api.ListDarkWebUsers, client, period, users},
		{api.ListTraining, user, "", nil},
		{api.ListClientTraining, client, "", assigned},
		{api.ListClientTraining, client, "status=assigned", open},
		{api.ListClientTraining, client, "status=overdue", open},
		{api.ListClientTraining, client, "status=assigned,overdue", open},
		{api.ListClientTraining, client, "status=completed", assigned},
		{api.ListClientTraining, client, "user_status=active", assigned},
		{api.ListClientTraining, client, "user_status=inactive", assigned},
		{api.ListClientTraining, client, "completed_since=2026-05-10T00:00:00Z&completed_until=2026-05-20T00:00:00Z", completion},
		{api.ListClientTraining, client, "course_id=crs_01kdvm0000e008000000000001", []string{"assignments_by_course"}},
		{api.ListClientTraining, client, "user_id=" + c.user.String(), nil},
		{api.ListClientTraining, client, "completed_since=2020-05-10T00:00:00Z", assigned},
		{api.ListClientTraining, client, changed, []string{"assignments_by_change_week", "assignments_by_due_week"}},
		{api.ListClientTraining, client, "sort=-assigned_at", assigned},
		{api.ListClientTraining, client, "sort=-assigned_at&status=assigned", open},
		{api.ListClientTraining, client, "sort=-assigned_at&status=completed", assigned},
		{api.ListClientTraining, client, "sort=-assigned_at&user_status=active", assigned},
		{api.ListClientTraining, client, "sort=-assigned_at&completed_since=2026-05-10T00:00:00Z&completed_until=2026-05-20T00:00:00Z", completion},
		{api.ListClientTraining, client, "sort=-assigned_at&course_id=crs_01kdvm0000e008000000000001", []string{"assignments_by_course"}},
		{api.ListClientTraining, client, "sort=-assigned_at&" + changed, []string{"assignments_by_change_week", "assignments_by_due_week"}},
		{api.ListPhishingResults, client, "", []string{"phishing_results_by_created"}},
		{api.ListPhishingResults, client, period, []string{"phishing_results_by_sent"}},
		{api.ListPhishingResults, client, "user_id=" + c.user.String(), []string{"phishing_results_by_created"}},
		{api.ListPhishingResults, client, "status=clicked", []string{"phishing_results_by_status", "phishing_results_by_created"}},
		{api.ListPhishingResults, client, "status=sent,clicked", []string{"phishing_results_by_created"}},
		{api.ListPhishingResults, client, changed, []string{"phishing_results_by_updated"}},
		{api.ListPhishingResults, client, "sort=send_at", scheduled},
		{api.ListPhishingResults, client, "sort=-send_at", scheduled},
		{api.ListPhishingResults, client, "sort=-send_at&user_id=" + c.user.String(), nil},
		{api.ListPhishingResults, client, "sort=-send_at&status=clicked", []string{"phishing_results_by_status_send"}},
		{api.ListPhishingResults, client, "sort=-send_at&status=sent,clicked", scheduled},
		{api.ListPhishingResults, client, "sort=-send_at&label=drill", []string{"phishing_results_by_label_send"}},
		{api.ListPhishingResults, client, "label=drill", []string{"phishing_results_by_label"}},
		{api.ListPhishingResults, client, "label=drill&" + period, nil},
		{api.ListPhishingResults, client, "label=drill&" + changed, nil},
		{api.ListPhishingLabels, client, "", []string{"phishing_labels_by_first"}},
		{api.ListPhishingResults, client, "sort=-send_at&" + period, nil},
		{api.ListPhishingResults, client, "sort=-send_at&" + changed, nil},
		{api.ListReportedEmails, client, "", reported},
		{api.ListReportedEmails, client, "sort=-reported_at", reported},
		{api.ListReportedEmails, client, "sort=-reported_at&classification=spam", reported},
		{api.ListReportedEmails, client, "sort=-reported_at&" + period, reported},
		{api.ListReportedEmails, client, "classification=spam", reported},
		{api.ListReportedEmails, client, period, reported},
		{api.ListReportedEmails, client, changed, nil},
		{api.ListEmails, user, "", mails},
		{api.ListEmails, user, "message_types=phishing", mails},
		{api.ListEmails, user, period, mails},
		{api.ListSyncRuns, client, "", []string{"sync_runs_by_queued"}},
		{api.ListSyncRuns, client, changed, nil},
		{api.ListReports, client, "", []string{"reports_by_created"}},
		{api.ListReports, client, "type=policy&status=ready", []string{"reports_by_created"}},
		{api.ListReports, client, changed, nil},
		{api.ListCollections, client, changed, nil},
		{api.ListMembers, collection, changed, nil},
		{api.ListPolicies, client, changed, nil},
		{api.ListPolicyUsers, policy(1), changed, nil},
		{api.ListExposures, client, changed, nil},
		{api.ListDarkWebUsers, client, changed, nil},
		{api.ListTraining, user, changed, nil},
	}
}

// TestPagingPlansOfTenants holds that a page of a client's rows, or a user's,
// costs what it shows, however many rows of others there are: the first, one
// after a cursor, and a jump.
func TestPagingPlansOfTenants(t *testing.T) {
	h, set, queries := newTraced(t)
	tenant, stranger := h.AddPartner("Large"), h.AddPartner("Other")
	h.Exec("INSERT INTO breaches (name, title, severity, data_classes) VALUES ('A', 'A', 'low', '{Names}'), ('B', 'B', 'low', '{Names}')")
	h.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
		VALUES (gen_random_uuid(), 'T', 'en', 'it', 'T', 'it@example.com', '', '', '2026-01-01Z')`)
	own := planned(h, tenant, "own")
	planned(h, tenant, "neighbor")
	planned(h, stranger, "stranger")
	h.Exec("VACUUM ANALYZE")
	for _, list := range plannedLists(own) {
		table := &pagedTable{h: h, tenant: tenant, op: list.op, set: set, at: list.at}
		l := pagedList{key: tenant.Key}
		l.query, _ = url.ParseQuery(list.query)
		name := list.op.Meta().ID + " " + list.query
		first, page := queries.plan(t, table, l, op.Paging{Rows: 10})
		next, _ := queries.plan(t, table, l, op.Paging{Rows: 10, Cursor: page.end})
		checkTenant(t, name, first)
		checkTenant(t, name+", next,", next)
		if list.indexes != nil {
			checkOrdered(t, name, first, list.indexes, false)
			checkOrdered(t, name+", next,", next, list.indexes, true)
		}
		if list.op == api.ListClientTraining || list.op == api.ListDepartments { // which v1 has not
			continue
		}
		jump, _ := queries.plan(t, table, l, op.Paging{Rows: 10, Skip: 300})
		checkTenant(t, name+", after a jump,", jump)
		once := slices.ContainsFunc(jump.nodes(), func(n queryPlan) bool { return n.Parent == "InitPlan" })
		if !once || len(page.Data) != 10 {
			t.Errorf("%s: %d rows, and a jump by\n%s", name, len(page.Data), jump)
		}
	}
}

// TestPagingPlansOfOverdue holds that a page of few users is gathered by the index of
// what is due, in any order of the list and though the planner expects many, and that
// one of many is read in the order of the list.
func TestPagingPlansOfOverdue(t *testing.T) {
	pages := newPlannedPages(t)
	h, client := pages.users.h, pages.client
	h.Exec("UPDATE users SET next_due_on = '2026-06-01' WHERE client_id <> $1 OR last_name::integer % 1000 = 1", client)
	for _, few := range []string{"true", "false"} {
		h.Exec("VACUUM ANALYZE users")
		for _, asked := range []string{"true", "false"} {
			for _, sort := range []string{"created_at", "-created_at", "email", "risk_score"} {
				l := pagedList{sort: sort, key: pages.users.tenant.Key, query: url.Values{"overdue": {asked}}}
				first, page := pages.queries.plan(t, pages.users, l, op.Paging{Rows: 10})
				next, _ := pages.queries.plan(t, pages.users, l, op.Paging{Rows: 10, Cursor: page.end})
				for _, plan := range []queryPlan{first, next} {
					name := "overdue=" + asked + " by " + sort
					gathered := slices.ContainsFunc(plan.nodes(), func(n queryPlan) bool {
						return n.Index == "users_by_due" && strings.Contains(n.Condition, "'infinity'")
					})
					if len(page.Data) != 10 || gathered != (asked == few) || plan.has("Tid Scan") != gathered || plan.has("Sort") != gathered {
						t.Errorf("%s: %d rows by\n%s", name, len(page.Data), plan)
					}
					checkTenant(t, name, plan)
				}
			}
		}
		// Now those who were few are most.
		h.Exec("UPDATE users SET next_due_on = CASE WHEN next_due_on IS NULL THEN '2026-06-01'::date END WHERE client_id = $1", client)
	}
}

// TestPagingPlansOfUsage holds that a page of usage reads the clients in their order, from the cursor's place on, and of
// each only the rows of the page's periods.
func TestPagingPlansOfUsage(t *testing.T) {
	pages := newPlannedPages(t)
	h, usage := pages.clients.h, *pages.clients
	usage.op, usage.shown = api.ListUsage, []string{"client_id", "period_start_on"}
	h.Exec("DELETE FROM active_user_days")
	h.Exec(`INSERT INTO active_user_days (client_id, day, active_users_max, active_users_last)
		SELECT id, $1::date - n, n, n FROM clients, generate_series(0, 390, 13) AS n`, v2test.Noon)
	h.Exec("VACUUM ANALYZE active_user_days")
	key := h.AddKey(usage.tenant, bothScopes, []domain.ClientID{pages.client})
	for _, query := range []string{"", "interval=day&start_on=2026-01-01", "start_on=2025-06-01", "client_id=" + pages.client.String()} {
		for _, l := range []pagedList{{key: usage.tenant.Key}, {key: key}} {
			l.query, _ = url.ParseQuery(query)
			few := l.key == key || l.query.Has("client_id") // of one client
			first, page := pages.queries.plan(t, &usage, l, op.Paging{Rows: 100})
			plans := []queryPlan{first}
			if !few {
				next, _ := pages.queries.plan(t, &usage, l, op.Paging{Rows: 100, Cursor: page.end})
				plans = append(plans, next)
			}
			for n, plan := range plans {
				clients, days := plan.scan("clients"), plan.scan("active_user_days")
				ordered := clients.Index == "clients_by_creation" && !plan.has("Sort") && (n == 0 || strings.Contains(clients.Condition, "ROW(created_at, id)"))
				if !few && (!ordered || len(page.Data) != 100) || plan.has("Seq Scan") || plan.has("Hash Join") ||
					!strings.Contains(days.Index, "active_user_days_pkey") || !strings.Contains(days.Condition, "client_id = ") {
					t.Errorf("%q, page %d: %d rows by\n%s", query, n+1, len(page.Data), plan)
				}
			}
		}
	}
}
