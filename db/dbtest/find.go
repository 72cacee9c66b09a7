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

// fast are the settings of servers whose data need not outlive the machine. Tests have no
// autovacuum: its workers change plans at their own times, and a database that one is
// connected to cannot be copied.
var fast = map[string]string{
	"autovacuum":         "off",
	"fsync":              "off",
	"synchronous_commit": "off",
	"full_page_writes":   "off",
	"max_connections":    "300",
	"shared_buffers":     "128MB",
	"max_wal_size":       "1GB",
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

	base := os.TempDir()
	inMemory := roomInMemory()
	if inMemory {
		base = memory
	}
	dir, err := sharedDir(base)
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

	s, err := connect(ctx, srv.AdminURL(), srv.Stop)
	if err != nil {
		return nil, errors.Join(err, srv.Stop())
	}
	if inMemory {
		if err := s.inMemory(ctx); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

// memory is where Linux has files in memory, and memoryNeeded how many bytes must be free
// there: the log of changes takes up to max_wal_size, a database about 12 MB.
const (
	memory       = "/dev/shm"
	memoryNeeded = 4 << 30
)

// roomInMemory reports whether the server's files may be in memory.
func roomInMemory() bool {
	var stat syscall.Statfs_t
	err := syscall.Statfs(memory, &stat)
	return err == nil && int64(stat.Bavail)*int64(stat.Bsize) >= memoryNeeded
}

// binDir is the variable that the commands' flag for the binaries reads too.
func binDir() string { return os.Getenv("PARTNERAPI_POSTGRES_BIN") }

// sharedDir is the folder below base that the test processes of this user share.
// base is shared by all users: one that others can write is refused. They may pass
// through it, for root's server can run as another user.
func sharedDir(base string) (string, error) {
	uid := os.Getuid()
	dir := filepath.Join(base, "partnerapi-dbtest-"+strconv.Itoa(uid))
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
