package v2_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// departmentLine returns a department of a list as a line: all values in the order of their fields.
func departmentLine(d map[string]any) string {
	return fmt.Sprintf("%v %v %v %v %v %v", d["department"], d["users"], d["active_users"], d["average_score"], d["overdue_users"], d["click_rate_90d"])
}

// TestDepartments verifies what the list shows of departments: keys, spellings, users without one, and departments without
// active users.
func TestDepartments(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	client, other := h.AddClient(tenant, "Client").ID, h.AddClient(tenant, "Other").ID
	stranger := h.AddUser(tenant, other, "stranger@example.com")
	h.Exec("UPDATE users SET department = 'Sales' WHERE id = $1", stranger.ID)

	n := 0
	add := func(department any, status string, score, overdueBy int) domain.UserID {
		n++
		u := h.AddUser(tenant, client, fmt.Sprintf("u%d@example.com", n))
		h.Do("PATCH", "/v2/users/"+u.ID.String(), tenant.Key, map[string]any{"department": department, "status": status}).Want(200)
		h.Exec("UPDATE users SET score = $2, next_due_on = $3 WHERE id = $1", u.ID, score, domain.DateOf(h.Clock.Now()).AddDays(-overdueBy))
		return u.ID
	}
	emails := func(user domain.UserID, status string, ages ...int) {
		template := h.Text("SELECT id::text FROM phishing_templates LIMIT 1")
		for _, days := range ages {
			at := domain.DateOf(h.Clock.Now()).AddDays(-days).Time()
			var clicked *time.Time
			if status == "clicked" {
				clicked = &at
			}
			h.Exec(`INSERT INTO phishing_results (client_id, id, user_id, template_id, status, send_at, sent_at, clicked_at, created_at, updated_at)
				VALUES ($1, gen_random_uuid(), $2, $3::text::uuid, $4, $5, $5, $6, $5, $5)`, client, user, template, status, at, clicked)
		}
	}
	h.Exec(`INSERT INTO phishing_templates (id, name, language, category, subject, from_address, html, body, created_at)
		VALUES (gen_random_uuid(), 'T', 'en', 'it', 'T', 'it@example.com', '', '', $1)`, h.Clock.Now())

	sales := add("SALES", "active", 500, 1)
	emails(sales, "clicked", 0, 89, 90) // the last one is too old
	emails(sales, "sent", 0)
	add("Sales", "active", 601, 0)
	emails(add(" sales ", "inactive", 0, 5), "clicked", 1)
	add("SALES", "active", 601, 0)
	add("Größe", "active", 700, 0)
	add("GRÖSSE", "active", 800, 2)
	add("Zoo", "inactive", 100, 3)
	add("zoo", "inactive", 100, 3)
	emails(add(nil, "active", 650, 0), "sent", 3)
	h.Exec("UPDATE users SET department = E'\\u00a0 ' WHERE department IS NULL AND client_id = $1", client) // by 1.0
	if _, err := h.DB.SettleSortKeys(t.Context()); err != nil {
		t.Fatal(err)
	}

	want := []string{"GRÖSSE 2 2 750 1 0", "SALES 4 3 567 1 66.7", "Zoo 2 0 750 0 0", "<nil> 1 1 650 0 0"}
	for _, limit := range []int{1, 2, 4, 5} {
		var got []string
		for _, d := range h.All(fmt.Sprintf("/v2/clients/%s/departments?limit=%d", client, limit), tenant.Key) {
			got = append(got, departmentLine(d))
		}
		if !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %q, want %q", limit, got, want)
		}
	}
	for spelling, users := range map[string]int{"sales": 4, "SALES ": 4, "größe": 2, "groesse": 0, "Sale": 0, "zoo": 2, " ": 0} {
		if found := h.All("/v2/clients/"+client.String()+"/users?department="+url.QueryEscape(spelling), tenant.Key); len(found) != users {
			t.Errorf("department=%q selects %d users, want %d", spelling, len(found), users)
		}
	}
}

// TestDepartmentsOfClient verifies that the departments of the demonstration agree with the client's read, and with the
// users that the filters select.
func TestDepartmentsOfClient(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Demo: true, Limits: v2test.Unlimited})
	e := v2test.NewExamples(h, "api/examples", false)
	// A department of all active users is the client, without the emails of inactive ones.
	h.Exec(`WITH d AS (DELETE FROM phishing_results AS r USING users AS u WHERE u.client_id = r.client_id AND u.id = r.user_id AND u.status = 'inactive' RETURNING r.*)
		UPDATE phishing_days AS p SET sent = p.sent - d.sent, clicked = p.clicked - d.clicked FROM (
			SELECT client_id, (sent_at AT TIME ZONE 'UTC')::date AS day, count(*) AS sent,
				count(*) FILTER (WHERE status IN ('attachment_opened', 'clicked', 'credentials_submitted')) AS clicked
			FROM d WHERE sent_at IS NOT NULL GROUP BY 1, 2
		) AS d WHERE d.client_id = p.client_id AND d.day = p.day`)
	for _, c := range h.All("/v2/clients", e.Key)[:10] {
		path := "/v2/clients/" + c["id"].(string)
		for _, d := range h.All(path+"/departments", e.Key) {
			filter := "department=" + url.QueryEscape(fmt.Sprint(d["department"]))
			if d["department"] == nil {
				filter = "no_department=true"
			}
			for query, field := range map[string]string{"": "users", "&status=active": "active_users", "&status=active&overdue=true": "overdue_users"} {
				if found := h.All(path+"/users?"+filter+query, e.Key); float64(len(found)) != d[field] {
					t.Errorf("%s%s selects %d users, want %v", filter, query, len(found), d[field])
				}
			}
		}
		client := idOf[domain.ClientKind](t, path)
		h.Exec("UPDATE users SET department = 'All' WHERE client_id = $1", client)
		h.Exec("UPDATE clients SET summarized_at = 'epoch' WHERE id = $1", client)
		fresh := h.Get(path, e.Key).Want(200)
		all := h.All(path+"/departments", e.Key)
		if len(all) == 0 && fresh.Field("users.active") == 0.0 {
			continue
		}
		if len(all) != 1 {
			t.Fatalf("the departments of %s are %v", path, all)
		}
		for field, of := range map[string]string{
			"active_users": "users.active", "average_score": "risk.average_score", "overdue_users": "training.overdue_users", "click_rate_90d": "phishing.click_rate_90d",
		} {
			if want := fresh.Field(of); all[0][field] != want {
				t.Errorf("%s: %s is %v, and %s %v", path, field, all[0][field], of, want)
			}
		}
	}
}

// TestUserKeys verifies the filters by department and manager and the order by last name, for texts of all kinds, as written
// by the API and by a process of version 1.0, before and after their keys are computed.
func TestUserKeys(t *testing.T) {
	t.Parallel()
	h := v2test.New(t, v2test.Options{Limits: v2test.Unlimited})
	tenant := h.AddPartner("Partner")
	client := h.AddClient(tenant, "Client").ID
	users := "/v2/clients/" + client.String() + "/users"
	names := []string{"Zeta", "äther", "Ärger", "ARGO", "de  la Cruz", "De la Cruz", "straße", "STRASSE", "Ꭰ", "", "\u212a", "k", "xn--a", "e\u0301a", "Éa"}
	for i, name := range names {
		manager := []string{"boss@straße.example", "Boss@xn--strae-oqa.example", "boss@strasse.example"}[i%3]
		h.Do("POST", users, tenant.Key, map[string]any{
			"email": fmt.Sprintf("u%d@example.com", i), "last_name": name, "department": name, "manager_email": manager,
		}).Want(201)
	}
	check := func(when string) {
		t.Helper()
		for _, sort := range []string{"last_name", "-last_name"} {
			var got []string
			for _, u := range h.All(users+"?limit=2&sort="+sort, tenant.Key) {
				got = append(got, domain.SortKey(u["last_name"].(string)))
			}
			want := make([]string, len(names))
			for i, name := range names {
				want[i] = domain.SortKey(name)
			}
			slices.Sort(want)
			if sort[0] == '-' {
				slices.Reverse(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, by %s: %q, want %q", when, sort, got, want)
			}
		}
		for _, name := range names {
			want := 0
			for _, other := range names {
				if domain.SortKey(other) == domain.SortKey(name) {
					want++
				}
			}
			if found := h.All(users+"?department="+url.QueryEscape(name), tenant.Key); name != "" && len(found) != want {
				t.Errorf("%s: department=%q selects %d users, want %d", when, name, len(found), want)
			}
		}
		for manager, want := range map[string]int{
			"BOSS@Straße.example": 10, "boss@XN--strae-oqa.example": 10, "boss@strasse.example": 5, "other@strasse.example": 0,
		} {
			if found := h.All(users+"?manager_email="+url.QueryEscape(manager), tenant.Key); len(found) != want {
				t.Errorf("%s: manager_email=%s selects %d users, want %d", when, manager, len(found), want)
			}
		}
	}
	check("as created")
	// 1.0 changes names without their keys, and inserts rows without any.
	h.Exec("UPDATE users SET (last_name, department) = ($2, $2) WHERE client_id = $1 AND email = 'u0@example.com'", client, "Œuvre")
	h.Exec("UPDATE users SET sort_keys = NULL WHERE client_id = $1 AND right(email, 13) <> '1@example.com'", client)
	names[0] = "Œuvre"
	seen := map[any]bool{}
	for _, u := range h.All(users+"?limit=3&sort=last_name", tenant.Key) {
		seen[u["id"]] = true
	}
	if len(seen) != len(names) {
		t.Errorf("%d of %d users while keys are missing", len(seen), len(names))
	}
	for range 2 {
		if _, err := h.DB.SettleSortKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check("after keys were computed")
	if n, err := h.DB.SettleSortKeys(t.Context()); n != 0 || err != nil {
		t.Errorf("%d users still have no keys: %v", n, err)
	}
}

// TestLongDepartments verifies that a department of 500 characters can be stored and found, even if its key has twelve bytes
// for each and hardly compresses.
func TestLongDepartments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	dice := rand.New(rand.NewPCG(1, 2))
	for _, alphabet := range []string{
		"\U0001D15E\U0001D15F\U0001D160\U0001D161\U0001D162\U0001D163\U0001D164\U0001D1BB\U0001D1BC\U0001D1BD\U0001D1BE\U0001D1BF\U0001D1C0",
		"\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f\ufb2c\ufb2d\u1fb7\u1fc7\u1ff7\u1f80\u1f95\u1fa6\ufb03\ufb04", "",
	} {
		var text strings.Builder
		letters := []rune(alphabet)
		for range 500 {
			if len(letters) > 0 {
				text.WriteRune(letters[dice.IntN(len(letters))])
			} else {
				text.WriteRune(0x20000 + dice.Int32N(0xa000))
			}
		}
		w.Do("PATCH", w.userPath(), w.tenant.Key, map[string]any{"department": text.String()}).Want(200)
		if found := w.All(w.usersPath()+"?department="+url.QueryEscape(text.String()), w.tenant.Key); len(found) != 1 {
			t.Errorf("%d users are in the department of %d bytes", len(found), len(domain.SortKey(text.String())))
		}
	}
}
