//go:build slow

package main

import (
	"encoding/base64"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"partnerapi/db"
	"partnerapi/db/dbtest"
	"partnerapi/platform/directory/directorytest"
)

// lasting are the commands that work until they are told to stop, and what says that they do.
var lasting = map[string]*regexp.Regexp{
	"serve":           regexp.MustCompile(`serves v2 release`),
	"work":            watchedAt,
	"webhooks listen": regexp.MustCompile(`are posted to`),
}

// TestExamplesOfHelp runs the examples that help shows, in the order of the commands. Each command has one or two. Those
// of this version leave in the audit trail what audited says.
func TestExamplesOfHelp(t *testing.T) {
	t.Setenv("SUDO_USER", "ada")
	m := newMachine(t)
	for name, command := range leaves(model(t).Node, "") {
		switch {
		case strings.HasPrefix(name, "__"):
		case name == "v1 end":
			defer m.try(name, command) // what compares versions needs both
		default:
			m.try(name, command)
		}
	}
}

// machine is where the examples are typed: its folder has the files that they name, its variables the database.
type machine struct {
	t *testing.T
	d *db.DB
	// service runs on the database of url.
	service *running
	url     string
	// means has what stands for a name in the examples.
	means []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	database, other, _, d, _ := cellPair(t)
	t.Chdir(t.TempDir())
	insertClients(t, d, "Northlight MSP", "Hillside Dental", "Lakeside Clinic")
	key := newKey(t, "--name=k", "--clients=all", "--scopes=read,write", database)
	hook := subscribed(t, d, "Northlight MSP")
	revoked := newKey(t, "--name=old", "--clients=all", "--scopes=read", database)
	people := directorytest.New()
	google, microsoft := directorytest.NewGoogle(people), directorytest.NewMicrosoft(people)
	t.Cleanup(google.Close)
	t.Cleanup(microsoft.Close)
	secret := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for name, text := range map[string]string{
		"breaches.json":  `[{"Name": "Forum", "Title": "A forum", "DataClasses": ["Names"]}]`,
		"templates.json": `[{"name": "A", "subject": "s", "from_address": "a@b.c", "html": "<a href=\"{{url}}\"></a>", "text": "{{url}}", "deception_score": 1, "indicators": {"x": {"fear": 1}}}]`,
		"requests.txt":   "GET /v1/clients?limit=5\n",
		"account.json":   string(google.Credentials()), "secret.txt": string(microsoft.Credentials()), "encryption.key": secret,
	} {
		writeFile(t, name, text)
	}
	service := serving(t, "--release=latest", "--cell-count=16", database)
	url := strings.TrimPrefix(database, "--database-url=")
	for name, value := range map[string]string{
		"DATABASE_URL": url, "DATA_DIR": ".", "KEY": key, "ENCRYPTION_KEY": secret,
		"LISTEN": "127.0.0.1:0", "WORK_LISTEN": "127.0.0.1:0", "CELL_COUNT": "16", "GOOGLE_URL": google.Endpoints().Google,
		"MICROSOFT_LOGIN_URL": microsoft.Endpoints().Login, "MICROSOFT_GRAPH_URL": microsoft.Endpoints().Graph,
	} {
		t.Setenv("PARTNERAPI_"+name, value)
	}
	return &machine{t, d, service, url, []string{
		"https://api.example.com", service.address, "pk_1cY4nTq8Zb", prefix(revoked), "2028-", time.Now().AddDate(2, 0, 0).Format("2006-"),
		"whk_01hrcssyngez2rfxjq1vdbavap", hook.String(),
		"postgres://partnerapi@db.example.com/partnerapi", url,
		"postgres://partnerapi@cell01.example.com/partnerapi", strings.TrimPrefix(other, "--database-url="),
	}}
}

// try runs the examples of a command.
func (m *machine) try(name string, command *kong.Node) {
	m.t.Helper()
	_, lines, _ := strings.Cut(command.Detail, "Examples:\n\n\tpartnerapi ")
	examples := strings.Split(lines, "\n\tpartnerapi ")
	if lines == "" || len(examples) > 2 {
		m.t.Errorf("%s has the examples %q", name, lines)
		return
	}
	m.prepare(name)
	flag := "--database-url=" + m.url
	before := len(entries(m.t, flag))
	for _, line := range examples {
		m.run(name, line)
	}
	if _, changes := audited[name]; changes || slices.Contains(changeNothing, name) {
		checkAudited(m.t, name, entries(m.t, flag)[before:])
	}
}

// prepare makes what the examples of a command need.
func (m *machine) prepare(path string) {
	m.t.Helper()
	switch path {
	case "serve":
		m.t.Setenv("PARTNERAPI_DATABASE_URL", dbtest.URL(m.t, tablesSchema)) // of a demonstration, which is alone in it
	case "work":
		m.t.Setenv("PARTNERAPI_DATABASE_URL", m.url)
	case "partners rename":
		must(m.t, "partners", "create", "Northwind IT")
	case "move cancel":
		insertClients(m.t, m.d, "Fabrikam IT")
		m.exec("INSERT INTO moves (partner_id, step, cell, held_until) VALUES ($1, 'handing', '01', now())", partnerNamed(m.t, m.d, "Fabrikam IT").UUID())
	case "mail retry":
		must(m.t, "seed", "--clients=1", "--users=1")
		m.exec(`INSERT INTO mail_requests (client_id, id, user_id, type, created_at, failed_at, failure)
			SELECT client_id, gen_random_uuid(), id, 'welcome', now(), now(), 'refused' FROM users`)
	case "encryption-key rotate":
		m.exec("DELETE FROM webhook_deliveries")
		m.exec("DELETE FROM webhooks") // what is sealed in it is not
	case "idmap import":
		must(m.t, "idmap", "export", "numbers.csv")
	case "idmap lookup":
		numbers, err := os.ReadFile("numbers.csv")
		found := regexp.MustCompile(`(?m)^client,(\d+),`).FindSubmatch(numbers)
		if err != nil || found == nil {
			m.t.Fatalf("%s: %v", numbers, err)
		}
		m.means = append(m.means, "client 17", "client "+string(found[1]))
	case "v1 end":
		m.service.stop()
		<-m.service.ended // and notes no more calls
		m.exec("DELETE FROM v1_usage")
		must(m.t, "v1", "announce", "--announced=2020-01-01", "--sunset=2022-01-01")
	}
}

func (m *machine) exec(sql string, args ...any) {
	m.t.Helper()
	execute(m.t, m.d, sql, args...)
}

// run runs an example, which is to succeed. One that lasts is stopped once it works.
func (m *machine) run(path, line string) {
	m.t.Helper()
	line, file, redirected := strings.Cut(line, " > ")
	var args []string
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(strings.NewReplacer(m.means...).Replace(line), -1) {
		args = append(args, strings.Trim(word, "'"))
	}
	r := inProcess(m.t, args...)
	if works := lasting[path]; works != nil {
		from := r.out
		if path == "work" {
			from = r.logs
		}
		from.await(works, r.ended)
		r.stop()
	}
	<-r.ended
	if r.code != 0 {
		m.t.Errorf("partnerapi %s: exit %d: %s%s", line, r.code, r.out, r.logs)
	}
	if redirected {
		writeFile(m.t, file, r.out.String())
	}
}
