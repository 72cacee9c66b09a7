package idmap

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"partnerapi/db/pg"
)

// selectLive reads the numbers that objects hold, in the order of an export.
const selectLive = `SELECT kind, number, id FROM id_registry WHERE retired_at IS NULL ORDER BY kind, number`

// Export writes the number of every object, as Import reads it: a header, then
// lines of kind,number,id, by kind and number, the id in v2's form. Tombstones are
// left out, for no import takes them. It returns how many lines it wrote beside the
// header, and calls progress, if not nil, with how many of them are done.
//
// All is read in one snapshot, and little of it is in memory at a time; a slow
// writer keeps the snapshot open.
func Export(ctx context.Context, db *sql.DB, to io.Writer, progress func(done, total int)) (lines int, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return 0, fmt.Errorf("export numbers: %w", translateError(err))
	}
	defer tx.Rollback() // it changes nothing
	var total int
	err = tx.QueryRowContext(ctx, `SELECT count(*) FROM id_registry WHERE retired_at IS NULL`).Scan(&total)
	if err != nil {
		return 0, fmt.Errorf("export numbers: count them: %w", translateError(err))
	}

	buffer := bufio.NewWriter(to)
	if lines, err = writeLive(ctx, tx, csv.NewWriter(buffer), func(done int) {
		if progress != nil {
			progress(done, total)
		}
	}); err != nil {
		return lines, fmt.Errorf("export numbers: %w", err)
	}
	if err := buffer.Flush(); err != nil {
		return lines, fmt.Errorf("export numbers: %w", err)
	}
	return lines, nil
}

// progressEvery is how many lines there are between two calls of a progress.
const progressEvery = 1000

func writeLive(ctx context.Context, tx *sql.Tx, to *csv.Writer, done func(lines int)) (lines int, err error) {
	rows, err := tx.QueryContext(ctx, selectLive)
	if err != nil {
		return 0, translateError(err)
	}
	defer rows.Close()
	if err := to.Write([]string{"kind", "number", "id"}); err != nil {
		return 0, err
	}

	for rows.Next() {
		var name string
		var number int64
		var id anyID
		if err := rows.Scan(&name, &number, &id); err != nil {
			return lines, err
		}
		kind, err := ParseKind(name)
		if err != nil {
			return lines, err
		}
		if err := to.Write([]string{name, strconv.FormatInt(number, 10), spaces[kind].show(UUID(id))}); err != nil {
			return lines, err
		}
		if lines++; lines%progressEvery == 0 {
			done(lines)
		}
	}
	if err := rows.Err(); err != nil {
		return lines, translateError(err)
	}

	done(lines)
	to.Flush()
	return lines, to.Error()
}

// translateError returns Unavailable for an error of a database that cannot be
// reached, and every other error as it is.
func translateError(err error) error {
	if away := pg.Unavailable("ask the id registry", err); away != nil {
		return away
	}
	return err
}
