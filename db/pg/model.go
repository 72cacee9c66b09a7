package pg

import (
	"database/sql"
	"reflect"
	"strings"
	"sync"

	"github.com/uptrace/bun"
)

// isModel reports whether a type is a struct of columns. Otherwise it is the type of a single column.
func isModel(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != timeType && !reflect.PointerTo(t).Implements(reflect.TypeFor[sql.Scanner]())
}

var columnLists sync.Map // of reflect.Type to string

// Columns returns the list of the columns of Row's table, with its alias. It leaves out the fields of Row that are
// marked scanonly, because a query computes them.
func Columns[Row any]() string {
	t := reflect.TypeFor[Row]()
	if list, ok := columnLists.Load(t); ok {
		return list.(string)
	}
	table := dialect.Tables().Get(t)
	list := table.Alias + "." + strings.Join(columnNames(table.Fields), ", "+table.Alias+".")
	columnLists.Store(t, list)
	return list
}

// Rows selects all columns of Row's table, under its alias.
func Rows[Row any]() *bun.SelectQuery { return From(aliasedTable[Row]()).ColumnExpr(Columns[Row]()) }

func aliasedTable[Row any]() string {
	table := dialect.Tables().Get(reflect.TypeFor[Row]())
	return table.Name + " AS " + table.Alias
}

// Table returns the name of Row's table.
func Table[Row any]() string { return dialect.Tables().Get(reflect.TypeFor[Row]()).Name }
