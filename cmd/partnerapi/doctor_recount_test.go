package main

import (
	"strings"
	"testing"
)

// TestDoctorRecounts: wrong counts are named and corrected, and are then right.
func TestDoctorRecounts(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	d := opened(t, flag)
	for _, statement := range []string{
		"UPDATE partners SET client_count = 99 WHERE name = 'Northlight Demo MSP'",
		"UPDATE clients SET users_active = 1000 WHERE id = (SELECT id FROM clients ORDER BY id LIMIT 1)",
	} {
		if _, err := d.SQL().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	got := must(t, "doctor", "--recount", flag)
	for _, want := range []string{
		`recounted: clients of partners {"id" : "`, `was (99), is (`, `recounted: users of clients {"id" : "`,
		"2 stored counts were wrong and corrected; all others are right\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("does not say %q:\n%s", want, got)
		}
	}
	if got := must(t, "doctor", "--recount", "--json", flag); got != `{"corrected":[]}`+"\n" {
		t.Errorf("afterwards: %s", got)
	}
}
