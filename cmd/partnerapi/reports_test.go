package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"partnerapi/domain"
)

// TestMakeReport makes reports by the command, and is told what is wrong.
func TestMakeReport(t *testing.T) {
	t.Parallel()
	flag := demonstration(t)
	d := opened(t, flag)
	var id domain.ClientID
	var name string
	if err := d.SQL().QueryRow("SELECT id, name FROM clients ORDER BY created_at, id LIMIT 1").Scan(&id, &name); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Without a format, the file's name says it.
	for file, c := range map[string]struct{ client, format, magic string }{
		"by-id.pdf": {id.String(), "pdf", "%PDF-"}, "by-uuid": {strings.ToUpper(id.UUID()), "xlsx", "PK"},
		"a.XLSX": {strings.ToUpper(name), "", "PK"}, "a": {name, "", "%PDF-"},
	} {
		file = filepath.Join(dir, file)
		args := []string{"reports", "make", flag, c.client, "policy", "--out=" + file}
		if c.format != "" {
			args = append(args, "--format="+c.format)
		}
		if r := command(t, args...); r.code != 0 || !strings.Contains(r.out, file) || !strings.Contains(r.err, "creating policy for "+name) {
			t.Fatalf("%s: %+v", file, r)
		}
		if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), c.magic) {
			t.Errorf("%s is %.20q, %v", file, text, err)
		}
	}

	out := "--out=" + filepath.Join(dir, "refused")
	make := func(more ...string) []string { return append([]string{"reports", "make", flag, out}, more...) }
	refused(t, 2, make(name, "poem"), `there is no report type "poem"`, "executive_summary", "global_health_report")
	refused(t, 2, make(name, "dark_web", "--format=doc"), "pdf")
	refused(t, 2, make(name, "dark_web", "--start=2026-01-01"), "--start and --end must be used together")
	refused(t, 2, make(name, "dark_web", "--start=2026-01-01", "--end=today"), "--end: must be a date, such as 2026-01-31")
	refused(t, 1, make(name, "dark_web", "--start=2026-01-02", "--end=2026-01-01"), "--start must not be after --end")
	refused(t, 1, make(name, "dark_web", "--start=2024-01-01", "--end=2026-01-01"), "at most 366 days")
	refused(t, 1, make(name, "dark_web", "--start=2999-01-01", "--end=2999-01-01"), "must not be in the future")
	refused(t, 1, make(name, "policy", "--start=2026-01-01", "--end=2026-01-01"), "the period is not allowed for this type of report")
	refused(t, 1, []string{"reports", "make", flag, name, "policy", "--out=" + filepath.Join(dir, "no", "where")}, "no such file or directory")
	execute(t, d, "UPDATE clients SET dark_web_monitoring = false")
	refused(t, 1, make(name, "dark_web"), "has no Dark Web Monitoring")
	if left, _ := filepath.Glob(filepath.Join(dir, "refused*")); len(left) > 0 {
		t.Errorf("refused commands left %v", left)
	}
}
