// Package records imports and exports the objects of another platform or service. A record describes an object, and
// each kind of objects is a Kind. platform/transfer reads and writes the lines.
package records

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/db/pg"
	"partnerapi/domain"
)

// Records are applied in batches (decisions 10). A batch has records of one kind, no two of the same object, and is
// applied in a transaction. A record creates its object if that does not exist, and otherwise sets the fields that it
// gives. A record that changes nothing writes nothing. Creating an object writes no events and sends no email. Changing
// an object has the same effects as through the API.

// Kind imports and exports records of one kind of objects. Records are pointers to values of
// one type of package domain.
type Kind interface {
	// Object returns the name of the kind in lines.
	Object() string
	// Type returns the type that the records point to.
	Type() reflect.Type
	// Import applies a batch of records of different objects in one transaction, and returns the outcome of each, in
	// their order. It takes the same number of statements for any number of records, unless stated otherwise for a
	// kind. It must not be called in a transaction.
	Import(ctx context.Context, d *db.DB, batch []any) ([]domain.ImportResult, error)
	// Export reads the records of all objects or, if partner is not zero, of that partner's, including archived ones,
	// in the order of their keys or their creation. An import accepts them. Derived data is omitted. Export reads by a
	// cursor in the transaction of ctx, and fails without a transaction (Snapshot).
	Export(ctx context.Context, d *db.DB, partner domain.PartnerID) iter.Seq2[any, error]
}

// importLock is the name of the advisory lock of the process that imports.
const importLock = "import"

// WithLock runs fn unless another process is importing, and reports whether it ran. It needs four connections of the
// pool, and must not be called in a transaction.
func WithLock(ctx context.Context, d *db.DB, fn func(context.Context) error) (bool, error) {
	return d.TryAdvisoryLock(ctx, importLock, fn)
}

// staleBatch bounds the clients whose summaries one transaction marks as stale.
const staleBatch = 500

// StaleSummaries marks as stale the summaries of clients with users who changed since a time, so that the next reads
// refresh them. It must not be called in a transaction.
func StaleSummaries(ctx context.Context, d *db.DB, since time.Time) error {
	for last := (domain.ClientID{}); ; {
		var batch []domain.ClientID
		err := d.Change(ctx, func(ctx context.Context, c *db.Change) (err error) {
			c.WillLock(db.ClientLocks)
			batch, err = pg.All[domain.ClientID](ctx, c, "lock clients with stale summaries", pg.SQL(`
				SELECT c.id FROM clients AS c WHERE c.id > ?last AND EXISTS (
					SELECT 1 FROM users AS u WHERE u.client_id = c.id AND u.updated_at >= ?since)
				ORDER BY c.id LIMIT ?staleBatch FOR NO KEY UPDATE`,
				pg.Named{"last": last, "since": since, "staleBatch": staleBatch}))
			if err != nil {
				return err
			}
			return pg.Run(ctx, c, "mark summaries as stale", pg.SQL(
				"UPDATE clients SET summarized_at = least(summarized_at, ?1) WHERE id = ANY(?0::uuid[])",
				pg.IDs(batch), c.At.Add(-2*domain.SummaryAge))) // older than a summary may be
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		last = batch[len(batch)-1]
	}
}

// importBatch applies a batch of records in a change, and retries it if it conflicts with concurrent writes. The
// results are in the order of the batch. apply must set them all: it gets zero values.
func importBatch(
	ctx context.Context, d *db.DB, batch []any,
	apply func(ctx context.Context, c *db.Change, results []domain.ImportResult) error,
) ([]domain.ImportResult, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	var results []domain.ImportResult
	err := d.RetryChange(ctx, func(ctx context.Context, c *db.Change) error {
		results = make([]domain.ImportResult, len(batch))
		if err := apply(ctx, c, results); err != nil {
			return err
		}
		return c.RejectFrozen(ctx)
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

// sortedUnique sorts ids in place, and returns them without duplicates.
func sortedUnique[K domain.Kind](ids []domain.ID[K]) []domain.ID[K] {
	slices.SortFunc(ids, func(a, b domain.ID[K]) int { return slices.Compare(a[:], b[:]) })
	return slices.Compact(ids)
}

// The table import_lines, in which the lines of an import are staged.

// StagedLine is a line of an import that is staged until its kind is applied.
type StagedLine struct {
	bun.BaseModel `bun:"table:import_lines,alias:l"`

	Kind  int // the position of the kind in the order in which kinds are applied
	Round int // the round of its kind in which the line is applied, from 0
	Line  int // the number of the line in the input

	// Object is the id of the line's object, if the lines of its kind are applied grouped by client and, within a
	// client, by user. It is nil if they are applied in the order of the input.
	Object   *[16]byte
	ClientID *domain.ClientID
	UserID   *domain.UserID

	Outcome int // the outcome of earlier rounds, a domain.ImportOutcome
	Text    string
}

// StageLines inserts lines into the table.
func StageLines(ctx context.Context, d *db.DB, lines []StagedLine) error {
	return pg.CopyRows(ctx, d, "stage lines", lines)
}

// ClearStage deletes all staged lines.
func ClearStage(ctx context.Context, d *db.DB) error {
	return pg.Run(ctx, d, "drop staged lines", pg.SQL("DELETE FROM import_lines"))
}

// StageRepeated moves a line to round 1, the second round of its kind, if an earlier line has the same object. It
// clears the line's client and user, so that EachStaged yields that round in the order of the input.
func StageRepeated(ctx context.Context, d *db.DB) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		// The new table has no statistics: the planner would take it for empty, and read it once for each line.
		err := pg.Run(ctx, d, "disable nested loops", pg.SQL("SELECT set_config('enable_nestloop', 'off', true)"))
		if err != nil {
			return err
		}
		return pg.Run(ctx, d, "stage repeated lines", pg.SQL(`
			UPDATE import_lines AS l SET round = 1, client_id = NULL, user_id = NULL
			FROM (
				SELECT kind, object, min(line) AS line FROM import_lines WHERE object IS NOT NULL
				GROUP BY kind, object HAVING count(*) > 1
			) AS first
			WHERE l.kind = first.kind AND l.object = first.object AND l.line > first.line`))
	})
}

const (
	// stageLines and stageBytes bound the lines and bytes of text that EachStaged holds in memory.
	stageLines = 1000
	stageBytes = 4 << 20
)

// EachStaged calls fn with the lines of a round of a kind, ordered by client, user and line number. It returns the
// first error of fn. The client of a line with a user is the client of the stored user. EachStaged reads the lines in a
// its own snapshot.
func EachStaged(ctx context.Context, d *db.DB, kind, round int, fn func(StagedLine) error) error {
	q := pg.SQL(`
		SELECT l.kind, l.round, l.line, l.user_id, l.outcome, octet_length(l.text) AS size
		FROM import_lines AS l LEFT JOIN users AS u ON u.id = l.user_id WHERE l.kind = ? AND l.round = ?
		ORDER BY coalesce(u.client_id, l.client_id) NULLS FIRST, l.user_id NULLS FIRST, l.line`, kind, round)

	return d.Snapshot(ctx, func(ctx context.Context) error {
		var part []StagedLine
		size := 0
		for l, err := range pg.Each[sizedLine](ctx, d, "read staged lines", q) {
			if err != nil {
				return err
			}
			if part, size = append(part, l.StagedLine), size+l.Size; len(part) < stageLines && size < stageBytes {
				continue
			}
			if err := eachWithText(ctx, d, part, fn); err != nil {
				return err
			}
			part, size = part[:0], 0
		}
		return eachWithText(ctx, d, part, fn)
	})
}

type sizedLine struct {
	StagedLine
	Size int `bun:",scanonly"`
}

// eachWithText reads the texts of lines of one round, and calls fn with each line.
func eachWithText(ctx context.Context, d *db.DB, lines []StagedLine, fn func(StagedLine) error) error {
	if len(lines) == 0 {
		return nil
	}
	if err := pg.PreferIndexes(ctx, d); err != nil { // EachStaged's open cursor keeps its plan
		return err
	}
	rows, err := pg.All[StagedLine](ctx, d, "read the texts of lines", pg.SQL(`
		SELECT n.line, l.text FROM unnest(?lines::bigint[]) AS n (line) CROSS JOIN LATERAL (
			SELECT text FROM import_lines WHERE kind = ?kind AND round = ?round AND line = n.line LIMIT 1
		) AS l`,
		pg.Named{
			"lines": pg.MapRows(lines, func(l *StagedLine) int { return l.Line }),
			"kind":  lines[0].Kind,
			"round": lines[0].Round,
		}))
	texts := pg.Index(rows, func(l *StagedLine) (int, string) { return l.Line, l.Text })
	for i := 0; i < len(lines) && err == nil; i++ {
		lines[i].Text = texts[lines[i].Line]
		err = fn(lines[i])
	}
	return err
}
