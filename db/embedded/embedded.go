// Package embedded runs a private PostgreSQL server in a folder of its own. The
// processes that name the same folder share one server: the first one starts
// it, the others join it, and the last one out stops it. The server outlives a
// killed process, and the next one joins it.
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

// MinMajor is the oldest major version of PostgreSQL that is run.
const MinMajor = 14

// Config says where the server's data are and how it is run.
type Config struct {
	// Dir is the folder of the server: data, password, log and locks. It is
	// made where it does not exist.
	Dir string
	// BinDir is the folder of the server binaries. Where it is empty they are
	// looked for: PATH, the usual places of Debian, Red Hat and Homebrew, then
	// what `make postgres` fetched (.postgres beside go.mod, or beside the
	// executable or its folder).
	BinDir string
	// Settings are given to the server as -c name=value, over the defaults. A
	// process that joins a running server takes its settings as they are.
	Settings map[string]string
	// Log gets a line of progress when a first start makes the database; nil
	// for none.
	Log io.Writer
	// Port is the only port that the server may be started on; 0 for that of its
	// last start or, where another program has it, any other.
	Port int
	// Disposable makes Start delete data that can't be started, and make them anew. It is
	// meant for tests, which run without fsync.
	Disposable bool
}

// Server is one use of a running server. Its methods are not safe for
// concurrent use.
type Server struct {
	dir   folder
	lease *lastout.Lease
	url   string
	// admin and maintenance are the superuser's URLs of the database, and of the database
	// postgres, which initdb makes.
	admin, maintenance string
	// password is the role's.
	password string
	pid      int
}

// Exists reports whether the folder dir of a server has data.
func Exists(dir string) (bool, error) {
	major, err := folder(dir).major()
	return major != 0, err
}

// Start starts the server of cfg.Dir, or joins it where it is running already,
// and returns once it accepts connections, crash recovery included, or ctx
// ends. The caller must call Stop.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("start PostgreSQL: %w", err)
	}
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	// If root starts the server, it may run as another user, who must reach it.
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

// URL is the postgres:// address of the database "partnerapi", password
// included, for a role that owns it and is no superuser. It stays the same while the server runs, and from one start to the
// next as long as no other program takes its port.
func (s *Server) URL() string { return s.url }

// AdminURL is URL for the superuser, who makes databases and roles. No service needs
// it.
func (s *Server) AdminURL() string { return s.admin }

// PID is the process of the server as it was found or started by Start.
func (s *Server) PID() int { return s.pid }

// Stop ends this use of the server; the last one out stops it and waits for its end. A
// second call does nothing.
func (s *Server) Stop() error {
	if err := s.lease.Leave(s.dir.stop); err != nil {
		return fmt.Errorf("stop PostgreSQL in %s: %w", s.dir, err)
	}
	return nil
}

// open joins the server or launches it; no other process starts or stops it
// meanwhile.
func (s *Server) open(ctx context.Context, cfg Config) error {
	joined, err := s.join(ctx)
	if err != nil {
		return err
	}
	if !joined {
		err = s.launch(ctx, cfg)
		if err != nil && cfg.Disposable && !errors.Is(err, errNoBinaries) && ctx.Err() == nil {
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

// launch makes the data where there are none, and starts the server.
func (s *Server) launch(ctx context.Context, cfg Config) error {
	major, err := s.dir.major()
	if err != nil {
		return err
	}

	bin, err := find(cfg.BinDir, places(), major)
	if err != nil {
		return err
	}
	as, err := chooseIdentity(bin, string(s.dir))
	if err != nil {
		return err
	}

	password, err := s.dir.ensurePassword(s.dir.password())
	if err != nil {
		return err
	}
	if err := as.adopt(string(s.dir)); err != nil {
		return err
	}
	if major == 0 {
		fmt.Fprintf(cfg.Log, "creating a database in %s (PostgreSQL %d)\n", s.dir, bin.major)
		if err := s.dir.initdb(ctx, bin, as, cfg.Settings["fsync"] != "off"); err != nil {
			return err
		}
	}

	if err := s.dir.forgetStale(); err != nil {
		return err
	}
	p, err := start{dir: s.dir, bin: bin, as: as, settings: cfg.Settings, password: password, port: cfg.Port}.run(ctx)
	if err != nil {
		return err
	}
	if err := s.use(p, password); err != nil {
		return err
	}
	return replace(s.dir.port(), strconv.Itoa(p.port))
}

// use sets the process and URLs of the running server p, with the superuser's password.
func (s *Server) use(p postmaster, password string) (err error) {
	if s.password, err = s.dir.ensurePassword(s.dir.rolePassword()); err != nil {
		return err
	}
	s.pid, s.url = p.pid, address(role, s.password, p.port, name)
	s.admin, s.maintenance = address(name, password, p.port, name), address(name, password, p.port, "postgres")
	return nil
}
