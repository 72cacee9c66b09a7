package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// folder is the folder of one server.
type folder string

func (d folder) data() string         { return filepath.Join(string(d), "pgdata") }
func (d folder) log() string          { return filepath.Join(string(d), "server.log") }
func (d folder) password() string     { return filepath.Join(string(d), "password") }
func (d folder) rolePassword() string { return filepath.Join(string(d), "password-app") }
func (d folder) port() string         { return filepath.Join(string(d), "port") }

// major is the version that made the data, 0 where there are none.
func (d folder) major() (int, error) {
	path := filepath.Join(d.data(), "PG_VERSION")
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return major, nil
}

// ensurePassword returns the password in a file. It makes one up if there is no file,
// and never changes it.
func (d folder) ensurePassword(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return string(text), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	password := rand.Text()
	return password, replace(path, password)
}

// replace writes a file that is either whole or not there, also after a crash.
func replace(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone where the rename was done
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// initdb makes the data in a folder aside and moves them into place when they
// are whole, so that one killed meanwhile leaves nothing half-made. sync waits
// until they are on the disk.
func (d folder) initdb(ctx context.Context, bin binaries, as identity, sync bool) error {
	// What a killed one left. Should its initdb still run, it fails by this.
	leavings, _ := filepath.Glob(filepath.Join(string(d), "initdb-*")) // the pattern is well-formed
	for _, dir := range leavings {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}

	aside, err := os.MkdirTemp(string(d), "initdb-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(aside) // gone where the rename was done
	if err := as.adopt(aside); err != nil {
		return err
	}

	cmd := exec.CommandContext(ctx, bin.path("initdb"), "-D", aside, "-U", name, "--pwfile="+d.password(),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--data-checksums")
	if !sync {
		cmd.Args = append(cmd.Args, "--no-sync")
	}
	cmd.Dir = string(d)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = as.attr
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}

	if err := os.Rename(aside, d.data()); err != nil {
		return err
	}
	return syncDir(string(d))
}

// syncDir makes a rename within the folder last through a loss of power.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// connectTimeout is in seconds. A server of this machine that does not run refuses a
// connection at once, so one that is slow has too much to do, and is waited for.
const connectTimeout = "60"

// address is the URL of a database of the server on loopback.
func address(user, password string, port int, database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(user, password),
		Host:     net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path:     "/" + database,
		RawQuery: "sslmode=disable&connect_timeout=" + connectTimeout,
	}
	return u.String()
}
