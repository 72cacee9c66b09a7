package pg

import (
	"context"
	"encoding/hex"
	"reflect"
	"strings"

	"github.com/google/uuid"
	"github.com/uptrace/bun/schema"
)

// insert is the Query of Insert.
type insert struct {
	table *schema.Table
	rows  reflect.Value
}

// Insert returns the statement that inserts rows, at least one, with the columns of Row's table. A zero field that is
// marked nullzero becomes NULL. Text may follow the statement, as in SQL("? ON CONFLICT DO NOTHING", Insert(rows...)).
func Insert[Row any](rows ...Row) Query {
	return newInsert(rows)
}

// newInsert returns rows with their model.
func newInsert[Row any](rows []Row) insert {
	return insert{dialect.Tables().Get(reflect.TypeFor[Row]()), reflect.ValueOf(rows)}
}

// AppendQuery appends an INSERT of all rows. Without rows it would have no VALUES.
func (i insert) AppendQuery(gen schema.QueryGen, b []byte) ([]byte, error) {
	b = append(b, "INSERT INTO "+i.table.Name+" ("+strings.Join(columnNames(i.table.Fields), ", ")+") VALUES "...)
	for n := range i.rows.Len() {
		separator := ", ("
		if n == 0 {
			separator = "("
		}
		for _, v := range i.values(i.rows.Index(n)) {
			b, _ = (&value{value: v}).AppendQuery(gen, append(b, separator...))
			separator = ", "
		}
		b = append(b, ')')
	}
	return b, nil
}

// values returns the values of a row's columns; nil for a zero field marked nullzero.
func (i insert) values(row reflect.Value) []any {
	values := make([]any, len(i.table.Fields))
	for n, field := range i.table.Fields {
		if value := field.Value(row); !field.NullZero || !value.IsZero() {
			values[n] = value.Interface()
		}
	}
	return values
}

func columnNames(fields []*schema.Field) []string {
	names := make([]string, len(fields))
	for n, field := range fields {
		names[n] = field.Name
	}
	return names
}

// CopyRows inserts rows into Row's table with Copy.
func CopyRows[Row any](ctx context.Context, r Runner, action string, rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	all := newInsert(rows)
	return Copy(ctx, r, action, all.table.Name, columnNames(all.table.Fields), len(rows), func(n int) []any {
		values := all.values(all.rows.Index(n))
		for i, value := range values {
			values[i] = wireValue(uuidList(deref(value)))
		}
		return values
	})
}

// UpdateRows sets the named columns of rows of Row's table or, if none are named, all columns but those marked pk. It
// finds the rows by the columns marked pk. The rows must be locked since they were read, so that no change is
// overwritten.
func UpdateRows[Row any](ctx context.Context, r Runner, action string, rows []Row, columns ...string) error {
	if len(rows) == 0 {
		return nil
	}
	all := newInsert(rows)
	if len(columns) == 0 {
		columns = columnNames(all.table.DataFields)
	}
	keys := columnNames(all.table.PKs)
	for i, name := range keys {
		keys[i] = "t." + name + " = n." + name
	}
	return Run(ctx, r, action, SQL(`
		UPDATE `+all.table.Name+` AS t SET (`+strings.Join(columns, ", ")+`) = ROW (n.`+strings.Join(columns, ", n.")+`)
		FROM json_populate_recordset(NULL::`+all.table.Name+`, ?::json) AS n
		WHERE `+strings.Join(keys, " AND "), Objects(rows)))
}

// Objects converts rows to JSON objects with the names of the columns of Row, as json_populate_recordset takes them.
func Objects[Row any](rows []Row) []map[string]any {
	all := newInsert(rows)
	objects := make([]map[string]any, len(rows))
	for n := range rows {
		objects[n] = map[string]any{}
		for i, value := range all.values(all.rows.Index(n)) {
			objects[n][all.table.Fields[i].Name] = jsonValue(deref(value))
		}
	}
	return objects
}

// deref dereferences a pointer. It returns nil for a nil pointer, and other values as they are.
func deref(value any) any {
	v := reflect.ValueOf(value)
	switch {
	case v.Kind() != reflect.Pointer:
		return value
	case v.IsNil():
		return nil
	}
	return v.Elem().Interface()
}

// uuidList returns a list of ids as UUIDs, for a column of type uuid[], and other values as they are.
func uuidList(value any) any {
	v := reflect.ValueOf(value)
	if v.Kind() != reflect.Slice || !v.Type().Elem().Implements(reflect.TypeFor[idBytes]()) {
		return value
	}
	list := make([]uuid.UUID, v.Len())
	for i := range list {
		list[i] = v.Index(i).Interface().(idBytes).Bytes()
	}
	return list
}

// jsonValue returns a value whose JSON is valid for the column's type: an id becomes a UUID, and bytes become
// hexadecimal digits.
func jsonValue(value any) any {
	switch bytes, ok := value.([]byte); {
	case ok && bytes == nil:
		return nil
	case ok:
		return `\x` + hex.EncodeToString(bytes)
	}
	value = uuidList(value)
	if v := reflect.ValueOf(value); v.IsValid() && isUUID(v.Type()) {
		return v.Convert(uuidType).Interface()
	}
	return value
}
