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

// selectLive selects the current numbers of objects, in the order of an export.
const selectLive = `SELECT kind, number, id FROM id_registry WHERE retired_at IS NULL ORDER BY kind, number`

// Export writes the number of every object in the format of Import: a header, then lines
// of kind,number,id, by kind and number, with the id in the form of v2. It skips
// tombstones, because an import would refuse them. It returns the number of lines without
// the header. It calls progress, unless nil, with the number of lines written so far and
// the number of all lines.
//
// It reads everything in one snapshot, which stays open until the last line is written.
func Export(ctx context.Context, db *sql.DB, to io.Writer, progress func(done, total int)) (lines int, err error) {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
	if err != nil {
		return 0, fmt.Errorf("export numbers: %w", translateError(err))
	}
	defer tx.Rollback() // the transaction only reads
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

// progressEvery is the number of lines between two calls of progress.
const progressEvery = 1000

// writeLive writes the header and the lines of an export, and returns the number of lines.
// It calls done with the number of lines so far, every progressEvery lines and at the end.
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

// translateError returns the error of pg.Unavailable if the database cannot be reached,
// and any other error unchanged.
func translateError(err error) error {
	if unavailable := pg.Unavailable("ask the id registry", err); unavailable != nil {
		return unavailable
	}
	return err
}
