package records

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"partnerapi/domain"
)

// The mapping between fields of records and columns of rows, for imports and exports.

// field is a field of a type of records, with its column in a type of rows. The column's name in Go is the field's tag
// row, the field's name, or that followed by ID, as for a reference.
type field struct {
	name     string // in JSON
	index    int
	required bool // of a new object
	fixed    bool // an import cannot change it
	omitZero bool // an export leaves it out if the column is zero

	column   []int // the index sequence of the column (reflect); nil for none
	computed bool  // a query computes the column, so that only an export uses it
}

// fieldsOf returns the fields of a type of records that are in JSON and domain.Optional, with the columns of a type of
// rows that fit their names and types.
func fieldsOf(record, row reflect.Type) (fields []field) {
	for i := range record.NumField() {
		f := record.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		value, isOptional := f.Type.FieldByName("Value")
		if !isOptional || name == "" {
			continue
		}
		rules := strings.Split(f.Tag.Get("rule"), ",")
		in := field{
			name: name, index: i, required: slices.Contains(rules, "new"), fixed: slices.Contains(rules, "fixed"),
			omitZero: option == "omitzero",
		}
		for _, column := range []string{f.Tag.Get("row"), f.Name, f.Name + "ID"} { // the first of a fitting type
			to, ok := row.FieldByName(column)
			if ok && in.column == nil && plainType(value.Type).ConvertibleTo(plainType(to.Type)) {
				in.column, in.computed = to.Index, strings.Contains(to.Tag.Get("bun"), "scanonly")
			}
		}
		fields = append(fields, in)
	}
	return fields
}

// plainType returns the type of the values of a field or column: t without a pointer, and of a struct like domain.Time
// and domain.Ref the type of its only field, an exported one.
func plainType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).IsExported() {
		return t.Field(0).Type
	}
	return t
}

// plain returns the value of a field or column, of its plainType: the zero Value for a nil pointer, which is null.
func plain(v reflect.Value) reflect.Value {
	v = reflect.Indirect(v)
	if v.IsValid() && plainType(v.Type()) != v.Type() {
		return v.Field(0)
	}
	return v
}

// set sets a field or column to a plain value.
func set(to, value reflect.Value) {
	if !value.IsValid() {
		to.SetZero()
		return
	}
	if to.Kind() == reflect.Pointer {
		to.Set(reflect.New(to.Type().Elem()))
	}
	to = plain(to)
	to.Set(value.Convert(to.Type()))
}

// differs reports whether a column differs from a plain value. Null equals the zero value of a column that is no
// pointer.
func differs(column, value reflect.Value) bool {
	if !value.IsValid() {
		return !column.IsZero()
	}
	if column = plain(column); !column.IsValid() {
		return true
	}
	if at, ok := value.Interface().(time.Time); ok {
		return !at.Equal(column.Interface().(time.Time))
	}
	return !reflect.DeepEqual(column.Interface(), value.Convert(column.Type()).Interface())
}

// optional returns the field in an addressable record.
func (f *field) optional(record reflect.Value) domain.AnyOptional {
	return record.Field(f.index).Addr().Interface().(domain.AnyOptional)
}

// value returns the field's value in an addressable record, a pointer if it may be null. It is the zero Value if the
// field is omitted.
func (f *field) value(record reflect.Value) reflect.Value {
	if optional := f.optional(record); !optional.IsZero() {
		return reflect.ValueOf(optional.Pointer()).Elem()
	}
	return reflect.Value{}
}

// checkFields returns an error if a record lacks a field that a new object requires, or changes a fixed field of an
// existing object. Of fixed fields, those that are null or omitted do not count. before is nil for a new object.
func checkFields[Record, Row any](fields []field, record *Record, before *Row) error {
	for i := range fields {
		f := &fields[i]
		value := f.value(reflect.ValueOf(record).Elem())
		switch {
		case before == nil:
			if f.required && !value.IsValid() {
				return missing(f.name)
			}
		case f.fixed && f.column != nil && value.IsValid():
			column := reflect.ValueOf(before).Elem().FieldByIndex(f.column)
			if value = plain(value); value.IsValid() && differs(column, value) {
				return cannotChange(f.name)
			}
		}
	}
	return nil
}

// applyFields sets the columns of a row to the given values of its record. It does not touch a column that is already
// equal: a new pointer would make the rows differ.
func applyFields[Record, Row any](fields []field, record *Record, row *Row) {
	in, target := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	for i := range fields {
		f := &fields[i]
		if f.column == nil || f.computed {
			continue
		}
		value, column := f.value(in), target.FieldByIndex(f.column)
		if value.IsValid() && differs(column, plain(value)) {
			set(column, plain(value))
		}
	}
}

// recordOf returns the record of a row, with its id, if it has one, and the fields that have a column. NULL columns,
// and zero ones if the field is omitzero, are omitted.
func recordOf[Record, Row any](fields []field, row *Row) *Record {
	record := new(Record)
	target, source := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	if id := target.FieldByName("ID"); id.IsValid() { // a brand has none
		set(id, source.FieldByName("ID"))
	}
	for i := range fields {
		f := &fields[i]
		if f.column == nil {
			continue
		}
		column := source.FieldByIndex(f.column)
		if value := plain(column); value.IsValid() && !(f.omitZero && column.IsZero()) {
			set(reflect.ValueOf(f.optional(target).MarkGiven()).Elem(), value)
		}
	}
	return record
}

// idOf returns the id of a record, a domain.Ref.
func idOf[Record any](record *Record) reference {
	return reflect.ValueOf(record).Elem().FieldByName("ID").Interface().(reference)
}
