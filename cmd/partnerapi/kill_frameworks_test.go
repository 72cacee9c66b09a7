//go:build slow

package main

import (
	"net/http"
	"strconv"
	"testing"

	"partnerapi/domain"
)

// TestFrameworkOutlivesKill kills the service while a large audience is given the
// courses of a framework, batch after batch: after a restart everybody has each
// course once, for one reason.
func TestFrameworkOutlivesKill(t *testing.T) {
	t.Parallel()
	const users = domain.AssignAtOnce + 2000
	s := newSends(t)
	first := process(t, s.dir, "--release=latest")
	client := into[identified](first.do("POST", "/v2/clients", s.key, fields{"name": "Acme"}).want(http.StatusCreated)).ID
	path := "/v2/clients/" + client
	first.do("POST", path+"/users", s.key, fields{"email": "ann@example.com"}).want(http.StatusCreated)

	d := s.look()
	d.exec(`INSERT INTO users SELECT (json_populate_record(u, json_build_object(
		'id', gen_random_uuid(), 'email', 'user' || n || '@example.com', 'next_due_on', NULL, 'next_course_id', NULL))).*
		FROM users AS u, generate_series(2, ` + strconv.Itoa(users) + `) AS n`)
	d.exec("UPDATE clients SET users_active = " + strconv.Itoa(users))
	d.exec("BEGIN")
	// Batches pass over who is locked: they wait.
	d.exec("SELECT FROM users WHERE id >= (SELECT id FROM users ORDER BY id OFFSET 6000 LIMIT 1) FOR UPDATE")
	first.do("POST", path+"/frameworks", s.key, fields{"framework_id": "cis_v8"}).want(http.StatusCreated)
	d.until(1, "SELECT count(*) FROM (SELECT FROM assignments WHERE frameworks <> '{}' LIMIT 1) AS a")
	first.kill()
	d.hangUp() // before the locks go: what the dead had begun is not done
	d.exec("ROLLBACK")
	for what, query := range map[string]string{
		"given":   "SELECT count(*) FROM (SELECT FROM assignments WHERE frameworks <> '{}' LIMIT 1) AS a",
		"waiting": "SELECT count(*) FROM (SELECT FROM waiting_assignments LIMIT 1) AS w",
	} {
		if d.number(query) != 1 {
			t.Errorf("the kill finds nothing %s", what)
		}
	}

	second := process(t, s.dir, "--release=latest")
	d.until(0, "SELECT count(*) FROM waiting_assignments")
	const asked = "course_id IN (SELECT course_id FROM framework_courses WHERE framework_id = 'cis_v8' AND role IS NULL)"
	courses := d.number("SELECT count(*) FROM framework_courses WHERE framework_id = 'cis_v8' AND role IS NULL")
	for what, want := range map[string][2]any{
		"given": {courses * users, "SELECT count(*) FROM assignments WHERE " + asked + ` AND round = 1 AND NOT direct
			AND frameworks = (SELECT array_agg(id) FROM framework_assignments)`},
		"given twice":         {0, "SELECT count(*) - count(DISTINCT (user_id, course_id)) FROM assignments"},
		"given besides":       {0, "SELECT count(*) FROM assignments WHERE NOT from_program AND NOT " + asked},
		"without a next":      {0, "SELECT count(*) FROM users WHERE next_due_on IS NULL OR next_course_id IS NULL"},
		"framework's own":     {1, "SELECT count(*) FROM framework_assignments"},
		"with another reason": {0, "SELECT count(*) FROM assignments WHERE direct OR cardinality(frameworks) > 1"},
	} {
		if got := d.number(want[1].(string)); got != want[0] {
			t.Errorf("%s: %d, not %d", what, got, want[0])
		}
	}
	second.finish()
}
