package move

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// A table is copied by comparison: both sides digest the partner's rows by buckets, and the rows of differing buckets
// by key. Rows that differ are replaced. So the first copy, later passes, the resumption of a move and the final check
// use the same function, and no row is copied twice.

// side is one of the two databases, with its context, which may hold a transaction.
type side struct {
	ctx context.Context
	*db.DB
	// cache holds the digests of tables by bucket, as read in the side's snapshot. Nil disables it.
	cache map[string][]digest
}

// conn returns the connection of the side's transaction.
func (s side) conn() *pgconn.PgConn { return s.Transaction(s.ctx).Conn().PgConn() }

// digests counts and hashes the partner's rows of a table by bucket, or returns them from the cache.
func (s side) digests(t shapedTable, o ownedIDs) ([]digest, error) {
	if d, ok := s.cache[t.name]; ok {
		return d, nil
	}
	d, err := s.digestBy(t, t.bucketOf(), o.condition(t.table))
	if err == nil && s.cache != nil {
		s.cache[t.name] = d
	}
	return d, err
}

// digestBy counts and hashes the rows that match condition, grouped by the expression part.
func (s side) digestBy(t shapedTable, part, condition string) ([]digest, error) {
	return pg.All[digest](s.ctx, s.DB, "digest "+t.name, pg.Raw(t.digestSQL(part, condition), nil))
}

// comparison is the result of comparing a table between the two sides.
type comparison struct {
	shapedTable
	// where is the condition of the differing rows, on both sides. It is empty if no row differs.
	where string
	// rows is the number of differing rows of the source. inTarget reports whether the target has any of the
	// partner's rows in the table.
	rows     int64
	inTarget bool
}

func (c comparison) differs() bool { return c.where != "" }

// maxByKey bounds the rows that are compared by key, which takes some 100 bytes of memory for each. If the differing
// buckets hold more rows, they are replaced as a whole.
const maxByKey = 1_000_000

// compare returns a condition that selects, on both sides, the partner's rows of a table that differ. It compares the
// rows by buckets, then those of the differing buckets by key. It stops at the buckets if they hold more than maxByKey
// rows. If the target has none of the partner's rows, the condition selects all of them.
func compare(source, target side, t shapedTable, o ownedIDs) (c comparison, err error) {
	c.shapedTable = t
	condition := o.condition(t.table)
	a, b, err := digestBoth(source, target, func(s side) ([]digest, error) { return s.digests(t, o) })
	if err != nil {
		return c, err
	}
	differ, rows := differences(a, b)
	c.rows, c.inTarget = rows, len(b) > 0
	if len(differ) == 0 {
		return c, nil
	}
	if !c.inTarget { // nothing to compare by key: copy all rows
		c.where = condition
		return c, nil
	}
	c.where = condition + " AND " + anyOf(t.bucketOf(), differ)
	if rows > maxByKey {
		return c, nil
	}
	a, b, err = digestBoth(source, target, func(s side) ([]digest, error) { return s.digestBy(t, t.keyHash(), c.where) })
	if err != nil {
		return c, err
	}
	differ, c.rows = differences(a, b)
	c.where = condition + " AND " + anyOf(t.keyHash(), differ)
	return c, nil
}

// digestBoth calls digests for both sides concurrently.
func digestBoth(source, target side, digests func(side) ([]digest, error)) (a, b []digest, err error) {
	var both errgroup.Group
	both.Go(func() (err error) { a, err = digests(source); return err })
	both.Go(func() (err error) { b, err = digests(target); return err })
	return a, b, both.Wait()
}

// disableTriggers turns off foreign keys and triggers for the target's transaction: rows may be copied before the rows
// that they refer to, and the numbers of version 1 are copied, not assigned by a trigger. checkEqual checks that all
// rows are in the target.
func disableTriggers(target side) error {
	err := pg.Run(target.ctx, target.DB, "copy rows as they are", pg.SQL("SET LOCAL session_replication_role = replica"))
	if pg.Denied(err) {
		err = fmt.Errorf("the new cell's database role is not allowed to copy rows without running triggers; as a superuser, run "+
			"GRANT SET ON PARAMETER session_replication_role TO the role (PostgreSQL 15 or later), or set --to to the URL of a superuser: %w", err)
	}
	return err
}

// replace replaces the differing rows of the target with the rows of the source, in the target's transaction and
// without its triggers, and seals their secrets again.
func (m *Move) replace(source, target side, c comparison) error {
	if err := disableTriggers(target); err != nil {
		return err
	}
	if c.inTarget {
		if err := drop(target, c.name, c.where); err != nil {
			return err
		}
	}
	if err := stream(source, target, c, c.where); err != nil {
		return err
	}
	for _, column := range sealedColumns(c.table) {
		if err := m.reseal(target, column, c.where); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes the rows of table, alias t, that match where.
func drop(target side, table, where string) error {
	return pg.Run(target.ctx, target.DB, "drop rows of "+table, pg.Raw("DELETE FROM "+table+" AS t WHERE "+where, nil))
}

// dropCopies deletes rows of the new cell in its own transaction, with triggers turned off.
func (m *Move) dropCopies(ctx context.Context, table, where string) error {
	return m.To.Tx(ctx, func(ctx context.Context) error {
		target := side{ctx: ctx, DB: m.To}
		if err := disableTriggers(target); err != nil {
			return err
		}
		return drop(target, table, where)
	})
}

// stream copies the rows of c's table that match where from the source to the target, with COPY.
func stream(source, target side, c comparison, where string) error {
	columns := strings.Join(c.columns, ", ")
	if c.order != "" {
		where += " ORDER BY " + c.order
	}
	r, w := io.Pipe()
	var both errgroup.Group
	both.Go(func() error {
		_, err := source.conn().CopyTo(source.ctx, w,
			"COPY (SELECT "+columns+" FROM "+c.name+" AS t WHERE "+where+") TO STDOUT (FORMAT binary)")
		_ = w.CloseWithError(err) // always returns nil
		return source.TranslateError("read rows of "+c.name, err)
	})
	both.Go(func() error {
		_, err := target.conn().CopyFrom(target.ctx, r, "COPY "+c.name+" ("+columns+") FROM STDIN (FORMAT binary)")
		_ = r.CloseWithError(err)
		return target.TranslateError("write rows of "+c.name, err)
	})
	return both.Wait()
}

// sealedRow is a sealed secret, with the UUID of the object that it is sealed for.
type sealedRow struct {
	ID     string
	Sealed []byte
}

// reseal seals the secrets of column c again, with the new cell's key, in copied rows that match where.
func (m *Move) reseal(target side, c db.SealedColumn, where string) error {
	rows, err := pg.All[sealedRow](target.ctx, target.DB, "read sealed secrets", pg.Raw("SELECT t."+c.Key+"::text AS id, t."+c.Column+
		" AS sealed FROM "+c.Table+" AS t WHERE "+c.HoldsSecret()+" AND "+where, nil))
	if err != nil || len(rows) == 0 {
		return err
	}
	ids, values := make([]string, len(rows)), make([][]byte, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
		if values[i], err = m.Reseal(c, row.ID, row.Sealed); err != nil {
			return fmt.Errorf("%s %s: %w", c.Table, row.ID, err)
		}
	}
	return pg.Run(target.ctx, target.DB, "seal secrets again", pg.SQL("UPDATE "+c.Table+" AS t SET "+c.Column+
		" = n.value FROM unnest(?0::uuid[], ?1::bytea[]) AS n (id, value) WHERE t."+c.Key+" = n.id", ids, values))
}

// analyzeFrom is the number of copied rows above which a table is analyzed at once, for the new cell's query plans.
const analyzeFrom = 10_000

// copyTable copies the differing rows of a table from a snapshot of the source, in its own transaction on the
// target, and analyzes the table after many rows. differed reports whether the two sides differed. rows is the number
// of differing rows of the source: 0 if the target only has rows to be deleted. On a unique violation it deletes the
// target's differing rows instead, and the next pass copies those of the source.
func (m *Move) copyTable(ctx context.Context, source side, t shapedTable, o ownedIDs) (differed bool, rows int64, err error) {
	c, err := compare(source, side{ctx: ctx, DB: m.To}, t, o)
	if err != nil || !c.differs() {
		return false, 0, err
	}
	err = m.To.Tx(ctx, func(target context.Context) error { return m.replace(source, side{ctx: target, DB: m.To}, c) })
	if err == nil && c.rows > analyzeFrom {
		err = pg.Run(ctx, m.To, "analyze "+t.name, pg.Raw("ANALYZE "+t.name, nil))
	}
	if !pg.UniqueViolation(err) { // err may be nil
		return true, c.rows, err
	}
	return true, c.rows, m.dropCopies(ctx, c.name, c.where)
}
