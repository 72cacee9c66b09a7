package main

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"go.yaml.in/yaml/v3"
)

const root = "../../"

func fileText(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// composeFile is what is looked at of compose.yaml.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		ReadOnly    bool `yaml:"read_only"`
		Volumes     []string
		Healthcheck struct{ Test []string }
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	}
	Volumes  map[string]any
	Configs  map[string]struct{ File string }
	Networks map[string]struct {
		IPAM struct{ Config []struct{ Subnet string } }
	}
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(fileText(t, name)), into); err != nil {
		t.Fatal(err)
	}
}

// TestDeployVariables: commands read every variable that the files of deployments set.
func TestDeployVariables(t *testing.T) {
	t.Parallel()
	known := variables(t)
	for _, name := range []string{
		"compose.yaml", ".env.example", "Dockerfile", "deploy/partnerapi.service", "deploy/partnerapi-work.service",
		"deploy/helm/values.yaml", "deploy/helm/values.schema.json", "deploy/helm/templates/_helpers.tpl",
	} {
		for _, variable := range regexp.MustCompile(`PARTNERAPI_\w+`).FindAllString(fileText(t, name), -1) {
			if !known[variable] {
				t.Errorf("%s: no command reads %s", name, variable)
			}
		}
	}
}

// TestComposeFile wants compose.yaml to call this program as it is, and to take
// every secret from the environment.
func TestComposeFile(t *testing.T) {
	var compose composeFile
	readYAML(t, "compose.yaml", &compose)
	own := 0
	for name, s := range compose.Services {
		for of, on := range s.DependsOn {
			there, ok := compose.Services[of]
			if !ok || on.Condition == "service_healthy" && len(there.Healthcheck.Test) == 0 {
				t.Errorf("%s waits for %s, which never is %s", name, of, on.Condition)
			}
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, ok := compose.Volumes[source]; !ok {
				t.Errorf("%s: there is no volume %s", name, source)
			}
		}
		if !strings.HasPrefix(s.Image, "partnerapi:") {
			continue
		}
		own++
		parses(t, s.Command...)
		if probe := s.Healthcheck.Test; len(probe) > 2 && probe[1] == "/partnerapi" {
			parses(t, probe[2:]...)
		} else if name != "migrate" {
			t.Errorf("%s has no health check: %v", name, probe)
		}
		if !s.ReadOnly {
			t.Errorf("%s may write everywhere", name)
		}
	}
	if own != 3 {
		t.Errorf("%d services are this program", own)
	}

	example := fileText(t, ".env.example")
	for _, m := range regexp.MustCompile(`\$\{(\w+)(:[-?])?`).FindAllStringSubmatch(fileText(t, "compose.yaml"), -1) {
		if m[1] != "VERSION" && !regexp.MustCompile(`(?m)^`+m[1]+`=`).MatchString(example) {
			t.Errorf(".env.example has no %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(example, -1) {
		if secret := strings.HasSuffix(m[1], "_PASSWORD") || strings.HasSuffix(m[1], "_KEY"); secret && m[2] != "" {
			t.Errorf(".env.example has a secret: %s", m[0])
		}
	}
	checkComposeRole(t, compose)
}

// checkComposeRole wants the service to have a role that is no superuser, and to believe one
// network: that of compose.yaml.
func checkComposeRole(t *testing.T, compose composeFile) {
	t.Helper()
	superuser := cmp.Or(compose.Services["postgres"].Environment["POSTGRES_USER"], "postgres") // as the image has it
	role := regexp.MustCompile(`^postgres://(\w+):\$\{(\w+)`).FindStringSubmatch(compose.Services["serve"].Environment["PARTNERAPI_DATABASE_URL"])
	if role == nil || role[1] == superuser || role[2] == "POSTGRES_PASSWORD" {
		t.Errorf("the service's role is %q, the superuser %s", role, superuser)
	}
	made := fileText(t, compose.Configs["role"].File)
	if !strings.Contains(made, "CREATE ROLE "+role[1]+" LOGIN PASSWORD") || !strings.Contains(made, "OWNER "+role[1]) ||
		strings.Contains(made, " SUPERUSER") {
		t.Errorf("the role is made by\n%s", made)
	}
	trusted := regexp.MustCompile(`(?m)^PARTNERAPI_TRUSTED_PROXIES=(.*)$`).FindStringSubmatch(fileText(t, ".env.example"))
	if ranges := compose.Networks["default"].IPAM.Config; len(ranges) != 1 || trusted[1] != ranges[0].Subnet {
		t.Errorf("%s is trusted, and the network is %v", trusted, ranges)
	}
}

// TestChart wants the chart for Kubernetes to call this program as it is. What else it says is checked by make chart.
func TestChart(t *testing.T) {
	parses(t, "serve", "--no-migrate", "--no-work", "--listen=:8080", "--metrics-listen=:8081", "--data-dir=/data/partnerapi")
	parses(t, "work", "--listen=:8081")
	parses(t, "migrate")
}

// TestUnits wants the units of systemd to call this program as it is, and to give it
// time to stop.
func TestUnits(t *testing.T) {
	for _, name := range []string{"deploy/partnerapi.service", "deploy/partnerapi-work.service"} {
		settings := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(fileText(t, name), -1) {
			settings[m[1]] = m[2]
		}
		program, args, _ := strings.Cut(settings["ExecStart"], " ")
		if filepath.Base(program) != "partnerapi" {
			t.Errorf("%s starts %s", name, program)
		}
		parses(t, strings.Fields(args)...)
		stop, err := time.ParseDuration(settings["TimeoutStopSec"] + "s")
		if err != nil || stop < 2*stopWithin+30*time.Second {
			t.Errorf("%s gives %v to stop: %v", name, stop, err)
		}
		for _, hardening := range []string{"DynamicUser", "NoNewPrivileges", "PrivateTmp"} {
			if settings[hardening] != "yes" {
				t.Errorf("%s: %s=%s", name, hardening, settings[hardening])
			}
		}
	}
}

// patroniFile is what is looked at of deploy/ha/patroni.yml.
type patroniFile struct {
	ETCD      struct{ Hosts []string } `yaml:"etcd3"`
	Bootstrap struct {
		DCS struct {
			TTL        int
			Loop       int  `yaml:"loop_wait"`
			Retry      int  `yaml:"retry_timeout"`
			Start      *int `yaml:"primary_start_timeout"`
			Sync       bool `yaml:"synchronous_mode"`
			PostgreSQL struct {
				Rewind     bool           `yaml:"use_pg_rewind"`
				Parameters map[string]any `yaml:"parameters"`
			}
		}
		Initdb []any
	}
	PostgreSQL struct {
		Authentication map[string]map[string]string
	}
}

// TestPair wants the files of deploy/ha to lose no acknowledged write, to hold no
// secrets, and to name the same machines; and the URLs of a pair, there and in the
// handbook, to lead to the server that takes writes.
func TestPair(t *testing.T) {
	var patroni patroniFile
	readYAML(t, "deploy/ha/patroni.yml", &patroni)
	dcs := patroni.Bootstrap.DCS
	if !dcs.Sync || !dcs.PostgreSQL.Rewind || dcs.PostgreSQL.Parameters["synchronous_commit"] != "on" ||
		!slices.Contains(patroni.Bootstrap.Initdb, any("data-checksums")) {
		t.Errorf("an acknowledged write can be lost, or a primary not come back: %+v", patroni.Bootstrap)
	}
	if dcs.Start == nil || dcs.TTL < dcs.Loop+2*dcs.Retry {
		t.Errorf("Patroni takes other times than these: %+v", dcs)
	}

	for _, name := range []string{"deploy/ha/node.env", "deploy/ha/etcd.env", "deploy/ha/patroni.yml"} {
		for _, m := range regexp.MustCompile(`(?mi)^.*password[=:](.*)$`).FindAllStringSubmatch(fileText(t, name), -1) {
			if strings.TrimSpace(m[1]) != "" {
				t.Errorf("%s has a secret: %s", name, m[0])
			}
		}
	}
	for user := range patroni.PostgreSQL.Authentication {
		if !strings.Contains(fileText(t, "deploy/ha/node.env"), "PATRONI_"+strings.ToUpper(user)+"_PASSWORD=\n") {
			t.Errorf("node.env has no password of %s", user)
		}
	}
	for _, host := range patroni.ETCD.Hosts {
		name, _, _ := strings.Cut(host, ".")
		if !strings.Contains(fileText(t, "deploy/ha/etcd.env"), name+"=http://"+strings.TrimSuffix(host, "2379")+"2380") {
			t.Errorf("etcd.env has no member %s", host)
		}
	}

	for _, name := range []string{"deploy/ha/README.md", "docs/operating.md"} {
		text := strings.ReplaceAll(fileText(t, name), "'\\\n'", "") // one word on several lines
		found := regexp.MustCompile(`DATABASE_URL='(postgres://[^']*db2[^']*)'`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no URL of a pair", name)
		}
		config, err := pgconn.ParseConfig(found[1])
		if err != nil || config.ValidateConnect == nil || config.Host != "db1.example.com" ||
			config.Fallbacks[len(config.Fallbacks)-1].Host != "db2.example.com" {
			t.Errorf("%s has %s: %+v, %v", name, found[1], config, err)
		}
	}
}

// TestDockerfile wants the image to have no shell, and a user without rights.
func TestDockerfile(t *testing.T) {
	text := fileText(t, "Dockerfile")
	_, last, ok := strings.Cut(text, "\nFROM scratch\n")
	if !ok || strings.Contains(last, "\nRUN ") || !regexp.MustCompile(`\nUSER [1-9]\d*:[1-9]\d*\n`).MatchString(last) {
		t.Errorf("the last stage is %s", last)
	}
	command := regexp.MustCompile(`\nCMD \["(\w+)"\]`).FindStringSubmatch(last)
	if command == nil {
		t.Fatal("the image has no command")
	}
	parses(t, command[1])
	if !strings.Contains(text, "-X main.version=$VERSION -X main.commit=$COMMIT") {
		t.Error("the image does not know its version")
	}

	// What the binary is built from is in the context.
	ignored := fileText(t, ".dockerignore")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		top, _, below := strings.Cut(filepath.ToSlash(rel), "/")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (strings.HasPrefix(top, ".") && top != "." || slices.Contains([]string{"tools", "data", "bin"}, top)):
			return fs.SkipDir
		case below && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.Contains(ignored, "\n!"+top+"\n"):
			t.Errorf("%s is not in the context of the build", rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
