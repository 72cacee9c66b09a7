package db

import (
	"context"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// The table in which the lines of an import wait.

// StagedLine is a line of an import that waits until it is its turn.
type StagedLine struct {
	bun.BaseModel `bun:"table:import_lines,alias:l"`

	Kind  int // the place of its kind among those that are applied
	Round int // in which of its rounds it is tried
	Line  int // its number in the input

	// Object is of which object it is, where the lines of a kind are applied by the
	// places of their objects: with those of one client and, within them, of one user.
	// Nil where they are applied in their order.
	Object   *[16]byte
	ClientID *domain.ClientID
	UserID   *domain.UserID

	Outcome int // what became of it so far, a domain.ImportOutcome
	Text    string
}

// StageLines stages lines.
func (d *DB) StageLines(ctx context.Context, lines []StagedLine) error {
	return pg.CopyRows(ctx, d, "stage lines", lines)
}

// ClearStage drops all lines that are staged.
func (d *DB) ClearStage(ctx context.Context) error {
	_, err := pg.Exec(ctx, d, "drop staged lines", pg.SQL("DELETE FROM import_lines"))
	return err
}

// StageRepeated has the lines of objects that earlier lines are of, too, wait for the
// second round of their kind, in their order: each object has one in the first then.
func (d *DB) StageRepeated(ctx context.Context) error {
	return d.Tx(ctx, func(ctx context.Context) error {
		// Without statistics the table seems to be empty, and worth to be read for each line.
		_, err := pg.Exec(ctx, d, "join whole tables", pg.SQL("SELECT set_config('enable_nestloop', 'off', true)"))
		if err != nil {
			return err
		}
		_, err = pg.Exec(ctx, d, "stage repeated lines", pg.SQL(`
			UPDATE import_lines AS l SET round = 1, client_id = NULL, user_id = NULL
			FROM (
				SELECT kind, object, min(line) AS line FROM import_lines WHERE object IS NOT NULL
				GROUP BY kind, object HAVING count(*) > 1
			) AS first
			WHERE l.kind = first.kind AND l.object = first.object AND l.line > first.line`))
		return err
	})
}

const (
	// stageLines and stageBytes bound what EachStaged holds of the texts of lines.
	stageLines = 1000
	stageBytes = 4 << 20
)

// EachStaged calls fn with the lines of a round, by their places and those of one place
// in their order, until it returns an error. A user's client is that of now. The lines
// are read in a transaction of its own, as they are when it begins.
func (d *DB) EachStaged(ctx context.Context, kind, round int, fn func(StagedLine) error) error {
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
			if err := d.withTexts(ctx, part, fn); err != nil {
				return err
			}
			part, size = part[:0], 0
		}
		return d.withTexts(ctx, part, fn)
	})
}

type sizedLine struct {
	StagedLine
	Size int `bun:",scanonly"`
}

// withTexts calls fn with lines of one round, whose texts it reads.
func (d *DB) withTexts(ctx context.Context, lines []StagedLine, fn func(StagedLine) error) error {
	if len(lines) == 0 {
		return nil
	}
	numbers := make([]int, len(lines))
	for i := range lines {
		numbers[i] = lines[i].Line
	}
	if err := lookUpByKey(ctx, d); err != nil { // the cursor has its plan by now
		return err
	}
	rows, err := pg.All[StagedLine](ctx, d, "read the texts of lines", pg.SQL(`
		SELECT n.line, l.text FROM unnest(?::bigint[]) AS n (line) CROSS JOIN LATERAL (
			SELECT text FROM import_lines WHERE kind = ? AND round = ? AND line = n.line LIMIT 1
		) AS l`, numbers, lines[0].Kind, lines[0].Round))
	texts := make(map[int]string, len(rows))
	for i := range rows {
		texts[rows[i].Line] = rows[i].Text
	}
	for i := 0; i < len(lines) && err == nil; i++ {
		lines[i].Text = texts[lines[i].Line]
		err = fn(lines[i])
	}
	return err
}
