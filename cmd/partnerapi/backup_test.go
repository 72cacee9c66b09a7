//go:build slow

package main

import (
	"net/http"
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

// clientOf is the oldest client of a key.
func clientOf(r *running, key string) string {
	return into[struct{ Data []identified }](r.get("/v2/clients?limit=1&sort=created_at", key).want(http.StatusOK)).Data[0].ID
}

// said is what a service answers that is the same after a restore.
func said(r *running, key string) (texts []string) {
	for _, path := range []string{"/v2/clients?limit=500", "/v2/clients/" + clientOf(r, key) + "/users?limit=20&sort=email"} {
		body := string(r.get(path, key).want(http.StatusOK).body)
		texts = append(texts, regexp.MustCompile(`"(next_cursor|as_of)":"[^"]+"`).ReplaceAllString(body, ""))
	}
	return texts
}

// checkRestored wants the answers of before, each secret to be opened by the key, and
// the files of reports in the data directory. key is an API key.
func (p place) checkRestored(r *running, before []string, d *db.DB, keys *seal.Keys, data, key string) {
	p.t.Helper()
	for i, now := range said(r, key) {
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
	if files, err := os.ReadDir(p.at(data, "reports")); err != nil || len(files) == 0 {
		p.t.Errorf("%d files of reports, %v", len(files), err)
	}
}

// TestBackupOfEmbeddedDatabase runs the handbook's commands for an embedded database: dumped while it runs, and copied
// when it is stopped. The dump is restored into the database of an installation with a server of its own.
func TestBackupOfEmbeddedDatabase(t *testing.T) {
	t.Parallel()
	blocks := chapter(t, "Backup and restore", 6)
	keys, restoreOwn, backup, restore, dump := blocks[0], blocks[2], blocks[3], blocks[4], blocks[5]
	p := newPlace(t)
	dbtest.NeedPrograms(t)
	stopLeft(t, p.at("data"))
	stopLeft(t, p.at("restored"))
	first := process(t, p.at("data"), "--demo", "--release=latest")
	p.types(keys)
	read, err := os.ReadFile(p.at("keys", "encryption.key"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(read))
	d, shut := joined(t, p.at("data"))
	connected(t, d, text, oldestClient(first))
	shut()
	before := said(first, "pk_demo_all")
	p.types(dump)
	p.keptApart("files.tgz")
	first.finish()
	p.types(backup)
	p.keptApart("data.tgz")

	second := p.serves(restore)
	d, shut = joined(t, p.at("restored"))
	p.checkRestored(second, before, d, parsed(t, text), "restored", "pk_demo_all")
	shut()
	second.finish()

	own := newInstallation(p)
	own.install()
	own.types("sed -i 's|^PARTNERAPI_ENCRYPTION_KEY=.*|PARTNERAPI_ENCRYPTION_KEY=" + text + "|' /etc/partnerapi/partnerapi.env\n" +
		"echo PARTNERAPI_DEMO=true >>/etc/partnerapi/partnerapi.env")
	own.types(restoreOwn)
	p.checkRestored(own.service, before, opened(t, "--database-url="+own.url()), parsed(t, text), "installed", "pk_demo_all")
	own.stop()
}
