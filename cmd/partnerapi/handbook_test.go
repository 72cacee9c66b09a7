//go:build slow

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"partnerapi/domain"
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

// installedService is an installation by the handbook: a server of PostgreSQL of its own, on which the handbook's commands
// create the roles, and a folder in which root types them. What only root, dpkg and systemd can do, this test does in
// their place: tests of the release tool run that.
type installedService struct {
	place
	servers *postgres
	server  *node
	// paths replaces the places of the handbook by those of the test.
	paths   *strings.Replacer
	service *running // nil while it is stopped
	key     string   // an API key
}

// newInstallation starts the server, with further settings, and installs nothing yet. The server's name is "main".
func newInstallation(p place, settings ...string) *installedService {
	p.t.Helper()
	for _, name := range []string{"bash", "curl", "sed", "tar", "createuser", "createdb", "psql", "pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(name); err != nil {
			p.t.Skipf("there is no %s", name)
		}
	}
	i := &installedService{place: p, servers: newPostgres(p.t, "pg_ctl", "pg_basebackup")}
	i.servers.types("mkdir -p run backup/wal")
	free := i.servers.node("service").port
	i.paths = strings.NewReplacer("/etc/partnerapi", p.at("etc"), "/var/lib/partnerapi", p.at("installed"), "127.0.0.1:8080",
		"127.0.0.1:"+strconv.Itoa(free), "/var/run/postgresql", i.servers.at("run"), "/var/backups/partnerapi", i.servers.at("backup"),
		"/var/lib/postgresql", i.servers.dir)
	for n := range settings {
		settings[n] = i.paths.Replace(settings[n])
	}
	i.server = i.servers.server("main", append(settings, "unix_socket_directories = '"+i.servers.at("run")+"'")...)
	return i
}

// prelude are the programs that the test is in the place of. systemctl and apt-get ask the test, by the pipes 3 and 4.
// Whoever may use the server's socket is whom PGUSER names, as the user is on a machine with those users.
const prelude = `
ask() { echo "$*" >&3; read -r -u 4 said; [ "$said" = ok ]; }
systemctl() { ask systemctl "$@"; }
apt-get() { ask apt-get "$@"; }
su() { PGUSER=$1 bash -euo pipefail -c "$3"; }
`

// command is a script of the handbook, to run as root does.
func (i *installedService) command(script string, settings ...string) *exec.Cmd {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", prelude+i.paths.Replace(script))
	cmd.Dir = i.dir
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PARTNERAPI_") })
	cmd.Env = append(cmd.Env, append([]string{
		"PATH=" + i.path, "PGHOST=" + i.servers.at("run"), "PGPORT=" + strconv.Itoa(i.server.port), "PGUSER=partnerapi",
		asInstalled + "=" + i.at("etc", "partnerapi.env"), asInstalled + "_DATA=" + i.at("installed"),
	}, settings...)...)
	return cmd
}

// types runs a script that is to succeed, and returns what it prints.
func (i *installedService) types(script string, settings ...string) string {
	i.t.Helper()
	cmd := i.command(script, settings...)
	asks, asked, err := os.Pipe()
	if err != nil {
		i.t.Fatal(err)
	}
	answers, answered, err := os.Pipe()
	if err != nil {
		i.t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{asked, answers} // 3 and 4
	out, err := os.Create(i.at("said"))
	if err != nil {
		i.t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		i.t.Fatal(err)
	}
	_, _ = asked.Close(), answers.Close()
	for lines := bufio.NewScanner(asks); lines.Scan(); { // until the script has ended
		i.manage(lines.Text())
		fmt.Fprintln(answered, "ok")
	}
	_, _ = asks.Close(), answered.Close()
	err = cmd.Wait()
	said, readErr := os.ReadFile(out.Name())
	if err != nil || readErr != nil {
		i.t.Fatalf("%s\n%v: %s", script, err, said)
	}
	return string(said)
}

// manage does what systemctl and apt-get do.
func (i *installedService) manage(line string) {
	i.t.Helper()
	switch strings.TrimSuffix(strings.TrimSuffix(line, " partnerapi-work"), " partnerapi") { // work runs in serve here
	case "apt-get install ./partnerapi_1.1.0_linux_amd64.deb postgresql":
		settings := i.paths.Replace(fileText(i.t, "deploy/partnerapi.env")) + "PARTNERAPI_RELEASE=latest\n"
		for _, folder := range []string{"etc", "installed"} {
			if err := os.Mkdir(i.at(folder), 0o700); err != nil {
				i.t.Fatal(err)
			}
		}
		writeFile(i.t, i.at("etc", "partnerapi.env"), settings)
	case "systemctl enable --now", "systemctl start":
		i.start()
	case "systemctl stop":
		i.stop()
	case "systemctl restart":
		i.stop()
		i.start()
	default:
		i.t.Fatalf("the handbook has a command that is not known here: %s", line)
	}
}

func (i *installedService) start() {
	i.t.Helper()
	i.service = launched(i.t, i.command("exec partnerapi serve"))
	i.service.greeted()
}

func (i *installedService) stop() {
	i.t.Helper()
	if i.service != nil {
		i.service.finish()
	}
	i.service = nil
}

// setting is the value of a variable of the settings.
func (i *installedService) setting(name string) (value string) {
	i.t.Helper()
	text, err := os.ReadFile(i.at("etc", "partnerapi.env"))
	if err != nil {
		i.t.Fatal(err)
	}
	for _, v := range environmentFile(text) {
		if v[0] == name {
			value = v[1]
		}
	}
	return value
}

// install runs the commands of the section Install, with an API key.
func (i *installedService) install() {
	i.t.Helper()
	blocks := chapter(i.t, "Install", 3)
	i.types(blocks[0])
	said := i.types(blocks[1] + "\necho \"key: $KEY\"\n")
	says(i.t, said, `"data":[`, "can read and write all tables and is not a superuser")
	i.key = regexp.MustCompile(`key: (\S+)`).FindStringSubmatch(said)[1]
}

// fill creates a client with a user and a report.
func (i *installedService) fill() {
	i.t.Helper()
	client := i.create("Énergie Boréale")
	i.service.do("POST", client+"/users", i.key, fields{"email": "nikos@example.com", "first_name": "Νίκος"}).want(http.StatusCreated)
	made := into[identified](i.service.do("POST", client+"/reports", i.key, fields{"type": "executive_summary"}).want(http.StatusCreated))
	await(i.t, "the report is ready", func() bool {
		return into[fields](i.service.get(client+"/reports/"+made.ID, i.key).want(http.StatusOK))["status"] == "ready"
	})
}

// create creates a client, and returns its path.
func (i *installedService) create(name string) string {
	i.t.Helper()
	made := i.service.do("POST", "/v2/clients", i.key, fields{"name": name}).want(http.StatusCreated)
	return "/v2/clients/" + into[identified](made).ID
}

// TestHandbook runs the commands of docs/operating.md in order: install, back up, restore, restore to a moment, upgrade,
// and rotate keys and roles.
func TestHandbook(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	i := newInstallation(p, strings.Split(chapter(t, "Point-in-time restore", 4)[0], "\n")...)
	i.install()
	i.fill()
	i.restoreBackup()
	i.restoreMoment()

	i.types(chapter(t, "Upgrade and rollback", 1)[0])
	i.rotateKeys()
	i.rotateRoles()
	i.stop()
}

// restoreBackup backs the service up and restores it. The database is one of 1.0 in SQL_ASCII, and then in UTF8.
func (i *installedService) restoreBackup() {
	i.t.Helper()
	blocks := chapter(i.t, "Backup and restore", 6)
	i.server.exec("UPDATE pg_database SET encoding = pg_char_to_encoding('SQL_ASCII') WHERE datname = 'partnerapi'")
	i.types("systemctl restart partnerapi")
	says(i.t, i.service.logs.String(), "the database cannot store every character")
	i.connect()
	before := said(i.service, i.key)
	i.types(blocks[1])
	i.keptApart("files.tgz")
	lost := i.create("After the backup")
	for _, name := range []string{"reports", "outbox"} {
		if err := os.RemoveAll(i.at("installed", name)); err != nil {
			i.t.Fatal(err)
		}
	}

	i.types(blocks[2])
	i.service.get(lost, i.key).want(http.StatusNotFound)
	i.checkRestored(i.service, before, opened(i.t, "--database-url="+i.url()), parsed(i.t, i.setting("PARTNERAPI_ENCRYPTION_KEY")), "installed", i.key)
	if strings.Contains(i.service.logs.String(), "does not store every character") {
		i.t.Error("the restored database is not in UTF8")
	}
}

// url is the address of the database for its owner, from this process.
func (i *installedService) url() string {
	return fmt.Sprintf("host=%s port=%d user=partnerapi dbname=partnerapi", i.servers.at("run"), i.server.port)
}

// connect stores a secret of a client.
func (i *installedService) connect() {
	i.t.Helper()
	d := opened(i.t, "--database-url="+i.url())
	connected(i.t, d, i.setting("PARTNERAPI_ENCRYPTION_KEY"), clientOf(i.service, i.key))
	_ = d.Close() // the database is renamed later
}

// restoreMoment brings the database back, in a new server, to a moment between two writes that were answered: the first
// is there, and the second is not. The installation then uses the new server.
func (i *installedService) restoreMoment() {
	i.t.Helper()
	restored := i.servers.node("restored")
	blocks := chapter(i.t, "Point-in-time restore", 4)
	for n := range blocks {
		blocks[n] = strings.ReplaceAll(blocks[n], "5433", strconv.Itoa(restored.port))
	}
	backUp, restore, look := i.paths.Replace(blocks[1]), i.paths.Replace(blocks[2]), blocks[3]
	// Only the copy waits for a standby: the server has not read it.
	i.server.exec("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
	i.servers.types(backUp, "PRIMARY_URL="+i.server.admin())
	kept := i.create("Before the moment")
	var moment time.Time
	var segment string
	ask := func(query string, into any) {
		i.server.with(i.server.admin(), func(conn *pgx.Conn) error { return conn.QueryRow(i.t.Context(), query).Scan(into) })
	}
	ask("SELECT clock_timestamp()", &moment)
	undone := i.create("After the moment")
	ask("SELECT pg_walfile_name(pg_switch_wal())", &segment)
	i.server.until(i.server.admin(), "SELECT coalesce(last_archived_wal >= $1, false) FROM pg_stat_archiver", segment)
	i.types("systemctl stop partnerapi")
	i.server.kill()

	i.t.Cleanup(func() { _ = i.servers.command("pg_ctl", "stop", "--pgdata="+restored.data(), "--mode=immediate").Run() })
	i.servers.types(restore, "MOMENT="+moment.UTC().Format("2006-01-02 15:04:05.999999+00"))
	restored.until(restored.admin(), "SELECT NOT pg_is_in_recovery()")
	look, serve, found := strings.Cut(look, "partnerapi serve")
	if !found || serve != " --no-work\n" {
		i.t.Fatalf("the last command is partnerapi serve%s", serve)
	}
	i.types(look)
	looking := launched(i.t, i.command("exec partnerapi serve"+serve))
	looking.greeted()
	looking.get(undone, i.key).want(http.StatusNotFound)
	if got := into[fields](looking.get(kept, i.key).want(http.StatusOK)); got["name"] != "Before the moment" {
		i.t.Errorf("the client is %v", got)
	}
	looking.finish()
	i.server = restored
	i.types("systemctl start partnerapi")
	i.create("After the restore")
}

// rotateKeys replaces the encryption key, and the API key of the section Install.
func (i *installedService) rotateKeys() {
	i.t.Helper()
	blocks := chapter(i.t, "Rotation", 3)
	old := i.setting("PARTNERAPI_ENCRYPTION_KEY")
	i.types(blocks[0])
	if now := i.setting("PARTNERAPI_ENCRYPTION_KEY"); now == old || strings.Contains(now, ",") {
		i.t.Errorf("the key is %q, and was %q", now, old)
	}
	says(i.t, i.types("partnerapi doctor"), "it decrypts the stored secrets")

	revoked := i.key
	i.key = regexp.MustCompile(`papi_\w{40}`).FindString(i.types(blocks[1], "PREFIX="+domain.APIKeyPrefix(revoked)))
	i.service.get("/v2/clients", i.key).want(http.StatusOK)
	i.types("systemctl restart partnerapi") // which notices within 30 seconds
	i.service.get("/v2/clients", revoked).want(http.StatusUnauthorized)
}

// rotateRoles creates the role that serves, uses it, and replaces its login.
func (i *installedService) rotateRoles() {
	i.t.Helper()
	i.types(chapter(i.t, "PostgreSQL", 1)[0], "PASSWORD=sesame")
	i.types(fmt.Sprintf(`sed -i "s|^PARTNERAPI_DATABASE_URL=.*|PARTNERAPI_DATABASE_URL=postgres://serve_2027:sesame@127.0.0.1:%d/partnerapi|" \
		/etc/partnerapi/partnerapi.env
		echo PARTNERAPI_NO_MIGRATE=true >>/etc/partnerapi/partnerapi.env
		systemctl restart partnerapi`, i.server.port))
	i.types("partnerapi idmap export numbers.csv; partnerapi idmap import numbers.csv") // v1-line
	i.types(`partnerapi export all.ndjson
		partnerapi import all.ndjson
		partnerapi doctor --recount
		partnerapi audit
		partnerapi mail failed
		partnerapi webhooks list
		partnerapi reports make 'Énergie Boréale' policy --out=report.pdf`)
	says(i.t, i.types("partnerapi doctor"), "serve_2027 can read and write all tables")
	// A table of a later version has the rights.
	owner := opened(i.t, "--database-url="+i.url())
	execute(i.t, owner, "CREATE TABLE later (id bigint GENERATED ALWAYS AS IDENTITY)")
	i.service.get("/readyz", "").want(http.StatusOK)
	i.create("By the role that serves")

	i.types(chapter(i.t, "Rotation", 3)[2], "PASSWORD=rotated")
	says(i.t, i.types("partnerapi doctor"), "serve_2028 can read and write all tables")
	i.create("By its next login")
	login, err := pgx.Connect(i.t.Context(), fmt.Sprintf("postgres://serve_2027:sesame@127.0.0.1:%d/partnerapi", i.server.port))
	if err == nil {
		_ = login.Close(i.t.Context())
		i.t.Error("the login of before is still there")
	}
	if _, err := os.Stat(filepath.Join(i.dir, "data")); err == nil {
		i.t.Error("a command made a second data directory")
	}
}
