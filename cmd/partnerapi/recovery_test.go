//go:build slow

package main

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// chapter are the blocks of commands in a section of docs/operating.md, in order.
func chapter(t *testing.T, title string, blocks int) []string {
	t.Helper()
	_, text, _ := strings.Cut(fileText(t, "docs/operating.md"), "\n## "+title+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	var found []string
	for _, m := range regexp.MustCompile("(?s)```(?:sh|ini)\n(.*?)```").FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	if len(found) != blocks {
		t.Fatalf("%s has %d blocks of commands", title, len(found))
	}
	return found
}

// types runs a script as the servers' user, with the settings.
func (p *postgres) types(script string, settings ...string) {
	p.t.Helper()
	cmd := p.command("postgres")
	cmd.Path, cmd.Args = "/bin/bash", []string{"bash", "-euo", "pipefail", "-c", script}
	cmd.Env = append(append(cmd.Env, "PATH="+p.bin+":"+os.Getenv("PATH")), settings...)
	// A server that it starts has its output for good.
	out, err := os.Create(p.at("said"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		p.t.Fatalf("%s\n%v: %s", script, err, said)
	}
}

// TestPointInTimeRestore brings a database back to a moment between two writes that were
// answered, with the commands of the handbook: the first is there, and the second is not.
func TestPointInTimeRestore(t *testing.T) {
	t.Parallel()
	p := newPostgres(t, "psql")
	restored := p.node("restored")
	blocks := chapter(t, "Point-in-time restore", 4)
	for i := range blocks {
		blocks[i] = strings.NewReplacer("/var/backups/partnerapi", p.at("backup"), "/var/lib/postgresql", p.dir,
			"5433", strconv.Itoa(restored.port)).Replace(blocks[i])
	}
	archive, backUp, restore, look := blocks[0], blocks[1], blocks[2], blocks[3]

	p.types("mkdir -p backup/wal")
	lost := p.primary("lost", strings.Split(archive, "\n")...)
	// Only the copy waits for a standby: the server has not read it.
	lost.exec("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
	must(t, "migrate", "--database-url="+reach(lost))
	key := freshKey(t)
	first := process(t, t.TempDir(), "--database-url="+reach(lost), "--encryption-key="+key, "--demo", "--release=latest")
	p.types(backUp, "PRIMARY_URL="+lost.admin())

	create := func(name string) string {
		made := first.do("POST", "/v2/clients", "pk_demo_all", fields{"name": name}).want(http.StatusCreated)
		return "/v2/clients/" + into[identified](made).ID
	}
	kept := create("Before the moment")
	var moment time.Time
	lost.with(lost.admin(), func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&moment)
	})
	undone := create("After the moment")
	var segment string
	lost.with(lost.admin(), func(conn *pgx.Conn) error {
		return conn.QueryRow(t.Context(), "SELECT pg_walfile_name(pg_switch_wal())").Scan(&segment)
	})
	lost.until(lost.admin(), "SELECT coalesce(last_archived_wal >= $1, false) FROM pg_stat_archiver", segment)
	first.finish()
	lost.kill()

	t.Cleanup(func() { _ = p.command("pg_ctl", "stop", "--pgdata="+restored.data(), "--mode=immediate").Run() })
	p.types(restore, "MOMENT="+moment.UTC().Format("2006-01-02 15:04:05.999999+00"))
	restored.until(restored.admin(), "SELECT NOT pg_is_in_recovery()")
	second := newPlace(t).serves(strings.Replace(look, " --no-work", "", 1), "PASSWORD="+p.owner, "PARTNERAPI_ENCRYPTION_KEY="+key,
		"PARTNERAPI_DATA_DIR="+t.TempDir())
	second.get(undone, "pk_demo_all").want(http.StatusNotFound)
	if got := into[fields](second.get(kept, "pk_demo_all").want(http.StatusOK)); got["name"] != "Before the moment" {
		t.Errorf("the client is %v", got)
	}
	second.do("POST", "/v2/clients", "pk_demo_all", fields{"name": "After the restore"}).want(http.StatusCreated)
	second.finish()
}
