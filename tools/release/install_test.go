package main

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asRoot reports whether the test may do what takes root. On CI it has to.
func asRoot(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 && os.Getenv("CI") != "" {
		t.Fatal("run it as root (sudo -E make release-test)")
	}
	return os.Getuid() == 0
}

// usual is an environment without settings of whoever runs the test.
func usual(t *testing.T) (env []string) {
	t.Helper()
	for _, setting := range os.Environ() {
		if !strings.HasPrefix(setting, "PARTNERAPI_") {
			env = append(env, setting)
		}
	}
	return append(env, "PARTNERAPI_POSTGRES_BIN="+postgresBin(t))
}

// postgresBin is the folder of the programs that make postgres has fetched; empty where there are none.
func postgresBin(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, ".postgres", "bin"))
	check(t, err)
	if _, err := os.Stat(dir); err != nil {
		return os.Getenv("PARTNERAPI_POSTGRES_BIN")
	}
	return dir
}

// process is how the program is run.
type process struct {
	program, folder string
	args, env       []string
	as              *syscall.Credential
}

func (p process) command(args ...string) *exec.Cmd {
	c := exec.Command(p.program, args...)
	c.Dir, c.Env = p.folder, p.env
	c.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	return c
}

// run runs a command of the program.
func (p process) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := output(p.command(args...))
	check(t, err)
	return string(out)
}

// running is a process that was started.
type running struct {
	*exec.Cmd
	address string
	rest    chan struct{} // closed when its output has ended
}

// start starts a process that serves, and waits until it says where.
func (p process) start(t *testing.T, args ...string) *running {
	t.Helper()
	c := p.command(args...)
	read, write, err := os.Pipe()
	check(t, err)
	c.Stdout, c.Stderr = write, write
	check(t, c.Start())
	check(t, write.Close())
	t.Cleanup(func() { _ = c.Process.Kill() }) // does nothing after stop
	s := &running{Cmd: c, rest: make(chan struct{})}
	var said strings.Builder
	for lines := bufio.NewScanner(read); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if m := announced.FindStringSubmatch(lines.Text()); m != nil {
			s.address = m[1] + m[2] + m[3]
			break
		}
	}
	if s.address == "" {
		t.Fatalf("%v does not serve: %s", c.Args, said.String())
	}
	go func() {
		_, _ = io.Copy(io.Discard, read)
		close(s.rest)
	}()
	return s
}

// announced matches what serve says of its address, in words or in its log, and work of that of its metrics.
var announced = regexp.MustCompile(
	`serves v2 release .* at http://(\S+)|"serving".*"address":"http://([^"]+)"|serving health and metrics".*"address":"([^"]+)"`)

// stop asks the process to end as systemd does, and wants it to do so.
func (s *running) stop(t *testing.T) {
	t.Helper()
	check(t, s.Process.Signal(syscall.SIGTERM))
	<-s.rest
	check(t, s.Wait())
}

// asked asks for clients, and wants a part of the answer.
func (s *running) asked(t *testing.T, key, want string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, "http://"+s.address+"/v2/clients?limit=1", nil)
	check(t, err)
	request.Header.Set("X-API-Key", key)
	answer, err := http.DefaultClient.Do(request)
	check(t, err)
	body, err := io.ReadAll(answer.Body)
	check(t, errors.Join(err, answer.Body.Close()))
	if answer.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
		t.Fatalf("%d %s", answer.StatusCode, body)
	}
}

const (
	data     = "/var/lib/partnerapi"
	settings = "/etc/partnerapi/partnerapi.env"
	units    = "/usr/lib/systemd/system/"
)

// TestDebianPackage installs the package with dpkg, runs what its units run, upgrades it, removes and purges it. The
// data and the settings outlive what they have to, and nothing is left at the end.
func TestDebianPackage(t *testing.T) {
	if _, err := exec.LookPath("dpkg"); err != nil || !asRoot(t) {
		t.Skip("takes root and dpkg")
	}
	for _, place := range []string{data, filepath.Dir(settings), "/usr/bin/partnerapi"} {
		if _, err := os.Stat(place); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("%s is there: this test installs the package, and would take it away: %v", place, err)
		}
	}
	r := *made(t)
	t.Cleanup(func() {
		_ = exec.Command("dpkg", "--purge", "partnerapi").Run()
		_ = errors.Join(os.RemoveAll(data), os.RemoveAll(filepath.Dir(settings)))
		_ = exec.Command("userdel", "partnerapi").Run()
	})
	installEarlier(t, r)
	dpkg(t, "--install", filepath.Join(r.out, prefix+"linux_"+here.arch+".deb"))
	owned(t, settings, 0o640, "root", "partnerapi")
	owned(t, data, 0o700, "partnerapi", "partnerapi")
	if _, err := exec.LookPath("systemd-analyze"); err == nil {
		_, err := output(exec.Command("systemd-analyze", "verify", units+"partnerapi.service", units+"partnerapi-work.service"))
		check(t, err)
	}

	configure(t)
	serve, work := unit(t, "partnerapi.service"), unit(t, "partnerapi-work.service")
	if said := serve.run(t, "version"); !strings.HasPrefix(said, "partnerapi "+version+"\n") {
		t.Errorf("%s is installed", said)
	}
	s := serve.start(t, serve.args...)
	serve.run(t, "partners", "create", "Northlight MSP")
	key := strings.TrimSpace(serve.run(t, "keys", "create", "--name=test", "--clients=all", "--scopes=read"))
	s.asked(t, key, `{"data":[]`)
	byHand(t, serve.env)
	w := work.start(t, work.args...)
	serve.run(t, "health", "http://"+w.address)
	w.stop(t)
	s.stop(t)

	// An upgrade keeps settings that were changed, and data.
	changed := fileOf(t, settings)
	r.version = "v0.0.2"
	dpkg(t, "--install", packageOf(t, &r))
	if string(fileOf(t, settings)) != string(changed) {
		t.Error("the upgrade changed the settings")
	}
	owned(t, settings, 0o640, "root", "partnerapi")
	s = serve.start(t, serve.args...)
	s.asked(t, key, `{"data":[]`)
	s.stop(t)

	// A removal keeps both, a purge the data.
	dpkg(t, "--remove", "partnerapi")
	if _, err := os.Stat("/usr/bin/partnerapi"); !errors.Is(err, fs.ErrNotExist) || string(fileOf(t, settings)) != string(changed) {
		t.Errorf("the removal left the program (%v), or changed the settings", err)
	}
	owned(t, data+"/postgres", 0o700, "partnerapi", "partnerapi")
	dpkg(t, "--purge", "partnerapi")
	if _, err := os.Stat(settings); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the purge left the settings: %v", err)
	}
	owned(t, data+"/postgres", 0o700, "partnerapi", "partnerapi")
}

// TestLintian wants the package to have no error of Debian's policy, and the manual page no warning.
func TestLintian(t *testing.T) {
	r := made(t)
	for program, args := range map[string][]string{
		"lintian": {"--allow-root", "--fail-on=error", filepath.Join(r.out, prefix+"linux_"+here.arch+".deb")},
		"man":     {"--warnings", "--encoding=UTF-8", "--local-file", manualFile(t, r)},
	} {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Logf("there is no %s", program)
			continue
		}
		c := exec.Command(path, args...)
		var said strings.Builder
		c.Stderr = &said
		if out, err := c.Output(); err != nil || program == "man" && (said.Len() > 0 || !strings.Contains(string(out), "partnerapi keys create")) {
			t.Errorf("%s (%v): %s%.3000s", program, err, &said, out)
		}
	}
}

// manualFile writes the manual page, and returns its path.
func manualFile(t *testing.T, r *release) string {
	t.Helper()
	page, err := r.manual()
	check(t, err)
	path := filepath.Join(t.TempDir(), "partnerapi.1.gz")
	check(t, os.WriteFile(path, page, 0o600))
	return path
}

// packageOf makes the package of Debian of a release, and returns its path.
func packageOf(t *testing.T, r *release) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), r.version+".deb")
	file, err := os.Create(path)
	check(t, err)
	check(t, errors.Join(r.writePackage(file, "deb", here), file.Close()))
	return path
}

// installEarlier installs a package whose settings are a conffile, as those of 1.0 are, and changes them, as the
// handbook has it. The next package has other settings: its installation must not stop at dpkg's question, nor lose the
// change. After a purge it installs the package anew.
func installEarlier(t *testing.T, r release) {
	t.Helper()
	r.version, r.conffile = "v0.0.0", true
	dpkg(t, "--install", packageOf(t, &r))
	changed := "PARTNERAPI_LISTEN=127.0.0.1:0\nPARTNERAPI_RELEASE=latest\n"
	check(t, os.WriteFile(settings, []byte(changed), 0o640))
	dpkg(t, "--install", filepath.Join(r.out, prefix+"linux_"+here.arch+".deb"))
	if got := string(fileOf(t, settings)); got != changed {
		t.Errorf("the upgrade changed the settings to %s", got)
	}
	owned(t, settings, 0o640, "root", "partnerapi")
	dpkg(t, "--purge", "partnerapi")
	if _, err := os.Stat(filepath.Dir(settings)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the purge left the settings of before: %v", err)
	}
}

// byHand runs a command as root types it: it has the database of the service, as the service's user, and says so. A
// database that is named on the command line is used alone.
func byHand(t *testing.T, service []string) {
	t.Helper()
	var env []string
	for _, v := range service {
		if !strings.HasPrefix(v, "PARTNERAPI_") {
			env = append(env, v)
		}
	}
	c := exec.Command("/usr/bin/partnerapi", "partners", "list")
	c.Dir, c.Env = t.TempDir(), env
	said, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "Northlight MSP") ||
		!strings.Contains(string(said), "using the settings in "+settings+", as the user partnerapi\n") {
		t.Errorf("by hand (%v): %s", err, said)
	}
	c = exec.Command("/usr/bin/partnerapi", "partners", "list", "--data-dir=data")
	c.Dir, c.Env = t.TempDir(), env
	if said, err := c.CombinedOutput(); err == nil || strings.Contains(string(said), settings) {
		t.Errorf("with a database of its own (%v): %s", err, said)
	}
}

// dpkg runs dpkg, which may ask nothing.
func dpkg(t *testing.T, args ...string) {
	t.Helper()
	c := exec.Command("dpkg", args...)
	c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	_, err := output(c)
	check(t, err)
}

// owned wants a file or folder to have a mode and an owner.
func owned(t *testing.T, name string, mode fs.FileMode, owner, group string) {
	t.Helper()
	about, err := os.Stat(name)
	check(t, err)
	stat := about.Sys().(*syscall.Stat_t)
	u, g := account(t, owner)
	_, wanted := account(t, group)
	if about.Mode().Perm() != mode || stat.Uid != u || stat.Gid != wanted {
		t.Errorf("%s is %v of %d:%d; %s is %d:%d", name, about.Mode(), stat.Uid, stat.Gid, owner, u, g)
	}
}

// account returns the numbers of a user and of its group.
func account(t *testing.T, name string) (uid, gid uint32) {
	t.Helper()
	u, err := user.Lookup(name)
	check(t, err)
	one, err := strconv.ParseUint(u.Uid, 10, 32)
	check(t, err)
	two, err := strconv.ParseUint(u.Gid, 10, 32)
	check(t, err)
	return uint32(one), uint32(two)
}

// configure adds settings, as an operator does: free ports, and where PostgreSQL is.
func configure(t *testing.T) {
	t.Helper()
	text := string(fileOf(t, settings)) + "PARTNERAPI_LISTEN=127.0.0.1:0\nPARTNERAPI_NO_WORK=true\nPARTNERAPI_WORK_LISTEN=127.0.0.1:0\n"
	if bin := postgresBin(t); bin != "" {
		text += "PARTNERAPI_POSTGRES_BIN=" + bin + "\n"
	}
	check(t, os.WriteFile(settings, []byte(text), 0o640))
}

// unit reads how systemd runs a unit: its command line, its user, and its environment, in which the file wins.
func unit(t *testing.T, name string) (p process) {
	t.Helper()
	set := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(string(fileOf(t, units+name)), -1) {
		set[m[1]] = m[2]
	}
	words := strings.Fields(set["ExecStart"])
	p.program, p.args, p.folder = words[0], words[1:], "/"
	p.env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + data, "USER=" + set["User"]}, strings.Fields(set["Environment"])...)
	p.env = append(p.env, regexp.MustCompile(`(?m)^\w+=.*$`).FindAllString(string(fileOf(t, set["EnvironmentFile"])), -1)...)
	uid, gid := account(t, set["User"])
	p.as = &syscall.Credential{Uid: uid, Gid: gid}
	return p
}
