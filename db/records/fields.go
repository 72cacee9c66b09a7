package records

import (
	"reflect"
	"strings"
	"sync"
	"time"

	"partnerapi/domain"
)

// The mapping between fields of records and columns of rows, for imports and exports.

// mapping maps a type of records to a type of rows, and back.
type mapping struct {
	pairs  []pair
	fields []recordField // all fields of the record
	// columns are the index sequences (reflect) of the row's columns that an import sets in the same way for all kinds,
	// by their names in Go.
	columns map[string][]int
}

// recordField is a field of a record.
type recordField struct {
	name   string // in JSON
	index  int
	needed bool // required of a new object
}

// pair is a field of a record and its column in the row. The column's name in Go is the field's tag row, the field's
// name, or that followed by ID, as for a reference.
type pair struct {
	recordField
	row   []int // the index sequence of the column in the row
	fixed bool  // an import cannot change it
	// computed is true if a query computes the column. Only an export uses it.
	computed bool
	// omitZero is true if an export leaves out the field if the column is zero.
	omitZero bool
}

var mappings sync.Map // of the types of record and row to *mapping

// mappingOf returns the mapping between the types of a record and a row.
func mappingOf(record, row reflect.Type) *mapping {
	types := [2]reflect.Type{record, row}
	if known, ok := mappings.Load(types); ok {
		return known.(*mapping)
	}
	m := &mapping{columns: map[string][]int{}}
	for i := range record.NumField() {
		m.addField(record.Field(i), i, row)
	}
	for _, name := range []string{ // an import sets these in the same way for all kinds
		"ID", "ClientID", "Client", "PartnerID", "Partner", "Name", "NameKey", "Email", "EmailKey", "EmailState", "CreatedAt", "UpdatedAt",
	} {
		if f, ok := row.FieldByName(name); ok {
			m.columns[name] = f.Index
		}
	}
	mappings.Store(types, m)
	return m
}

// addField adds a field of the record and, if a column of the row fits its name and type, the pair. It ignores fields
// that are not domain.Optional, or not in JSON.
func (m *mapping) addField(f reflect.StructField, index int, row reflect.Type) {
	name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
	value, isOptional := f.Type.FieldByName("Value")
	if !isOptional || name == "" {
		return
	}
	rules := "," + f.Tag.Get("rule") + ","
	field := recordField{name, index, strings.Contains(rules, ",new,") /* needed */}
	m.fields = append(m.fields, field)
	for _, column := range []string{f.Tag.Get("row"), f.Name, f.Name + "ID"} { // the first of a fitting type
		to, ok := row.FieldByName(column)
		if !ok || !rowType(pointee(value.Type)).ConvertibleTo(pointee(to.Type)) {
			continue
		}
		m.pairs = append(m.pairs, pair{
			recordField: field, row: to.Index, omitZero: option == "omitzero",
			computed: strings.Contains(to.Tag.Get("bun"), "scanonly"),
			fixed:    strings.Contains(rules, ",fixed,"),
		})
		return
	}
}

// column returns a row's column by its name in Go, or the zero Value if the row has none.
func (m *mapping) column(row reflect.Value, name string) reflect.Value {
	if index, ok := m.columns[name]; ok {
		return row.FieldByIndex(index)
	}
	return reflect.Value{}
}

// rowType returns the type in a row for the type t of a field: that of the only field, an exported one, of a struct like
// domain.Time and domain.Ref, and otherwise t.
func rowType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).IsExported() {
		return t.Field(0).Type
	}
	return t
}

// rowValue returns a field's value as a row holds it: the only field of a struct like domain.Time, or else the value.
func rowValue(value reflect.Value) reflect.Value {
	if rowType(value.Type()) != value.Type() {
		return value.Field(0)
	}
	return value
}

func pointee(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// optional returns the field in an addressable record.
func (f *recordField) optional(record reflect.Value) domain.AnyOptional {
	return record.Field(f.index).Addr().Interface().(domain.AnyOptional)
}

// value returns the field's value in an addressable record. It is the zero Value if the field is null or left out.
// given is false if it is left out.
func (f *recordField) value(record reflect.Value) (value reflect.Value, given bool) {
	optional := f.optional(record)
	if optional.IsZero() { // left out
		return reflect.Value{}, false
	}
	value = reflect.ValueOf(optional.Pointer()).Elem()
	return reflect.Indirect(value), true // Indirect of a nil pointer, which is null, is the zero Value
}

// reference returns the field's value in a record if it is a reference. ok is false if it is not, or has no value.
func (f *recordField) reference(record reflect.Value) (ref reference, ok bool) {
	if value, _ := f.value(record); value.IsValid() {
		ref, ok = value.Interface().(reference)
	}
	return ref, ok
}

// column returns the record's value for the column: the zero Value if the field is null or left out. given is false if
// it is left out.
func (p *pair) column(record reflect.Value) (value reflect.Value, given bool) {
	if value, given = p.value(record); value.IsValid() {
		value = rowValue(value)
	}
	return value, given
}

// differs reports whether a column, which may be a pointer, differs from value. The zero Value, which is null, equals a
// nil pointer, and the zero value of a column that is no pointer.
func differs(column, value reflect.Value) bool {
	switch {
	case !value.IsValid():
		return !column.IsZero()
	case column.Kind() == reflect.Pointer && column.IsNil():
		return true
	}
	column = reflect.Indirect(column)
	if at, ok := value.Interface().(time.Time); ok {
		return !at.Equal(column.Interface().(time.Time))
	}
	return !reflect.DeepEqual(column.Interface(), value.Convert(column.Type()).Interface())
}

// apply sets the columns of a row to the given values of its record. It does not touch a column that is already equal:
// a new pointer would make the rows differ.
func (m *mapping) apply(record, row reflect.Value) {
	for i := range m.pairs {
		p := &m.pairs[i]
		value, given := p.column(record)
		column := row.FieldByIndex(p.row)
		switch {
		case p.computed || !given || !differs(column, value): // keep the column
		case !value.IsValid():
			column.SetZero()
		case column.Kind() == reflect.Pointer:
			pointer := reflect.New(column.Type().Elem())
			pointer.Elem().Set(value.Convert(pointer.Type().Elem()))
			column.Set(pointer)
		default:
			column.Set(value.Convert(column.Type()))
		}
	}
}

// changedFixed returns the name of the first fixed field whose value in the record differs from the row, or "". Fields
// that are null or left out do not count.
func (m *mapping) changedFixed(record, row reflect.Value) string {
	for i := range m.pairs {
		p := &m.pairs[i]
		if !p.fixed {
			continue
		}
		if value, _ := p.column(record); value.IsValid() && differs(row.FieldByIndex(p.row), value) {
			return p.name
		}
	}
	return ""
}

// recordOf returns the record of a row, with its id and the fields that have a column. NULL columns, and zero ones if
// the field is omitzero, are left out.
func recordOf[Record, Row any](row *Row) *Record {
	record := new(Record)
	target, source := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	m := mappingOf(target.Type(), source.Type())
	id := target.FieldByName("ID").Field(0) // of a domain.Ref
	id.Set(m.column(source, "ID").Convert(id.Type()))

	for i := range m.pairs {
		p := &m.pairs[i]
		column := source.FieldByIndex(p.row)
		if p.omitZero && column.IsZero() || column.Kind() == reflect.Pointer && column.IsNil() {
			continue
		}
		value := reflect.ValueOf(p.optional(target).MarkGiven()).Elem()
		if value.Kind() == reflect.Pointer {
			value.Set(reflect.New(value.Type().Elem()))
			value = value.Elem()
		}
		value = rowValue(value)
		value.Set(reflect.Indirect(column).Convert(value.Type()))
	}
	return record
}

// idOf returns the id of a record or a row.
func idOf[T any](object *T) [16]byte {
	return reflect.ValueOf(object).Elem().FieldByName("ID").Interface().(interface{ Bytes() [16]byte }).Bytes()
}
