// Package embedded runs a private PostgreSQL server in its own folder. Processes that use the same folder share
// one server: the first process starts it, the others join it, and the last one to leave stops it. The server outlives
// a killed process, and the next process joins it.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"partnerapi/db/internal/lastout"
)

// MinMajor is the oldest supported major version of PostgreSQL.
const MinMajor = 14

// Config is the configuration of Start.
type Config struct {
	// Dir is the folder of the server: data, passwords, log and locks. Start creates it if it does not exist.
	Dir string
	// BinDir is the folder of the server binaries. If it is empty Start searches PATH, the folders of Debian, Red Hat,
	// Homebrew and Postgres.app, then those of `make postgres` (.postgres beside go.mod, or beside the executable or
	// its folder).
	BinDir string
	// Settings are passed to the server as -c name=value. They override the defaults. They have no effect on a server
	// that is already running.
	Settings map[string]string
	// Log gets a line when Start creates the data. It may be nil.
	Log io.Writer
	// Port is the port that the server must use. 0 means the port of its last start or, if another program uses that
	// port, any free one.
	Port int
	// Disposable makes Start delete data with which the server does not start, and create them again. It is meant for
	// tests, which run without fsync.
	Disposable bool
}

// Server is one use of a running server. Its methods are not safe for concurrent use.
type Server struct {
	dir   folder
	lease *lastout.Lease
	url   string
	// admin and maintenance are the superuser's URLs of the service's database, and of the database postgres, which
	// initdb creates.
	admin, maintenance string
	// password is the password of the service's role.
	password string
	pid      int
}

// Exists reports whether the folder dir of a server has data.
func Exists(dir string) (bool, error) {
	major, err := folder(dir).major()
	return major != 0, err
}

// Start starts the server of cfg.Dir, or joins it if it is already running. It returns when the server accepts
// connections, after crash recovery, or when ctx ends. The caller must call Stop.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	// 0755: the server of root may run as another user, who must be able to reach the folder.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	s := &Server{dir: folder(dir)}
	s.lease, err = lastout.Enter(ctx, dir, func() error { return s.open(ctx, cfg) })
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL in %s: %w", dir, err)
	}
	return s, nil
}

// URL returns the postgres:// URL of the database "partnerapi" with the password of a role that owns it and is no
// superuser. It does not change while the server runs, nor from one start to the next unless another program takes its
// port.
func (s *Server) URL() string { return s.url }

// AdminURL returns the URL of the same database for the superuser. The service itself does not need it.
func (s *Server) AdminURL() string { return s.admin }

// PID returns the process id of the server that Start found or started.
func (s *Server) PID() int { return s.pid }

// Stop ends this use of the server. The last use stops the server and waits for its exit. A second call does nothing.
func (s *Server) Stop() error {
	if err := s.lease.Leave(s.dir.stop); err != nil {
		return fmt.Errorf("stop PostgreSQL in %s: %w", s.dir, err)
	}
	return nil
}

// open joins the server or launches it, then makes sure that the database exists. If a Disposable server fails to
// start, open deletes its data and launches it with new ones. The caller holds the lock that keeps other processes from
// starting or stopping the server.
func (s *Server) open(ctx context.Context, cfg Config) error {
	joined, err := s.join(ctx)
	if err != nil {
		return err
	}
	if !joined {
		err = s.launch(ctx, cfg)
		dataMayBeBroken := err != nil && !errors.Is(err, errNoBinaries) && ctx.Err() == nil
		if dataMayBeBroken && cfg.Disposable {
			if err := os.RemoveAll(s.dir.data()); err != nil {
				return err
			}
			err = s.launch(ctx, cfg)
		}
		if err != nil {
			return err
		}
	}
	return s.ensureDatabase(ctx)
}

// launch creates the data if there are none, starts the server, and stores its port for the next start.
func (s *Server) launch(ctx context.Context, cfg Config) error {
	major, err := s.dir.major() // 0 without data
	if err != nil {
		return err
	}
	bin, err := find(cfg.BinDir, binaryFolders(), major)
	if err != nil {
		return err
	}
	owner, err := chooseIdentity(bin, string(s.dir))
	if err != nil {
		return err
	}

	password, err := s.dir.ensurePassword(s.dir.passwordFile())
	if err != nil {
		return err
	}
	if err := owner.adopt(string(s.dir)); err != nil {
		return err
	}
	if major == 0 {
		fmt.Fprintf(cfg.Log, "creating a database in %s (PostgreSQL %d)\n", s.dir, bin.major)
		syncs := cfg.Settings["fsync"] != "off"
		if err := s.dir.initdb(ctx, bin, owner, syncs); err != nil {
			return err
		}
	}

	if err := s.dir.forgetStale(); err != nil {
		return err
	}
	p, err := start{dir: s.dir, bin: bin, owner: owner, settings: cfg.Settings, password: password, port: cfg.Port}.run(ctx)
	if err != nil {
		return err
	}
	if err := s.use(p, password); err != nil {
		return err
	}
	return replace(s.dir.portFile(), strconv.Itoa(p.port))
}

// use sets the process id, password and URLs of s to those of the running server p. password is the superuser's.
func (s *Server) use(p postmaster, password string) (err error) {
	if s.password, err = s.dir.ensurePassword(s.dir.rolePasswordFile()); err != nil {
		return err
	}
	s.pid, s.url = p.pid, address(role, s.password, p.port, name) // name is the database, and also the superuser
	s.admin, s.maintenance = address(name, password, p.port, name), address(name, password, p.port, "postgres")
	return nil
}
