package main

import (
	"crypto/rand"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

func roleOf(t *testing.T, flag, rights string) string {
	t.Helper()
	d := opened(t, flag)
	name := "doctor_" + strings.ToLower(rand.Text()[:10])
	for _, statement := range []string{
		"CREATE ROLE " + name + " LOGIN PASSWORD 'sesame'",
		"GRANT USAGE ON SCHEMA public TO " + name,
		"GRANT " + rights + " ON ALL TABLES IN SCHEMA public TO " + name,
		"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO " + name,
	} {
		if _, err := d.SQL().ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	owner := opened(t, flag)
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + name, "DROP ROLE " + name} {
			if _, err := owner.SQL().Exec(statement); err != nil {
				t.Error(err)
			}
		}
	})
	address, err := url.Parse(strings.TrimPrefix(flag, "--database-url="))
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword(name, "sesame")
	return "--database-url=" + address.String()
}

func TestDoctorFindsRole(t *testing.T) {
	t.Parallel()
	flag, dir := databaseFlag(t), "--data-dir="+t.TempDir()
	found := examined(t, 1, roleOf(t, flag, "SELECT"), dir)
	wants(t, found["role"], "fail", "doctor_", "lacks rights on", "clients", "users", "grant")
	wants(t, found["pooler"], "ok", "PostgreSQL itself")
	wants(t, examined(t, 0, roleOf(t, flag, "ALL"), dir)["role"], "ok", "no superuser")

}

func TestDoctorReadsTheEnvironment(t *testing.T) {
	t.Setenv("PARTNERAPI_WORKRES", "7")
	wants(t, examined(t, 0, databaseFlag(t), "--data-dir="+t.TempDir())["environment"], "warn", "PARTNERAPI_WORKRES (PARTNERAPI_WORKERS?)")
}

func TestDoctorFindsNoPrograms(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	found := examined(t, 1, "--data-dir="+filepath.Join(dir, "data"), "--postgres-bin="+dir)
	wants(t, found["database"], "fail", "--postgres-bin", "--database-url")
}
