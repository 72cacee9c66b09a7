package dbtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// MigrationFaults says what a migration does that keeps callers waiting for longer than
// a moment, or that the release before it does not survive. text is an SQL file as goose
// reads it, contracts that its head says what goes with it, and locked the tables that
// its head names. Tables that it makes itself are free.
func MigrationFaults(text string, contracts bool, locked []string) (faults []string) {
	noTx := strings.Contains(text, "+goose NO TRANSACTION")
	m := migration{text: text, noTx: noTx, contracts: contracts, locked: locked, patient: noTx}
	for _, statement := range statements(text) {
		m.check(statement)
	}
	return m.faults
}

// migration is one that is being read.
type migration struct {
	text            string
	noTx, contracts bool
	locked, made    []string
	// dropped are the indexes that a repetition would find, and that were dropped
	// before.
	dropped []string
	// patient says that lock_timeout bounds the waits.
	patient bool
	// unchecked says that a constraint was added in this transaction.
	unchecked bool
	faults    []string
}

const table = `(?:ONLY )?(?:IF EXISTS )?([a-z_0-9]+)`

var (
	createTable  = regexp.MustCompile(`^CREATE (?:UNLOGGED )?TABLE (?:IF NOT EXISTS )?([a-z_0-9]+)`)
	createIndex  = regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?(?:IF NOT EXISTS )?([a-z_0-9]+) ON ` + table)
	dropIndex    = regexp.MustCompile(`^DROP INDEX (CONCURRENTLY )?(?:IF EXISTS )?([a-z_0-9]+)`)
	alterTable   = regexp.MustCompile(`^ALTER TABLE ` + table + ` (.*)$`)
	changeRows   = regexp.MustCompile(`^(?:WITH .*)?(?:UPDATE|DELETE FROM) ` + table)
	createOn     = regexp.MustCompile(`^CREATE (?:OR REPLACE )?(?:CONSTRAINT )?TRIGGER .* ON ` + table)
	references   = regexp.MustCompile(`REFERENCES ([a-z_0-9]+)`)
	long         = regexp.MustCompile(`^(LOCK|TRUNCATE|CLUSTER|VACUUM FULL|REFRESH|REINDEX)\b`)
	contracting  = regexp.MustCompile(`^DROP (TABLE|COLUMN|TRIGGER|FUNCTION|TYPE|VIEW)|\bDROP COLUMN|\bRENAME\b|DROP DEFAULT`)
	setsDefault  = regexp.MustCompile(`ALTER COLUMN \S+ SET DEFAULT`) // of rows that are inserted from then on
	volatile     = regexp.MustCompile(`DEFAULT [^,]*(clock_timestamp|gen_random_uuid|random|nextval|uuid_v7)\(|\bAS IDENTITY|\) STORED|\b(big|small)?serial\b`)
	setTimeout   = regexp.MustCompile(`^SET lock_timeout (?:=|TO) 0$`)
	resetTimeout = regexp.MustCompile(`^RESET lock_timeout$`)
	comment      = regexp.MustCompile(`(?m)--.*$`)
	space        = regexp.MustCompile(`\s+`)
	quoted       = regexp.MustCompile(`(?s)\$\$.*?\$\$|'(?:[^']|'')*'`)
)

// statements splits a file at its semicolons, without comments and what stands in quotes.
func statements(text string) (list []string) {
	text = quoted.ReplaceAllString(comment.ReplaceAllString(text, ""), "''")
	for part := range strings.SplitSeq(text, ";") {
		if part = strings.TrimSpace(space.ReplaceAllString(part, " ")); part != "" {
			list = append(list, part)
		}
	}
	return list
}

func (m *migration) fault(format string, args ...any) {
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// uses notes a statement that locks a table, and reports whether that was there before.
func (m *migration) uses(name, statement string) bool {
	if slices.Contains(m.made, name) {
		return false
	}
	if !slices.Contains(m.locked, name) {
		m.fault("the head does not name %s, which this locks: %s", name, statement)
	}
	return true
}

func (m *migration) check(statement string) {
	if made := createTable.FindStringSubmatch(statement); made != nil {
		m.made = append(m.made, made[1])
	}
	for _, to := range references.FindAllStringSubmatch(statement, -1) {
		m.uses(to[1], statement)
	}
	if long.MatchString(statement) {
		m.fault("it locks a table for as long as that is large: %s", statement)
	}
	if strings.HasPrefix(statement, "DO ") {
		m.fault("what a block does is not read here; write statements, or a migration in Go: %s", statement)
	}
	if m.contracting(statement) && !m.contracts {
		m.fault("the release before may use what this takes away; a line -- contracts: says what that is: %s", statement)
	}
	if on := createOn.FindStringSubmatch(statement); on != nil {
		m.uses(on[1], statement)
	}

	switch {
	case setTimeout.MatchString(statement):
		m.patient = false
	case resetTimeout.MatchString(statement):
		m.patient = true
	case createIndex.MatchString(statement):
		m.index(statement)
	case dropIndex.MatchString(statement):
		drop := dropIndex.FindStringSubmatch(statement)
		m.dropped = append(m.dropped, drop[2])
		m.concurrent(drop[1], statement)
	case alterTable.MatchString(statement):
		alter := alterTable.FindStringSubmatch(statement)
		if m.uses(alter[1], statement) {
			m.alter(alter[2], statement)
		}
	case changeRows.MatchString(statement):
		if m.uses(changeRows.FindStringSubmatch(statement)[1], statement) {
			m.fault("it changes rows without end in one transaction; do it in batches: %s", statement)
		}
	}
}

var (
	dropConstraint = regexp.MustCompile(`DROP CONSTRAINT (?:IF EXISTS )?([a-z_0-9]+)`)
	addCheck       = regexp.MustCompile(`ADD CONSTRAINT ([a-z_0-9]+) CHECK`)
)

// contracting reports whether a statement removes something. Another condition for a CHECK is no less of it than a new
// one, which needs no line either.
func (m *migration) contracting(statement string) bool {
	added := func(name string) bool {
		return slices.ContainsFunc(addCheck.FindAllStringSubmatch(m.text, -1), func(to []string) bool { return to[1] == name })
	}
	return contracting.MatchString(statement) || slices.ContainsFunc(dropConstraint.FindAllStringSubmatch(statement, -1),
		func(dropped []string) bool { return !added(dropped[1]) })
}

// concurrent checks the waits of what builds or drops an index beside writers.
func (m *migration) concurrent(concurrently, statement string) {
	switch {
	case concurrently == "" && !m.contracts:
		m.fault("it needs CONCURRENTLY: %s", statement)
	case concurrently != "" && !m.noTx:
		m.fault("it needs the line -- +goose NO TRANSACTION: %s", statement)
	case concurrently != "" && m.patient:
		m.fault("it waits for transactions that end when they like; SET lock_timeout = 0 comes before it: %s", statement)
	}
}

func (m *migration) index(statement string) {
	parts := createIndex.FindStringSubmatch(statement)
	if !m.uses(parts[3], statement) {
		return
	}
	if parts[1] == "" {
		m.fault("it keeps writers off the table for as long as that is large; CREATE INDEX CONCURRENTLY does not: %s", statement)
		return
	}
	m.concurrent(parts[1], statement)
	if !slices.Contains(m.dropped, parts[2]) {
		m.fault("a build that was cut short leaves an invalid index; DROP INDEX CONCURRENTLY IF EXISTS comes before it: %s", statement)
	}
}

func (m *migration) alter(what, statement string) {
	for _, not := range []struct {
		found bool
		why   string
	}{
		{strings.Contains(what, "ADD CONSTRAINT") && !strings.Contains(what, "NOT VALID") && !strings.Contains(what, "USING INDEX"),
			"it reads the whole table; ADD CONSTRAINT … NOT VALID, and VALIDATE CONSTRAINT in a later file"},
		{strings.Contains(what, "ADD COLUMN") && regexp.MustCompile(`CHECK \(|REFERENCES|UNIQUE|PRIMARY KEY`).MatchString(what),
			"a constraint of a new column reads the whole table; add it NOT VALID"},
		{regexp.MustCompile(`ALTER COLUMN \S+ (SET DATA )?TYPE`).MatchString(what), "it may write the table anew; add a column"},
		{strings.Contains(what, "SET NOT NULL"), "it reads the whole table; add a CHECK (… IS NOT NULL) NOT VALID"},
		{!setsDefault.MatchString(what) && volatile.MatchString(what), "it writes the table anew; a default must be a constant"},
		{strings.Contains(what, "VALIDATE CONSTRAINT") && m.unchecked && !m.noTx,
			"the lock of ADD CONSTRAINT lasts meanwhile; VALIDATE CONSTRAINT stands in a later file"},
		{!strings.Contains(what, "VALIDATE CONSTRAINT") && m.noTx && !m.patient, "others wait behind it; RESET lock_timeout comes before it"},
	} {
		if not.found {
			m.fault("%s: %s", not.why, statement)
		}
	}
	m.unchecked = m.unchecked || strings.Contains(what, "ADD CONSTRAINT")
}
