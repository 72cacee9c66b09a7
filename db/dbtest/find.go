package dbtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"partnerapi/db/embedded"
)

// fast are the settings of servers whose data need not outlive the machine.
var fast = map[string]string{
	"fsync":              "off",
	"synchronous_commit": "off",
	"full_page_writes":   "off",
	"max_connections":    "300",
	"shared_buffers":     "128MB",
	"max_wal_size":       "4GB",
}

// find reaches the first kind of server there is: named, in Docker, embedded.
func find(ctx context.Context, logf func(string, ...any)) (*server, error) {
	if address := os.Getenv("TEST_DATABASE_URL"); address != "" {
		s, err := connect(ctx, address, func() error { return nil })
		if err != nil {
			return nil, fmt.Errorf("TEST_DATABASE_URL: %w", err)
		}
		return s, nil
	}
	dir, err := sharedDir()
	if err != nil {
		return nil, err
	}
	if pool := dockerEngine(ctx); pool != nil {
		s, err := inContainer(ctx, pool, filepath.Join(dir, "docker"))
		if err == nil {
			return s, nil
		}
		logf("dbtest: Docker gives no PostgreSQL, so an embedded one is taken: %v", err)
	}
	srv, err := embedded.Start(ctx, embedded.Config{
		Dir:        filepath.Join(dir, "embedded"),
		BinDir:     binDir(),
		Settings:   fast,
		Disposable: true,
	})
	if err != nil {
		return nil, err
	}
	s, err := connect(ctx, srv.URL(), srv.Stop)
	if err != nil {
		return nil, errors.Join(err, srv.Stop())
	}
	return s, nil
}

// binDir is the variable that the commands' flag for the binaries reads too.
func binDir() string { return os.Getenv("PARTNERAPI_POSTGRES_BIN") }

// sharedDir is the folder that the test processes of this user share. The
// folder of temporary files is everybody's: one that others can write is
// refused. They may pass through it, for root's server can run as another user.
func sharedDir() (string, error) {
	uid := os.Getuid()
	dir := filepath.Join(os.TempDir(), "partnerapi-dbtest-"+strconv.Itoa(uid))
	if err := os.Mkdir(dir, 0o711); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != uid || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("%s is not a folder that belongs to user %d alone", dir, uid)
	}
	return dir, nil
}
