package move

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// A table is copied by comparison: both sides digest the partner's rows by buckets, and the
// rows of differing buckets by their keys; rows that differ are replaced. So the first copy,
// the passes after it, the resumption of a move and the final check are one function, and
// nothing is copied twice.

// side is one of the two databases, in the transaction of its context, where it has one.
type side struct {
	ctx context.Context
	*db.DB
	// cache has the digests of tables that were read in the side's snapshot. Nil caches none.
	cache map[string][]digest
}

// digests counts and hashes the partner's rows of a table by buckets.
func (s side) digests(t shaped, o owned) ([]digest, error) {
	if d, ok := s.cache[t.name]; ok {
		return d, nil
	}
	d, err := s.digestBy(t, t.bucketOf(), o.condition(t.table))
	if err == nil && s.cache != nil {
		s.cache[t.name] = d
	}
	return d, err
}

func (s side) digestBy(t shaped, part, condition string) ([]digest, error) {
	return pg.All[digest](s.ctx, s.DB, "digest "+t.name, pg.Raw(t.digestSQL(part, condition), nil))
}

// compared is a table with the rows that differ between the two sides.
type compared struct {
	shaped
	// where is the condition of the rows that differ, on both sides. It is empty where
	// none do.
	where string
	// rows is how many of them the old side has. there reports whether the new one has any
	// rows of the table.
	rows  int64
	there bool
}

func (c compared) differs() bool { return c.where != "" }

// maxByKey bounds the rows that are compared by key, which takes some 100 bytes for each.
// Larger differing buckets are replaced as a whole.
const maxByKey = 1_000_000

// compare compares a table on both sides by buckets, and differing buckets by keys.
func compare(old, now side, t shaped, o owned) (c compared, err error) {
	c.shaped = t
	condition := o.condition(t.table)
	a, b, err := digestBoth(old, now, func(s side) ([]digest, error) { return s.digests(t, o) })
	if err != nil {
		return c, err
	}
	differ, rows := differing(a, b)
	c.rows, c.there = rows, len(b) > 0
	if len(differ) == 0 {
		return c, nil
	}
	c.where = condition
	if !c.there {
		return c, nil
	}
	c.where += " AND " + among(t.bucketOf(), differ)
	if rows > maxByKey {
		return c, nil
	}
	a, b, err = digestBoth(old, now, func(s side) ([]digest, error) { return s.digestBy(t, t.keyHash(), c.where) })
	if err != nil {
		return c, err
	}
	differ, c.rows = differing(a, b)
	c.where = condition + " AND " + among(t.keyHash(), differ)
	return c, nil
}

// digestBoth digests both sides at once.
func digestBoth(old, now side, digests func(side) ([]digest, error)) (a, b []digest, err error) {
	var both errgroup.Group
	both.Go(func() (err error) { a, err = digests(old); return err })
	both.Go(func() (err error) { b, err = digests(now); return err })
	return a, b, both.Wait()
}

// disableTriggers has the transaction of now neither check references nor run triggers: rows
// may be copied before those that they refer to, and numbers of v1 are copied too. checkEqual
// proves that all are there.
func disableTriggers(now side) error {
	_, err := pg.Exec(now.ctx, now.DB, "copy rows as they are", pg.SQL("SET LOCAL session_replication_role = replica"))
	if pg.Denied(err) {
		err = fmt.Errorf("the role of the new cell's database may not copy rows without their triggers: as a superuser, "+
			"GRANT SET ON PARAMETER session_replication_role TO the role (PostgreSQL 15), or give --to the URL of a superuser: %w", err)
	}
	return err
}

// replace replaces the rows that differ with those of the old side, in the transaction of
// now.
func (m *Move) replace(old, now side, c compared) error {
	if err := disableTriggers(now); err != nil {
		return err
	}
	if c.there {
		if err := drop(now, c.name, c.where); err != nil {
			return err
		}
	}
	if err := stream(old, now, c, c.where); err != nil {
		return err
	}
	for _, column := range sealed(c.table) {
		if err := m.reseal(now, column, c.where); err != nil {
			return err
		}
	}
	return nil
}

// drop deletes the rows of a condition.
func drop(now side, table, where string) error {
	_, err := pg.Exec(now.ctx, now.DB, "drop rows of "+table, pg.Raw("DELETE FROM "+table+" AS t WHERE "+where, nil))
	return err
}

// dropCopies deletes copied rows, without their triggers, in a transaction of its own.
func (m *Move) dropCopies(ctx context.Context, table, where string) error {
	return m.To.Tx(ctx, func(ctx context.Context) error {
		now := side{ctx: ctx, DB: m.To}
		if err := disableTriggers(now); err != nil {
			return err
		}
		return drop(now, table, where)
	})
}

// stream copies the rows of a condition.
func stream(old, now side, c compared, where string) error {
	columns := strings.Join(c.columns, ", ")
	if c.order != "" {
		where += " ORDER BY " + c.order
	}
	r, w := io.Pipe()
	var both errgroup.Group
	both.Go(func() error {
		err := onTx(old, func(tx pgx.Tx) error {
			_, err := tx.Conn().PgConn().CopyTo(old.ctx, w,
				"COPY (SELECT "+columns+" FROM "+c.name+" AS t WHERE "+where+") TO STDOUT (FORMAT binary)")
			return err
		})
		_ = w.CloseWithError(err) // it returns nil
		return old.TranslateError("read rows of "+c.name, err)
	})
	both.Go(func() error {
		err := onTx(now, func(tx pgx.Tx) error {
			_, err := tx.Conn().PgConn().CopyFrom(now.ctx, r, "COPY "+c.name+" ("+columns+") FROM STDIN (FORMAT binary)")
			return err
		})
		_ = r.CloseWithError(err)
		return now.TranslateError("write rows of "+c.name, err)
	})
	return both.Wait()
}

func onTx(s side, fn func(pgx.Tx) error) error { return fn(s.Transaction(s.ctx)) }

// sealedRow is a secret with the UUID that it is sealed for.
type sealedRow struct {
	ID     string
	Sealed []byte
}

// reseal seals the secrets of copied rows with the new cell's key.
func (m *Move) reseal(now side, c db.SealedColumn, where string) error {
	rows, err := pg.All[sealedRow](now.ctx, now.DB, "read sealed secrets", pg.Raw("SELECT t."+c.Key+"::text AS id, t."+c.Column+
		" AS sealed FROM "+c.Table+" AS t WHERE "+c.Held()+" AND "+where, nil))
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
	_, err = pg.Exec(now.ctx, now.DB, "seal secrets again", pg.SQL("UPDATE "+c.Table+" AS t SET "+c.Column+
		" = n.value FROM unnest(?0::uuid[], ?1::bytea[]) AS n (id, value) WHERE t."+c.Key+" = n.id", ids, values))
	return err
}

// analyzeFrom is the number of copied rows from which a table is analyzed at once, for the
// new cell's plans.
const analyzeFrom = 10_000

// copyTable copies the rows of a table that differ, in a transaction of its own on each side,
// and returns how many. On a unique violation it deletes the differing rows, and the next pass
// copies them.
func (m *Move) copyTable(ctx context.Context, t shaped, o owned) (rows int64, err error) {
	err = m.From.Snapshot(ctx, func(old context.Context) error {
		_, rows, err = m.copySnapshot(ctx, side{ctx: old, DB: m.From}, t, o)
		return err
	})
	return rows, err
}

// copySnapshot is copyTable of a snapshot of the old side. It reports whether the two sides
// differed.
func (m *Move) copySnapshot(ctx context.Context, old side, t shaped, o owned) (differed bool, rows int64, err error) {
	c, err := compare(old, side{ctx: ctx, DB: m.To}, t, o)
	if err != nil || !c.differs() {
		return false, 0, err
	}
	err = m.To.Tx(ctx, func(now context.Context) error { return m.replace(old, side{ctx: now, DB: m.To}, c) })
	if err == nil && c.rows > analyzeFrom {
		_, err = pg.Exec(ctx, m.To, "analyze "+t.name, pg.Raw("ANALYZE "+t.name, nil))
	}
	if !pg.UniqueViolation(err) {
		return true, c.rows, err
	}
	return true, c.rows, m.dropCopies(ctx, c.name, c.where)
}
