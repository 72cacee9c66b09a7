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

func (d folder) data() string             { return filepath.Join(string(d), "pgdata") }
func (d folder) logFile() string          { return filepath.Join(string(d), "server.log") }
func (d folder) passwordFile() string     { return filepath.Join(string(d), "password") }
func (d folder) rolePasswordFile() string { return filepath.Join(string(d), "password-app") }
func (d folder) portFile() string         { return filepath.Join(string(d), "port") }

// major returns the major version of PostgreSQL that created the data, or 0 if there are none.
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

// ensurePassword returns the password in a file. If there is no file, it creates one with a random password.
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

// replace writes a file atomically: after a crash the file has either its old or its new content.
func replace(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// initdb creates the data in a temporary folder and renames it when they are complete, so that a killed process leaves
// no incomplete data. If sync is true, the data are on the disk when it returns.
func (d folder) initdb(ctx context.Context, bin binaries, owner identity, sync bool) error {
	// Delete the temporary folders of killed processes. An initdb that still runs in one fails.
	leftovers, _ := filepath.Glob(filepath.Join(string(d), "initdb-*")) // the pattern is well-formed
	for _, dir := range leftovers {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}

	temp, err := os.MkdirTemp(string(d), "initdb-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp) // does nothing after the rename
	if err := owner.adopt(temp); err != nil {
		return err
	}

	cmd := exec.CommandContext(ctx, bin.path("initdb"), "-D", temp, "-U", name, "--pwfile="+d.passwordFile(),
		"--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--data-checksums")
	if !sync {
		cmd.Args = append(cmd.Args, "--no-sync")
	}
	cmd.Dir = string(d)
	cmd.Env = environment()
	cmd.SysProcAttr = owner.attr
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}

	if err := os.Rename(temp, d.data()); err != nil {
		return err
	}
	return syncDir(string(d))
}

// syncDir flushes a folder to the disk, so that a rename within it survives a power failure.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// connectTimeout is in seconds. It is long because only an overloaded server is slow to accept: a local server that
// does not run refuses connections at once.
const connectTimeout = "60"

// address returns the URL of a database of the server, on loopback.
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
