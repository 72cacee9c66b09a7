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

// models caches the Bun models of row types, which map fields to columns.
var models = schema.NewTables(pgdialect.New())

// modelOf returns the model of a row type.
func modelOf(t reflect.Type) *schema.Table { return models.Get(t) }

// isModel reports whether a type is a struct of columns. Otherwise it is the type of a single column.
func isModel(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() &&
		!reflect.PointerTo(t).Implements(reflect.TypeFor[sql.Scanner]())
}

var columnLists sync.Map // of reflect.Type to string

// Columns returns the list of the columns of Row's table, with its alias. It leaves out the fields of Row that are
// marked scanonly, because a query computes them.
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

// Rows selects all columns of Row's table, under its alias.
func Rows[Row any]() *Select { return From(aliasedTable[Row]()).Columns(Columns[Row]()) }

// aliasedTable returns the name of Row's table with its alias.
func aliasedTable[Row any]() string {
	table := modelOf(reflect.TypeFor[Row]())
	return table.Name + " AS " + table.Alias
}

// Table returns the name of Row's table.
func Table[Row any]() string { return modelOf(reflect.TypeFor[Row]()).Name }
