package move

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"partnerapi/db"
	"partnerapi/db/pg"
)

// The catalogues of a cell are copied to another cell as lines of JSON. Each line is an object with its id, so that
// the references of a partner's objects are valid in the other cell.

// catalogueKind is the kind of a line.
type catalogueKind struct {
	name string
	// table is the table of an optional kind. A database without it has no lines of the kind.
	table string
	// export is the statement that reads the rows as JSON. statements import a JSON array of rows; the last one returns
	// how many rows were added and changed.
	export     string
	statements []string
}

// moreCatalogue are the optional kinds: their parts of the program can be deleted.
var moreCatalogue = []catalogueKind{
	v1Templates, // v1-line
}

// catalogueKinds returns the kinds that the database has. A kind comes after the kinds that it refers to.
func catalogueKinds(ctx context.Context, d *db.DB) (kinds []catalogueKind, err error) {
	for _, k := range []struct{ name, table, condition string }{
		{"course", "courses", "true"}, {"template", "phishing_templates", "NOT own"}, {"breach", "breaches", "true"},
		{"framework_course", "framework_courses", "true"},
	} {
		s, err := shapes(ctx, d, []table{{name: k.table}})
		if err != nil {
			return nil, err
		}
		kinds = append(kinds, s[0].catalogue(k.name, k.condition)) // these tables always exist
	}
	for _, k := range moreCatalogue {
		existing, err := shapes(ctx, d, []table{{name: k.table}})
		if err != nil {
			return nil, err
		}
		if len(existing) > 0 {
			kinds = append(kinds, k)
		}
	}
	return kinds, nil
}

// catalogue returns the kind, called name, whose lines are the rows of the table that match an SQL condition. An import
// counts a row as added if its xmax is 0: that of an updated row is not.
func (s shapedTable) catalogue(name, condition string) catalogueKind {
	columns, key := strings.Join(s.columns, ", "), strings.Join(s.key, ", ")
	var set []string
	for _, c := range s.columns {
		set = append(set, c+" = excluded."+c)
	}
	return catalogueKind{
		name:   name,
		export: "SELECT row_to_json(t)::text FROM " + s.name + " AS t WHERE " + condition + " ORDER BY " + key,
		statements: []string{`WITH done AS (
			INSERT INTO ` + s.name + " AS t (" + columns + ") SELECT " + columns + " FROM json_populate_recordset(NULL::" + s.name + `, $1::json)
			ON CONFLICT (` + key + ") DO UPDATE SET " + strings.Join(set, ", ") + " WHERE (t." + strings.Join(s.columns, ", t.") +
			") IS DISTINCT FROM (excluded." + strings.Join(s.columns, ", excluded.") + `)
			RETURNING xmax = 0 AS added)
			SELECT count(*) FILTER (WHERE added) AS added, count(*) FILTER (WHERE NOT added) AS changed FROM done`},
	}
}

// catalogueLine is the JSON of a line.
type catalogueLine struct {
	Kind string          `json:"kind"`
	Row  json.RawMessage `json:"row"`
}

// ExportCatalogue writes the catalogues, of one snapshot, to out, and returns the number of lines.
func ExportCatalogue(ctx context.Context, d *db.DB, out io.Writer) (lines int, err error) {
	w := bufio.NewWriter(out)
	err = d.Snapshot(ctx, func(ctx context.Context) error {
		kinds, err := catalogueKinds(ctx, d)
		if err != nil {
			return err
		}
		for _, k := range kinds {
			rows, err := pg.All[string](ctx, d, "read the "+k.name+" lines", pg.Raw(k.export, nil))
			if err != nil {
				return err
			}
			for _, row := range rows {
				line, err := json.Marshal(catalogueLine{k.name, json.RawMessage(row)})
				if err != nil {
					return err
				}
				if _, err := w.Write(append(line, '\n')); err != nil {
					return err
				}
				lines++
			}
		}
		return w.Flush()
	})
	return lines, err
}

const (
	// catalogueBatch bounds the lines that one transaction imports, and catalogueLineBytes the length of a line.
	catalogueBatch     = 200
	catalogueLineBytes = 8 << 20
)

// Imported counts the outcomes of a catalogue's lines. Faults are the errors of wrong lines.
type Imported struct {
	Lines, Added, Changed int
	Faults                []error
}

// maxCatalogueFaults is the number of wrong lines that ends an import.
const maxCatalogueFaults = 1000

// ImportCatalogue imports lines that ExportCatalogue wrote. It updates an existing object that differs, so an import
// may be repeated. A wrong line adds to Faults, and the other lines are still imported, up to maxCatalogueFaults. A
// line over catalogueLineBytes is an error that ends the import. After each batch but the last, progress is called.
func ImportCatalogue(ctx context.Context, d *db.DB, from io.Reader, progress func(Imported)) (b Imported, err error) {
	kinds, err := catalogueKinds(ctx, d)
	if err != nil {
		return b, err
	}
	i := &catalogueImport{DB: d, Imported: &b, kinds: map[string]catalogueKind{}}
	for _, k := range kinds {
		i.kinds[k.name] = k
	}
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, catalogueLineBytes)
	for scanner.Scan() {
		b.Lines++
		if err := i.add(ctx, scanner.Bytes()); err != nil {
			return b, err
		}
		if len(i.rows) == 0 { // add has imported the batch
			progress(b)
		}
		if len(b.Faults) >= maxCatalogueFaults {
			return b, fmt.Errorf("%d lines are invalid; the import stopped at line %d", maxCatalogueFaults, b.Lines)
		}
	}
	if err := scanner.Err(); err != nil {
		return b, fmt.Errorf("line %d: %w", b.Lines+1, err)
	}
	return b, i.flush(ctx)
}

// catalogueImport collects lines of one kind. rows[n] is the row of line numbers[n].
type catalogueImport struct {
	*db.DB
	*Imported
	kinds   map[string]catalogueKind
	kind    string
	rows    []json.RawMessage
	numbers []int
}

// add adds a line to the batch. It imports the batch when it is full, or before a line of another kind. A wrong line
// is added to Faults: it is no error.
func (i *catalogueImport) add(ctx context.Context, text []byte) error {
	var line catalogueLine
	switch err := json.Unmarshal(text, &line); {
	case err != nil:
		i.fault(i.Lines, err)
		return nil
	case i.kinds[line.Kind].name == "":
		i.fault(i.Lines, fmt.Errorf("the kind %.40q is unknown", line.Kind))
		return nil
	case !bytes.HasPrefix(line.Row, []byte("{")):
		i.fault(i.Lines, errors.New("row is not an object"))
		return nil
	}
	if line.Kind != i.kind {
		if err := i.flush(ctx); err != nil {
			return err
		}
		i.kind = line.Kind
	}
	i.rows, i.numbers = append(i.rows, line.Row), append(i.numbers, i.Lines)
	if len(i.rows) < catalogueBatch {
		return nil
	}
	return i.flush(ctx)
}

func (i *catalogueImport) fault(line int, err error) {
	i.Faults = append(i.Faults, fmt.Errorf("line %d: %w", line, err))
}

// flush imports the batch. If that fails it imports line by line, and adds the lines that fail to Faults. It returns
// an error only if ctx is done.
func (i *catalogueImport) flush(ctx context.Context) error {
	rows, numbers := i.rows, i.numbers
	i.rows, i.numbers = nil, nil
	if len(rows) == 0 || i.apply(ctx, rows) == nil {
		return nil
	}
	for n, row := range rows {
		if err := i.apply(ctx, []json.RawMessage{row}); err != nil {
			if ctx.Err() != nil {
				return err
			}
			i.fault(numbers[n], err)
		}
	}
	return nil
}

// apply imports rows of the current kind in one transaction, and adds to Added and Changed what the last of the
// kind's statements counted.
func (i *catalogueImport) apply(ctx context.Context, rows []json.RawMessage) error {
	list, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	type counts struct{ Added, Changed int }
	var n counts
	err = i.Tx(ctx, func(ctx context.Context) error {
		for _, statement := range i.kinds[i.kind].statements {
			result, err := pg.All[counts](ctx, i, "import "+i.kind+" lines", pg.Raw(statement, []any{string(list)}))
			if err != nil {
				return err
			}
			if len(result) > 0 {
				n = result[0]
			}
		}
		return nil
	})
	if err == nil {
		i.Added, i.Changed = i.Added+n.Added, i.Changed+n.Changed
	}
	return err
}
