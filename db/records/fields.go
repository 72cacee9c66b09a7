package records

import (
	"reflect"
	"strings"
	"sync"
	"time"

	"partnerapi/domain"
)

// Fields of records are columns of rows: for an import and, the other way, for an export.

// mapping maps a type of records to a type of rows, and back.
type mapping struct {
	pairs  []pair
	fields []recordField // all of the record
	// columns are the row's columns that an import fills alike for all kinds, by their names in Go.
	columns map[string][]int
}

// recordField is a field of a record.
type recordField struct {
	name   string // in JSON
	index  int
	needed bool // required of a new object
}

// pair is a field of a record and its column in the row. The column's name in Go is that of
// the field's tag row, the field's name, or, for a reference, the field's name and ID.
type pair struct {
	recordField
	row   []int // the place in the row
	fixed bool
	// computed says that a query fills the column, for an export alone.
	computed bool
	// omitZero says that an export leaves a zero out.
	omitZero bool
}

var mappings sync.Map // of the types of record and row to *mapping

// mappingOf is the mapping of a record and a row.
func mappingOf(record, row reflect.Type) *mapping {
	types := [2]reflect.Type{record, row}
	if known, ok := mappings.Load(types); ok {
		return known.(*mapping)
	}
	m := &mapping{columns: map[string][]int{}}
	for i := range record.NumField() {
		m.addField(record.Field(i), i, row)
	}
	for _, name := range []string{"ID", "ClientID", "PartnerID", "Name", "NameKey", "CreatedAt", "UpdatedAt"} {
		if f, ok := row.FieldByName(name); ok {
			m.columns[name] = f.Index
		}
	}
	mappings.Store(types, m)
	return m
}

func (m *mapping) addField(f reflect.StructField, index int, row reflect.Type) {
	name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
	value, isField := f.Type.FieldByName("Value")
	if !isField || name == "" {
		return
	}
	rules := "," + f.Tag.Get("rule") + ","
	field := recordField{name, index, strings.Contains(rules, ",new,")}
	m.fields = append(m.fields, field)
	for _, column := range []string{f.Tag.Get("row"), f.Name, f.Name + "ID"} {
		to, ok := row.FieldByName(column)
		if !ok || !plainType(pointee(value.Type)).ConvertibleTo(pointee(to.Type)) {
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

// column returns a row's column by its name in Go; the zero Value if the row has none.
func (m *mapping) column(row reflect.Value, name string) reflect.Value {
	if index, ok := m.columns[name]; ok {
		return row.FieldByIndex(index)
	}
	return reflect.Value{}
}

// plainType is what rows have for the type of a field: the time of a domain.Time, the
// id of a domain.Ref.
func plainType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Struct && t.NumField() == 1 {
		return t.Field(0).Type
	}
	return t
}

// plain returns a field's value as rows have it.
func plain(value reflect.Value) reflect.Value {
	if plainType(value.Type()) != value.Type() {
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

func (f *recordField) optional(record reflect.Value) domain.AnyOptional {
	return record.Field(f.index).Addr().Interface().(domain.AnyOptional)
}

// value returns the field's value in an addressable record: the zero Value for null. given is
// false if the record leaves the field out.
func (f *recordField) value(record reflect.Value) (value reflect.Value, given bool) {
	said := f.optional(record)
	if said.IsZero() {
		return reflect.Value{}, false
	}
	return reflect.Indirect(reflect.ValueOf(said.Pointer()).Elem()), true
}

// reference returns the reference in the field of a record; false if there is none.
func (f *recordField) reference(record reflect.Value) (to reference, is bool) {
	if value, _ := f.value(record); value.IsValid() {
		to, is = value.Interface().(reference)
	}
	return to, is
}

// column returns the record's value for the column, as rows have it.
func (p *pair) column(record reflect.Value) (value reflect.Value, given bool) {
	if value, given = p.value(record); value.IsValid() {
		value = plain(value)
	}
	return value, given
}

// differs reports whether a column, which may be a pointer, has another value.
func differs(column, value reflect.Value) bool {
	if column.Kind() == reflect.Pointer {
		if column.IsNil() || !value.IsValid() {
			return column.IsNil() == value.IsValid()
		}
		column = column.Elem()
	}
	if at, ok := value.Interface().(time.Time); ok {
		return !at.Equal(column.Interface().(time.Time))
	}
	return !reflect.DeepEqual(column.Interface(), value.Convert(column.Type()).Interface())
}

// apply sets the columns of a row to the values of its record. An equal column stays as it
// is, so that rows can be compared.
func (m *mapping) apply(record, row reflect.Value) {
	for i := range m.pairs {
		p := &m.pairs[i]
		value, given := p.column(record)
		column := row.FieldByIndex(p.row)
		switch {
		case p.computed || !given || !differs(column, value):
		case !value.IsValid():
			column.SetZero()
		case column.Kind() == reflect.Pointer:
			made := reflect.New(column.Type().Elem())
			made.Elem().Set(value.Convert(made.Type().Elem()))
			column.Set(made)
		default:
			column.Set(value.Convert(column.Type()))
		}
	}
}

// changedFixed returns the first fixed field whose value in the record differs from the row;
// empty for none.
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

// recordOf returns the record of a row, with the fields that columns hold.
func recordOf[Record, Row any](row *Row) *Record {
	record := new(Record)
	into, from := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	m := mappingOf(into.Type(), from.Type())
	id := into.FieldByName("ID").Field(0) // of a domain.Ref
	id.Set(m.column(from, "ID").Convert(id.Type()))

	for i := range m.pairs {
		p := &m.pairs[i]
		column := from.FieldByIndex(p.row)
		if p.omitZero && column.IsZero() || column.Kind() == reflect.Pointer && column.IsNil() {
			continue
		}
		value := reflect.ValueOf(p.optional(into).Open()).Elem()
		if value.Kind() == reflect.Pointer {
			value.Set(reflect.New(value.Type().Elem()))
			value = value.Elem()
		}
		value = plain(value)
		value.Set(reflect.Indirect(column).Convert(value.Type()))
	}
	return record
}

// idOf is the id of a record or of a row.
func idOf[T any](of *T) [16]byte {
	return reflect.ValueOf(of).Elem().FieldByName("ID").Interface().(interface{ Bytes() [16]byte }).Bytes()
}
