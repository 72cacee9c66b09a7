package pg

import (
	"database/sql"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"
)

// models are the Bun models of row types: which column each field is.
var models = schema.NewTables(pgdialect.New())

// modelOf is the model of a row type.
func modelOf(t reflect.Type) *schema.Table { return models.Get(t) }

// isModel reports whether a value of the type is a row of columns and not the
// value of a single one.
func isModel(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() &&
		!reflect.PointerTo(t).Implements(reflect.TypeFor[sql.Scanner]())
}

var columnLists sync.Map // of reflect.Type to string

// Columns are the columns of Row's table, with its alias: those that the fields
// of Row name but for those marked scanonly, which a query computes.
func Columns[Row any]() string {
	t := reflect.TypeFor[Row]()
	if list, ok := columnLists.Load(t); ok {
		return list.(string)
	}
	table := modelOf(t)
	names := make([]string, len(table.Fields))
	for i, field := range table.Fields {
		names[i] = table.Alias + "." + field.Name
	}
	list := strings.Join(names, ", ")
	columnLists.Store(t, list)
	return list
}

// insert is the insertion of rows of one type.
type insert struct {
	table *schema.Table
	rows  reflect.Value
}

// Insert is the statement that inserts rows, of which there is at least one, with
// the columns of Row's table. A field marked nullzero is NULL where it is zero.
// It may be put before more, as in SQL("? ON CONFLICT DO NOTHING", Insert(rows)).
func Insert[Row any](rows ...Row) Query {
	return insert{modelOf(reflect.TypeFor[Row]()), reflect.ValueOf(rows)}
}

func (i insert) write(s *statement) {
	names := make([]string, len(i.table.Fields))
	for n, field := range i.table.Fields {
		names[n] = field.Name
	}
	s.add("INSERT INTO "+i.table.Name+" ("+strings.Join(names, ", ")+") VALUES ", nil)
	values := "(?" + strings.Repeat(", ?", len(names)-1) + ")"
	for n := range i.rows.Len() {
		if n > 0 {
			s.add(", ", nil)
		}
		s.add(values, i.values(i.rows.Index(n)))
	}
}

// values are those of a row's columns.
func (i insert) values(row reflect.Value) []any {
	values := make([]any, len(i.table.Fields))
	for n, field := range i.table.Fields {
		if value := field.Value(row); !field.NullZero || !value.IsZero() {
			values[n] = value.Interface()
		}
	}
	return values
}
