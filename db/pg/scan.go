package pg

import (
	"database/sql"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"partnerapi/domain"
)

// scan appends the rows of a result to rows. The driver reads the values, into the fields that Bun's model names.
func scan[Row any](result pgx.Rows, rows []Row) ([]Row, error) {
	fields, err := fieldsOf(reflect.TypeFor[Row](), result.FieldDescriptions())
	if err != nil {
		return nil, err
	}
	targets := make([]any, len(fields))
	for result.Next() {
		var empty Row
		rows = append(rows, empty)
		row := reflect.ValueOf(&rows[len(rows)-1]).Elem()
		for i := range fields {
			targets[i] = fields[i].target(row)
		}
		if err := result.Scan(targets...); err != nil {
			return nil, err
		}
	}
	return rows, result.Err()
}

// field is where the value of a column goes.
type field struct {
	index []int // in the row; empty if the row is the value
	// as is the type of pointer that the driver gets; nil for a pointer to the field's own type. The driver would find
	// out at each value that one of our types is a string or an array of bytes.
	as reflect.Type
}

// target returns the pointer to the field of a row.
func (f *field) target(row reflect.Value) any {
	if len(f.index) > 0 {
		row = row.FieldByIndex(f.index)
	}
	to := row.Addr()
	if f.as != nil {
		to = to.Convert(f.as)
	}
	return to.Interface()
}

// layout is the fields for one list of columns.
type layout struct {
	columns []string
	fields  []field
}

// layouts caches the layouts of each row type, a []layout by its reflect.Type.
var layouts sync.Map

// fieldsOf returns the fields of a row type for columns, from the cache if they are there.
func fieldsOf(row reflect.Type, columns []pgconn.FieldDescription) ([]field, error) {
	cached, _ := layouts.Load(row)
	known, _ := cached.([]layout)
	i := slices.IndexFunc(known, func(l layout) bool {
		return slices.EqualFunc(l.columns, columns, func(name string, c pgconn.FieldDescription) bool { return name == c.Name })
	})
	if i >= 0 {
		return known[i].fields, nil
	}

	l, err := newLayout(row, columns)
	if err == nil {
		layouts.Store(row, append(slices.Clip(known), l)) // a layout that a concurrent Store replaces is computed again
	}
	return l.fields, err
}

// newLayout creates the layout of a row type for columns. It returns an error if the type has no field for a column.
func newLayout(row reflect.Type, columns []pgconn.FieldDescription) (layout, error) {
	l := layout{columns: MapRows(columns, func(c *pgconn.FieldDescription) string { return c.Name })}
	if !isModel(row) {
		if len(columns) > 1 {
			return layout{}, fmt.Errorf("%s takes one column, not %d", row, len(columns))
		}
		l.fields = []field{{as: targetOf(row, false)}}
		return l, nil
	}
	table := dialect.Tables().Get(row)
	for _, column := range l.columns {
		f := table.LookupField(column)
		if f == nil {
			return layout{}, fmt.Errorf("%s has no column %s", table.TypeName, column)
		}
		l.fields = append(l.fields, field{index: f.Index, as: targetOf(f.StructField.Type, f.NullZero)})
	}
	return l, nil
}

// targetOf returns the type of pointer by which the driver reads into a field of a type, or nil for a pointer to that
// type. A field with nullZero stays zero for NULL.
func targetOf(typ reflect.Type, nullZero bool) reflect.Type {
	switch {
	case typ == reflect.TypeFor[domain.Date]():
		return reflect.TypeFor[*dateTarget]()
	case isUUID(typ) && nullZero:
		return reflect.TypeFor[*zeronull.UUID]()
	case isUUID(typ):
		return reflect.TypeFor[*[16]byte]()
	case typ == timeType && nullZero:
		return reflect.TypeFor[*zeronull.Timestamptz]()
	case reflect.PointerTo(typ).Implements(reflect.TypeFor[sql.Scanner]()):
		return nil
	case typ.Kind() == reflect.String && nullZero:
		return reflect.TypeFor[*zeronull.Text]()
	case typ.Kind() == reflect.String:
		return reflect.TypeFor[*string]()
	}
	return nil
}

var (
	uuidType = reflect.TypeFor[uuid.UUID]()
	timeType = reflect.TypeFor[time.Time]()
)

// isUUID reports whether a type is 16 bytes: a UUID, or an id of any kind.
func isUUID(typ reflect.Type) bool { return typ.Kind() == reflect.Array && typ.ConvertibleTo(uuidType) }

// dateTarget reads a domain.Date. NULL is the zero date.
type dateTarget domain.Date

// ScanDate implements pgtype.DateScanner.
func (d *dateTarget) ScanDate(v pgtype.Date) error {
	switch {
	case v.InfinityModifier != pgtype.Finite:
		return fmt.Errorf("the date is infinite")
	case v.Valid:
		*d = dateTarget(domain.DateOf(v.Time))
	default:
		*d = dateTarget{}
	}
	return nil
}
