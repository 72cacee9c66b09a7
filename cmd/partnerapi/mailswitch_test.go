package main

import (
	"strings"
	"testing"
)

// TestMailSwitches names a client in each way, and switches its mail.
func TestMailSwitches(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	d := opened(t, flag)
	var name, twin, uuid string
	var ids [2]string
	rows, err := d.SQL().QueryContext(t.Context(), `SELECT c.id, c.name FROM clients AS c JOIN partners AS p ON p.id = c.partner_id
		WHERE c.archived_at IS NULL ORDER BY p.created_at, c.created_at LIMIT 2`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for i := range ids {
		if !rows.Next() {
			t.Fatal("no client")
		}
		if err := rows.Scan(&ids[i], &twin); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			name = twin
		}
	}
	uuid = strings.ToUpper(ids[0])

	out := must(t, "mail", "disable", flag, name, "certificate")
	id := strings.TrimSuffix(strings.Fields(out[strings.LastIndex(out, "("):])[0], "):")[1:]
	if !strings.HasSuffix(out, "): certificate is off\n") || !strings.HasPrefix(id, "cli_") {
		t.Errorf("%s", out)
	}
	must(t, "mail", "enable", flag, uuid, "monthly-report")
	want := "KIND             STATE\ncertificate      off\nphish-reminder   on\nexposure-notice  on\nmonthly-report   on\n"
	if got := must(t, "mail", "switches", flag, id); got != want {
		t.Errorf("%s", got)
	}
	must(t, "mail", "enable", flag, strings.ToUpper(name), "certificate")
	if got := must(t, "mail", "switches", flag, name); !strings.Contains(got, "certificate      on\n") {
		t.Errorf("%s", got)
	}
	if got := must(t, "mail", "switches", flag, twin); strings.Count(got, " on\n") != 3 {
		t.Errorf("another client's changed: %s", got)
	}

	refused(t, 1, []string{"mail", "disable", flag, "Nobody", "certificate"}, "Nobody", "GET /v2/clients")
	refused(t, 2, []string{"mail", "disable", flag, name, "welcome"}, "phish-reminder")
	refused(t, 2, []string{"mail", "disable", flag, name})
	if _, err := d.SQL().ExecContext(t.Context(), `UPDATE clients SET name = $1, name_key = (SELECT name_key FROM clients WHERE id = $2)
		WHERE partner_id <> (SELECT partner_id FROM clients WHERE id = $2) AND id = (
			SELECT id FROM clients WHERE partner_id <> (SELECT partner_id FROM clients WHERE id = $2) LIMIT 1)`, name, ids[0]); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, []string{"mail", "switches", flag, name}, "2 clients", id)
	if _, err := d.SQL().ExecContext(t.Context(), "UPDATE clients SET archived_at = now() WHERE id = $1", ids[0]); err != nil {
		t.Fatal(err)
	}
	refused(t, 1, []string{"mail", "switches", flag, id}, "no client")
}
