package migrate

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// Step is a migration, and its effects on programs that use the tables at the same time.
type Step struct {
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
	Locks   []Lock `json:"locks"`
	// Contracts describes what it removes that an earlier release uses; empty for nothing.
	Contracts string `json:"contracts,omitempty"`
}

// Lock is a lock that a migration holds on an existing table.
type Lock struct {
	Table string `json:"table"`
	// Mode is PostgreSQL's name of the lock mode.
	Mode string `json:"mode"`
	// PerMillion is the number of seconds per million rows for which the lock is held; 0
	// means well below a second, for any number of rows.
	PerMillion int `json:"seconds_per_million_rows"`
	// Rows is the approximate number of rows of the table.
	Rows int64 `json:"rows"`
}

// moment describes the duration of a lock whose PerMillion is 0.
const moment = "a moment"

// String returns the lock in words for an operator, such as "users: SHARE, about 2s (200000 rows)".
func (l Lock) String() string {
	if l.PerMillion == 0 {
		return fmt.Sprintf("%s: %s, %s", l.Table, l.Mode, moment)
	}
	held := time.Duration(int64(l.PerMillion)*l.Rows) * time.Second / 1_000_000
	return fmt.Sprintf("%s: %s, about %v (%d rows)", l.Table, l.Mode, max(held, time.Second).Round(time.Second), l.Rows)
}

// heading matches the lines at the head of a migration that describe its effects: "-- locks: users, SHARE, 2 s per
// million rows", "-- locks: users, ACCESS EXCLUSIVE, a moment", "-- locks: none", "-- contracts: what it removes".
// lockTime matches the last part of a lock, and lockModes lists the valid modes.
var (
	heading   = regexp.MustCompile(`(?m)^-- (locks|contracts): (.*)$`)
	lockTime  = regexp.MustCompile(`^(?:a moment|(\d+) s per million rows)$`)
	lockModes = " ACCESS EXCLUSIVE | EXCLUSIVE | SHARE ROW EXCLUSIVE | SHARE | SHARE UPDATE EXCLUSIVE | ROW EXCLUSIVE "
)

// ParseStep parses the head of a migration, its lines "-- locks: …" and "-- contracts: …". It returns an error for an
// invalid line of locks, and for a head without any.
func ParseStep(name, text string) (Step, error) {
	s := Step{Name: name, Locks: []Lock{}}
	declaresLocks := false
	for _, line := range heading.FindAllStringSubmatch(text, -1) {
		if line[1] == "contracts" {
			s.Contracts = line[2]
			continue
		}
		declaresLocks = true
		if line[2] == "none" {
			continue
		}
		parts := strings.Split(line[2], ", ")
		if len(parts) != 3 || !strings.Contains(lockModes, " "+parts[1]+" ") || !lockTime.MatchString(parts[2]) {
			return s, fmt.Errorf("%s: %q is not TABLE, MODE, and a moment or N s per million rows", name, line[2])
		}
		seconds, _ := strconv.Atoi(lockTime.FindStringSubmatch(parts[2])[1]) // 0 for a moment
		s.Locks = append(s.Locks, Lock{Table: parts[0], Mode: parts[1], PerMillion: seconds})
	}
	if !declaresLocks {
		return s, fmt.Errorf("%s: no line begins with -- locks", name)
	}
	return s, nil
}

// Steps returns the migrations in their order. It does not change the database.
func Steps(ctx context.Context, d *db.DB) ([]Step, error) { return migrations.steps(ctx, d) }

// steps returns the migrations of the chain in their order, with the sizes of their locks.
func (c chain) steps(ctx context.Context, d *db.DB) ([]Step, error) {
	if _, _, err := c.version(ctx, d); err != nil { // the tables are of a version before 1.0, for example
		return nil, err
	}
	p, err := c.provider(d)
	if err != nil {
		return nil, err
	}
	applied, err := appliedVersions(ctx, d)
	if err != nil {
		return nil, err
	}
	var steps []Step
	for _, source := range p.ListSources() {
		step := c.goStep(source.Version)
		if source.Type == goose.TypeSQL {
			text, err := fs.ReadFile(c.sql, source.Path)
			if err != nil {
				return nil, err
			}
			if step, err = ParseStep(source.Path, string(text)); err != nil {
				return nil, err
			}
		}
		step.Applied = applied[source.Version]
		steps = append(steps, step)
	}
	return steps, Size(ctx, d, steps)
}

// appliedVersions returns the versions of the applied migrations; none without a table of migrations.
func appliedVersions(ctx context.Context, d *db.DB) (map[int64]bool, error) {
	if have, err := appliedVersion(ctx, d, migrationsTable); err != nil || have == 0 {
		return nil, err
	}
	versions, err := pg.All[int64](ctx, d, "read the state of the migrations", pg.SQL("SELECT version_id FROM "+migrationsTable))
	return pg.Index(versions, func(v *int64) (int64, bool) { return *v, true }), err
}

// Size sets the Rows of all locks to PostgreSQL's estimates; 0 for unknown tables.
func Size(ctx context.Context, d *db.DB, steps []Step) error {
	type size struct {
		Name string
		Rows int64
	}
	sizes, err := pg.All[size](ctx, d, "read the sizes of tables", pg.SQL(`
		SELECT relname::text AS name, greatest(reltuples, 0)::bigint AS rows FROM pg_class
		WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace`))
	rows := pg.Index(sizes, func(s *size) (string, int64) { return s.Name, s.Rows })
	for _, s := range steps {
		for i, l := range s.Locks {
			s.Locks[i].Rows = rows[l.Table]
		}
	}
	return err
}

// timeoutLocker is a SessionLocker that sets the lock_timeout of the session for as long as it has the lock.
type timeoutLocker struct{ lock.SessionLocker }

// SessionLock takes the lock of migrations, and sets lock_timeout.
func (l timeoutLocker) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if err := l.SessionLocker.SessionLock(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "SET lock_timeout = '"+pg.LockTimeout+"'"); err != nil {
		return errors.Join(err, l.SessionLocker.SessionUnlock(context.WithoutCancel(ctx), conn))
	}
	return nil
}

// SessionUnlock resets lock_timeout and releases the lock.
func (l timeoutLocker) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "RESET lock_timeout")
	return errors.Join(err, l.SessionLocker.SessionUnlock(ctx, conn))
}
