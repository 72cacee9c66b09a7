package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The classes of the advisory locks that processes which share a server take.
// All are held by a process's one lasting connection, and so end with it.
const (
	// liveClass with a process's number: its databases are in use.
	liveClass = 0x7061_0001
	// buildClass with the hash of a schema's name: its templates change.
	buildClass = 0x7061_0002
	// templateClass with the number of a template, shared: it is in use.
	templateClass = 0x7061_0003
)

const (
	testPrefix     = "partnerapi_test_" // then the process's number, _, and a count
	templatePrefix = "partnerapi_tmpl_" // then the schema's name, _, and the template's number
)

// server is this process's use of a server. It is safe for concurrent use, so that tests
// that run side by side do not wait for each other's databases.
type server struct {
	address *url.URL
	number  int32
	made    atomic.Int32
	// pool makes and drops the databases.
	pool *pgxpool.Pool

	// mu guards what follows.
	mu sync.Mutex
	// conn holds the locks, and makes and drops the templates.
	conn *pgx.Conn
	// strategy is how a template is copied, as in " STRATEGY file_copy"; empty for the
	// server's own choice.
	strategy string
	// templates are those that this process has locked.
	templates map[string]bool
	leave     func() error
}

// connect begins this process's use of the server at the address, whose user
// may create databases, and drops the databases of processes that have died.
func connect(ctx context.Context, address string, leave func() error) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		// The error is not wrapped: it would show the password.
		return nil, errors.New("the address of the server is not a postgres:// URL")
	}
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.New(ctx, address)
	if err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	s := &server{address: u, pool: pool, conn: conn, number: rand.Int32(), templates: map[string]bool{}, leave: leave}
	if err := s.lock(ctx, liveClass, s.number); err != nil {
		return nil, errors.Join(err, s.disconnect())
	}
	if err := s.sweep(ctx); err != nil {
		return nil, errors.Join(err, s.disconnect())
	}
	return s, nil
}

// disconnect ends the process's locks with its connections.
func (s *server) disconnect() error {
	s.pool.Close()
	return s.conn.Close(context.Background())
}

// inMemory has templates copied file by file. Where files are in memory, that takes half
// as long as the server's own choice, which writes the copy to its log.
func (s *server) inMemory(ctx context.Context) error {
	var version int
	err := s.conn.QueryRow(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version)
	if version >= 150000 { // before, there was but one way
		s.strategy = " STRATEGY file_copy"
	}
	return err
}

// close ends the use of the server.
func (s *server) close() error {
	return errors.Join(s.disconnect(), s.leave())
}

// url is the address of a database of the server.
func (s *server) url(database string) string {
	u := *s.address
	u.Path, u.RawPath = "/"+database, ""
	return u.String()
}

// create makes a database for one test.
func (s *server) create(ctx context.Context, schema Schema) (string, error) {
	template, err := s.template(ctx, schema)
	if err != nil {
		return "", fmt.Errorf("make the template of %q: %w", schema.Name, err)
	}
	database := s.next()
	return database, execute(ctx, s.pool, "CREATE DATABASE "+database+" TEMPLATE "+template+s.strategy)
}

// next is a name for a database of this process.
func (s *server) next() string {
	return fmt.Sprintf("%s%08x_%d", testPrefix, s.number, s.made.Add(1))
}

func (s *server) drop(ctx context.Context, database string) error {
	return execute(ctx, s.pool, "DROP DATABASE IF EXISTS "+database+" WITH (FORCE)")
}

// template returns the migrated database of the schema, and creates it if no process
// has. It stays locked for as long as this process uses the server.
func (s *server) template(ctx context.Context, schema Schema) (string, error) {
	number := hash(schema.Key)
	name := fmt.Sprintf("%s%s_%08x", templatePrefix, schema.Name, uint32(number))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.templates[name] {
		return name, nil
	}
	if err := s.lock(ctx, buildClass, hash(schema.Name)); err != nil {
		return "", err
	}
	err := s.ensureTemplate(ctx, schema, name, number)
	err = errors.Join(err, s.exec(ctx, "SELECT pg_advisory_unlock($1, $2)", buildClass, hash(schema.Name)))
	if err != nil {
		return "", err
	}
	s.templates[name] = true
	return name, nil
}

// ensureTemplate makes the template aside, so that a killed process leaves none
// that is half-made; then it drops the schema's templates that no process uses.
func (s *server) ensureTemplate(ctx context.Context, schema Schema, name string, number int32) error {
	if err := s.exec(ctx, "SELECT pg_advisory_lock_shared($1, $2)", templateClass, number); err != nil {
		return err
	}
	templates, err := s.databases(ctx, templatePrefix+schema.Name+"_")
	if err != nil {
		return err
	}

	there := false
	for _, other := range templates {
		switch {
		case other == name:
			there = true
		case s.templates[other]: // this process's own lock would not hold it off
		default:
			if err := s.dropUnused(ctx, other); err != nil {
				return err
			}
		}
	}
	if there {
		return nil
	}

	aside := s.next()
	if err := s.exec(ctx, "CREATE DATABASE "+aside+" ENCODING 'UTF8' TEMPLATE template0"); err != nil {
		return err
	}
	if err := schema.Apply(ctx, s.url(aside)); err != nil {
		return errors.Join(err, s.drop(ctx, aside))
	}
	return s.exec(ctx, "ALTER DATABASE "+aside+" RENAME TO "+name)
}

// dropUnused drops a template that no process has locked.
func (s *server) dropUnused(ctx context.Context, template string) error {
	number, err := numberIn(template[strings.LastIndexByte(template, '_')+1:])
	if err != nil {
		return nil // another program's
	}
	return s.ifFree(ctx, templateClass, number, func() error { return s.drop(ctx, template) })
}

// sweep drops the databases of processes that have died.
func (s *server) sweep(ctx context.Context) error {
	databases, err := s.databases(ctx, testPrefix)
	if err != nil {
		return err
	}
	for _, database := range databases {
		process, _, _ := strings.Cut(strings.TrimPrefix(database, testPrefix), "_")
		number, err := numberIn(process)
		if err != nil || number == s.number {
			continue
		}
		if err := s.ifFree(ctx, liveClass, number, func() error { return s.drop(ctx, database) }); err != nil {
			return err
		}
	}
	return nil
}

// ifFree runs do under the lock, unless another process holds it.
func (s *server) ifFree(ctx context.Context, class, number int32, do func() error) error {
	var free bool
	if err := s.conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1, $2)", class, number).Scan(&free); err != nil || !free {
		return err
	}
	return errors.Join(do(), s.exec(ctx, "SELECT pg_advisory_unlock($1, $2)", class, number))
}

func (s *server) lock(ctx context.Context, class, number int32) error {
	return s.exec(ctx, "SELECT pg_advisory_lock($1, $2)", class, number)
}

// databases lists the server's databases whose names begin so.
func (s *server) databases(ctx context.Context, prefix string) ([]string, error) {
	rows, err := s.conn.Query(ctx, "SELECT datname FROM pg_database WHERE starts_with(datname, $1)", prefix)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func (s *server) exec(ctx context.Context, sql string, args ...any) error {
	return execute(ctx, s.conn, sql, args...)
}

// execute runs a statement, and names it in an error.
func execute(ctx context.Context, on interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
}, sql string, args ...any) error {
	if _, err := on.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// hash makes the number of a lock, and of a template, out of a text.
func hash(text string) int32 {
	sum := sha256.Sum256([]byte(text))
	return int32(binary.BigEndian.Uint32(sum[:]))
}

// numberIn reads the eight hexadecimal digits of a database's name.
func numberIn(text string) (int32, error) {
	if raw, err := hex.DecodeString(text); err != nil || len(raw) != 4 {
		return 0, strconv.ErrSyntax
	}
	n, err := strconv.ParseUint(text, 16, 32)
	return int32(uint32(n)), err
}
