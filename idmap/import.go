package idmap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

// ErrRefused is the error of Import if it imported nothing because of the refused rows in its report.
var ErrRefused = errors.New("some rows were rejected; nothing was imported")

// ImportReport is the report of an import.
type ImportReport struct {
	Rows      int       // number of rows in the file
	Moved     int       // number of objects that got the number of their row
	Unchanged int       // number of objects that had the number already
	Refused   []Refusal // all refused rows, in the order of the file
}

// Import gives objects the numbers that they had before the registry existed (decisions 1.5). The file has lines of
// kind,number,id, with the id in the form of v2 or as a UUID, or with language:name for an imported template; the first
// line may be a header of these three words, as Export writes it. The previous number of an object becomes a tombstone, unless the file gives it to another object: a
// file may swap numbers. A row may have a number that is a tombstone of the same object, but not a tombstone of another
// object, unless v1 never showed that number, or the file moves that object.
//
// A deleted group or collection that a policy names has a number too, which v1 shows and a row may give it: it is a
// tombstone afterwards, as it was before.
//
// It imports all rows or, with ErrRefused, none. A dry run returns the same report and changes nothing. Numbers that
// are allocated later are above the imported numbers.
//
// Transactions that create objects wait while an import runs, and the import waits for those that began before it.
// While it waits, it delays further ones by at most lockWait at a time.
//
// An import that changes numbers runs the hooks in its transaction, before the commit.
func Import(
	ctx context.Context, d *pg.DB, file io.Reader, dryRun bool, hooks ...func(context.Context) error,
) (report ImportReport, err error) {
	s, err := readSheet(file)
	if err != nil {
		return report, fmt.Errorf("import numbers: %w", err)
	}
	if err := s.findNamed(ctx, d); err != nil {
		return report, err
	}
	err = pg.RetryLocked(ctx, func() error {
		return d.Tx(ctx, func(ctx context.Context) (err error) {
			report, err = importSheet(ctx, d, s, dryRun, hooks)
			return err
		})
	})
	return report, err
}

// foundTemplate is an imported template with the place, from 1, of its row in sheet.named.
type foundTemplate struct {
	N  int
	ID anyID
}

// findNamed adds the rows of imported templates that the sheet names, and refuses those that do not exist.
func (s *sheet) findNamed(ctx context.Context, d *pg.DB) error {
	if len(s.named) == 0 {
		return nil
	}
	names, languages := make([]string, len(s.named)), make([]string, len(s.named))
	for i, r := range s.named {
		names[i], languages[i] = r.name, r.language
	}
	found, err := pg.All[foundTemplate](ctx, d, "import numbers: look for templates by name", pg.SQL(`
		SELECT w.n, t.id FROM unnest(?::text[], ?::text[]) WITH ORDINALITY AS w (name, language, n)
		JOIN phishing_templates AS t ON NOT t.own AND t.name = w.name AND t.language = w.language`, names, languages))
	if err != nil {
		return err
	}
	ids := pg.Index(found, func(t *foundTemplate) (int, anyID) { return t.N, t.ID })
	for i, r := range s.named {
		if id, ok := ids[i+1]; ok {
			s.add(row{r.line, pair{Template, r.number, UUID(id)}})
		} else {
			s.refuse(r.line, Orphan, "there is no imported template %q in the language %q", r.name, r.language)
		}
	}
	return nil
}

// importSheet imports a sheet in the transaction of ctx; a dry run only stages and checks it. If rows are refused, the
// report has these and the number of rows only. It may be called again after a rollback.
func importSheet(
	ctx context.Context, d *pg.DB, s *sheet, dryRun bool, hooks []func(context.Context) error,
) (report ImportReport, err error) {
	if !dryRun {
		if err := lockRegistry(ctx, d); err != nil {
			return report, err
		}
	}
	report.Rows = s.total
	if report.Unchanged, err = stage(ctx, d, s.rows); err != nil {
		return report, err
	}
	if err := refuseStaged(ctx, d, s); err != nil {
		return report, err
	}
	if len(s.refused) > 0 {
		slices.SortFunc(s.refused, func(a, b Refusal) int { return cmp.Compare(a.Line, b.Line) })
		return ImportReport{Rows: s.total, Refused: s.refused}, ErrRefused
	}
	report.Moved = len(s.rows) - report.Unchanged
	if dryRun || report.Moved == 0 { // nothing was written but the temporary table
		return report, nil
	}
	if err := move(ctx, d); err != nil {
		return report, err
	}
	for _, hook := range hooks {
		if err := hook(ctx); err != nil {
			return report, fmt.Errorf("import numbers: %w", err)
		}
	}
	return report, nil
}

// lockWait is how long an import waits for the lock of the registry before it gives up and tries again: transactions
// that create objects queue behind its request. It is longer than the time after which PostgreSQL cancels an autovacuum
// that holds up a lock.
const lockWait = "1500ms"

// lockRegistry locks the registry until the end of the transaction; a lock timeout is an error. The lock conflicts with
// every insert and delete of an object, so that no number is allocated or retired meanwhile, and the sequences can be
// set. It does not conflict with lookups.
func lockRegistry(ctx context.Context, d *pg.DB) error {
	return pg.Run(ctx, d, "import numbers: lock the registry", pg.SQL(
		`SET LOCAL lock_timeout = '`+lockWait+`'; LOCK TABLE id_registry IN SHARE ROW EXCLUSIVE MODE`))
}

// stage copies the rows into a temporary table, and deletes those whose object already has the number. It returns the
// number of deleted rows. The column deleted is true for a deleted group or collection that a policy names.
func stage(ctx context.Context, d *pg.DB, rows []row) (unchanged int, err error) {
	const action = "import numbers: stage the file"
	if err := pg.Run(ctx, d, action, pg.SQL(`CREATE TEMPORARY TABLE idmap_import (
		place integer, kind text COLLATE "C", number integer, id uuid, deleted boolean NOT NULL DEFAULT false) ON COMMIT DROP`)); err != nil {
		return 0, err
	}
	columns := []string{"place", "kind", "number", "id"}
	if err := pg.Copy(ctx, d, action, "idmap_import", columns, len(rows), func(i int) []any {
		return []any{i, rows[i].kind.String(), rows[i].number, rows[i].id}
	}); err != nil {
		return 0, err
	}
	if err := pg.Run(ctx, d, action, pg.SQL(`ANALYZE idmap_import`)); err != nil {
		return 0, err
	}
	if err := pg.Run(ctx, d, action, pg.SQL(`UPDATE idmap_import AS i SET deleted = true FROM id_registry AS r
		WHERE r.kind = i.kind AND r.id = i.id AND `+shownTombstone)); err != nil {
		return 0, err
	}
	return pg.Exec(ctx, d, action, pg.SQL(`DELETE FROM idmap_import AS i USING id_registry AS r
		WHERE r.kind = i.kind AND r.id = i.id AND r.number = i.number
			AND (r.retired_at IS NULL OR i.deleted AND `+shownTombstone+`)`))
}

// selectRefused selects the staged rows whose object has no number of the kind, and so does not exist or is of another
// kind; whose number is a tombstone of another object, or the number of another object that is not staged; or whose
// number is above maxImported. A tombstone with retired_at = 'epoch' does not count: v1 never showed its number. That of
// a deleted object that a policy names counts as the object's number.
const selectRefused = `
SELECT i.place,
	mine.id IS NULL AND NOT i.deleted AND NOT EXISTS (
		SELECT FROM id_registry AS other
		WHERE other.kind = ANY(?::text[]) AND other.id = i.id AND other.retired_at IS NULL) AS orphan,
	mine.id IS NULL AND NOT i.deleted AS stranger,
	held.id AS holder, held.retired_at IS NOT NULL AS tombstone
FROM idmap_import AS i
LEFT JOIN id_registry AS mine ON mine.kind = i.kind AND mine.id = i.id AND mine.retired_at IS NULL
LEFT JOIN id_registry AS held ON held.kind = i.kind AND held.number = i.number AND held.id <> i.id
LEFT JOIN idmap_import AS moves ON moves.kind = held.kind AND moves.id = held.id
	AND (held.retired_at IS NULL OR moves.deleted AND NOT EXISTS (
		SELECT FROM id_registry AS later
		WHERE later.kind = held.kind AND later.id = held.id AND later.retired_at > held.retired_at))
WHERE mine.id IS NULL AND NOT i.deleted OR i.number > ?::int
	OR held.id IS NOT NULL AND held.retired_at IS DISTINCT FROM 'epoch' AND moves.id IS NULL`

// refuseStaged refuses the staged rows that selectRefused selects: it adds them to the sheet, each with the reason.
func refuseStaged(ctx context.Context, d *pg.DB, s *sheet) error {
	refused, err := pg.All[struct {
		Place                       int
		Orphan, Stranger, Tombstone bool
		Holder                      *anyID
	}](ctx, d, "import numbers: check the file", pg.SQL(selectRefused, kindNames(), maxImported))
	for _, found := range refused {
		r := s.rows[found.Place]
		id, holder := kindInfos[r.kind].show(r.id), kindInfos[r.kind].show(UUID(domain.OrZero(found.Holder)))
		switch {
		case r.number > maxImported:
			s.refuse(r.line, OutOfRange, notImported, r.number, maxImported)
		case found.Orphan:
			s.refuse(r.line, Orphan, "there is no %s %s", r.kind, id)
		case found.Stranger: // an object of another kind has the id
			s.refuse(r.line, WrongKind, "%s is not the ID of a %s", anyID(r.id).UUID(), r.kind)
		case found.Tombstone:
			s.refuse(r.line, Duplicate, "%s %d was assigned to %s", r.kind, r.number, holder)
		default:
			s.refuse(r.line, Duplicate, "%s %d is assigned to %s", r.kind, r.number, holder)
		}
	}
	return err
}

// move gives the staged objects their numbers, which refuseStaged has checked. It first retires their previous ones, so
// that a file can swap numbers. If a number is that of another object's tombstone, the tombstone gets a new one:
// refuseStaged allows only those that v1 never showed (retired_at = 'epoch').
func move(ctx context.Context, d *pg.DB) error {
	for _, step := range []struct{ action, statement string }{
		{"retire former numbers", `UPDATE id_registry AS r SET retired_at = clock_timestamp()
			FROM idmap_import AS i WHERE r.kind = i.kind AND r.id = i.id AND r.retired_at IS NULL`},
		// Sets each sequence to the highest of its possible values that is not above the highest imported number.
		{"allocate above imported numbers", `SELECT setval(sequence, own)
			FROM (SELECT seqrelid::regclass AS sequence, seqstart, max(number) - (max(number) - seqstart) % seqincrement AS own
				FROM idmap_import JOIN pg_sequence ON seqrelid = ('id_registry_' || kind)::regclass
				GROUP BY seqrelid, seqstart, seqincrement HAVING max(number) >= seqstart) AS imported
			WHERE own > coalesce(pg_sequence_last_value(sequence), 0)`},
		{"give tombstones that were never seen other numbers", `INSERT INTO id_registry
			(kind, number, id, retired_at, partner_id)
			SELECT r.kind, nextval(('id_registry_' || r.kind)::regclass), r.id, 'epoch', r.partner_id
			FROM id_registry AS r JOIN idmap_import AS i ON i.kind = r.kind AND i.number = r.number AND i.id <> r.id
			WHERE r.retired_at = 'epoch'`},
		{"give imported numbers", `INSERT INTO id_registry (kind, number, id, retired_at, partner_id)
			SELECT i.kind, i.number, i.id, CASE WHEN i.deleted THEN clock_timestamp() END, (
				SELECT r.partner_id FROM id_registry AS r WHERE i.deleted AND r.kind = i.kind AND r.id = i.id LIMIT 1)
			FROM idmap_import AS i
			ON CONFLICT (kind, number) DO UPDATE
				SET id = excluded.id, retired_at = excluded.retired_at, partner_id = excluded.partner_id`},
		{"notify of the change", `NOTIFY id_registry`},
	} {
		if err := pg.Run(ctx, d, "import numbers: "+step.action, pg.SQL(step.statement)); err != nil {
			return err
		}
	}
	return nil
}
