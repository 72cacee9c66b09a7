package pg

import (
	"reflect"
	"strings"
	"sync"

	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/schema"
)

// models caches the Bun models of row types, which map fields to columns.
var models = schema.NewTables(pgdialect.New())

// isModel reports whether a type is a struct of columns. Otherwise it is the type of a single column.
func isModel(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != timeType && !reflect.PointerTo(t).Implements(scannerType)
}

var columnLists sync.Map // of reflect.Type to string

// Columns returns the list of the columns of Row's table, with its alias. It leaves out the fields of Row that are
// marked scanonly, because a query computes them.
func Columns[Row any]() string {
	t := reflect.TypeFor[Row]()
	if list, ok := columnLists.Load(t); ok {
		return list.(string)
	}
	table := models.Get(t)
	list := table.Alias + "." + strings.Join(columnNames(table.Fields), ", "+table.Alias+".")
	columnLists.Store(t, list)
	return list
}

// Rows selects all columns of Row's table, under its alias.
func Rows[Row any]() *Select { return From(aliasedTable[Row]()).Columns(Columns[Row]()) }

func aliasedTable[Row any]() string {
	table := models.Get(reflect.TypeFor[Row]())
	return table.Name + " AS " + table.Alias
}

// Table returns the name of Row's table.
func Table[Row any]() string { return models.Get(reflect.TypeFor[Row]()).Name }
