//go:build slow

package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/platform/seal"
)

// handbook are the blocks of commands about backups in docs/operating.md, in order.
func handbook(t *testing.T) (keys, own, create, restoreOwn, embedded, restoreEmbedded, dump string) {
	t.Helper()
	for _, program := range []string{"bash", "pg_dump", "pg_restore", "createdb", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	b := chapter(t, "Backup and restore", 7)
	return b[0], b[1], b[2], b[3], b[4], b[5], b[6]
}

// place is a directory in which an operator types commands.
type place struct {
	t    *testing.T
	dir  string
	path string
}

func newPlace(t *testing.T) place {
	return place{t: t, dir: t.TempDir(), path: program(t) + ":" + os.Getenv("PATH")}
}

func (p place) at(names ...string) string { return filepath.Join(append([]string{p.dir}, names...)...) }

func (p place) shell(script string, settings ...string) *exec.Cmd {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), append([]string{"PATH=" + p.path, "PARTNERAPI_LISTEN=127.0.0.1:0"}, settings...)...)
	return cmd
}

// types runs commands that are to succeed.
func (p place) types(script string, settings ...string) {
	p.t.Helper()
	if said, err := p.shell(script, settings...).CombinedOutput(); err != nil {
		p.t.Fatalf("%s\n%v: %s", script, err, said)
	}
}

// serves runs commands of which the last one serves.
func (p place) serves(script string, settings ...string) *running {
	p.t.Helper()
	script, last, _ := strings.Cut(script, "\npartnerapi serve")
	if last != "\n" {
		p.t.Fatalf("the last command is not serve: %q", last)
	}
	r := launched(p.t, p.shell(script+"\nexec partnerapi serve", append([]string{"PARTNERAPI_DEMO=true", "PARTNERAPI_RELEASE=latest"}, settings...)...))
	r.greeted()
	return r
}

// keptApart wants no backup to hold the encryption key.
func (p place) keptApart(archive string) {
	p.t.Helper()
	list, err := p.shell("tar -tzf backup/" + archive).CombinedOutput()
	if err != nil || strings.Contains(string(list), "encryption.key") || !strings.Contains(string(list), "./reports/") {
		p.t.Errorf("%s holds (%v)\n%s", archive, err, list)
	}
}

// said is what a service answers that is the same after a restore.
func said(r *running) (texts []string) {
	for _, path := range []string{"/v2/clients?limit=500", "/v2/clients/" + oldestClient(r) + "/users?limit=20&sort=email"} {
		body := string(r.get(path, "pk_demo_all").want(http.StatusOK).body)
		texts = append(texts, regexp.MustCompile(`"next_cursor":"[^"]+"`).ReplaceAllString(body, ""))
	}
	return texts
}

// checkRestored wants the answers of before, each secret to be opened by the key, and
// the files of reports.
func (p place) checkRestored(r *running, before []string, d *db.DB, keys *seal.Keys) {
	p.t.Helper()
	for i, now := range said(r) {
		if now != before[i] {
			p.t.Errorf("it answers\n%s, and before\n%s", now, before[i])
		}
	}
	var id string
	var sealed []byte
	row := d.SQL().QueryRowContext(p.t.Context(), "SELECT client_id, credentials FROM directory_connections")
	if err := row.Scan(&id, &sealed); err != nil {
		p.t.Fatal(err)
	}
	if plain, err := keys.Open(sealed, seal.Context("directory", id)); err != nil || string(plain) != "credentials of "+id {
		p.t.Errorf("the secret is %q, %v", plain, err)
	}
	if files, err := os.ReadDir(p.at("restored", "reports")); err != nil || len(files) == 0 {
		p.t.Errorf("%d files of reports, %v", len(files), err)
	}
}

// emptied is a command that makes a database under a name of its own, and the URL of it.
func emptied(t *testing.T, create, server string) (command, address string) {
	t.Helper()
	name := "restored_" + strings.ToLower(rand.Text()[:10])
	d := opened(t, "--database-url="+server)
	t.Cleanup(func() {
		_, _ = d.SQL().ExecContext(context.Background(), "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	})
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	return strings.Replace(create, " restored\n", " "+name+"\n", 1), u.String()
}

// TestBackupOfOwnDatabase runs the commands of the handbook on a database of the
// operator's.
func TestBackupOfOwnDatabase(t *testing.T) {
	t.Parallel()
	_, backup, create, restore, _, _, _ := handbook(t)
	p, flag := newPlace(t), demonstration(t)
	text := freshKey(t)
	p.types("install -d -m 700 keys; umask 077; echo '" + text + "' > keys/encryption.key")
	first := serving(t, flag, "--data-dir="+p.at("data"), "--encryption-key="+text, "--demo", "--release=latest")
	connected(t, opened(t, flag), text, oldestClient(first))
	before := said(first)

	own := strings.TrimPrefix(flag, "--database-url=")
	p.types(backup, "PARTNERAPI_DATABASE_URL="+own)
	p.keptApart("files.tgz")
	first.finish()
	command, address := emptied(t, create, own)
	p.types(command, "PARTNERAPI_DATABASE_URL="+own)
	second := p.serves(restore, "PARTNERAPI_DATABASE_URL="+address)
	p.checkRestored(second, before, opened(t, "--database-url="+address), parsed(t, text))
	second.finish()
}

// TestBackupOfEmbeddedDatabase runs those on an embedded one: dumped while it runs, and
// copied when it is stopped.
func TestBackupOfEmbeddedDatabase(t *testing.T) {
	t.Parallel()
	keys, _, create, restoreOwn, backup, restore, dump := handbook(t)
	p, own := newPlace(t), strings.TrimPrefix(demonstration(t), "--database-url=")
	dbtest.NeedPrograms(t)
	stopLeft(t, p.at("data"))
	stopLeft(t, p.at("restored"))
	first := process(t, p.at("data"), "--demo", "--release=latest")
	p.types(keys)
	text, err := os.ReadFile(p.at("keys", "encryption.key"))
	if err != nil {
		t.Fatal(err)
	}
	kept := parsed(t, strings.TrimSpace(string(text)))
	d, shut := joined(t, p.at("data"))
	connected(t, d, strings.TrimSpace(string(text)), oldestClient(first))
	shut()
	before := said(first)
	p.types(dump)
	p.keptApart("files.tgz")
	first.finish()
	p.types(backup)
	p.keptApart("data.tgz")

	second := p.serves(restore)
	d, shut = joined(t, p.at("restored"))
	p.checkRestored(second, before, d, kept)
	shut()
	second.finish()

	if err := os.RemoveAll(p.at("restored")); err != nil {
		t.Fatal(err)
	}
	command, address := emptied(t, create, own)
	p.types(command, "PARTNERAPI_DATABASE_URL="+own)
	third := p.serves(restoreOwn, "PARTNERAPI_DATABASE_URL="+address)
	p.checkRestored(third, before, opened(t, "--database-url="+address), kept)
	third.finish()
}
