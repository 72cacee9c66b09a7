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
			if ok && in.column == nil && plainType(pointee(value.Type)).ConvertibleTo(pointee(to.Type)) {
				in.column, in.computed = to.Index, strings.Contains(to.Tag.Get("bun"), "scanonly")
			}
		}
		fields = append(fields, in)
	}
	return fields
}

// plainType returns the type of the only field, an exported one, of a struct like domain.Time and domain.Ref, and
// otherwise t.
func plainType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).IsExported() {
		return t.Field(0).Type
	}
	return t
}

// plain returns a field's value as a row has it: the only field of a struct like domain.Time, or else the value.
func plain(value reflect.Value) reflect.Value {
	if value.IsValid() && plainType(value.Type()) != value.Type() {
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
func (f *field) optional(record reflect.Value) domain.AnyOptional {
	return record.Field(f.index).Addr().Interface().(domain.AnyOptional)
}

// value returns the field's value in an addressable record. It is the zero Value if the field is null or left out.
// given is false if it is left out.
func (f *field) value(record reflect.Value) (value reflect.Value, given bool) {
	optional := f.optional(record)
	if optional.IsZero() { // left out
		return reflect.Value{}, false
	}
	value = reflect.ValueOf(optional.Pointer()).Elem()
	return reflect.Indirect(value), true // Indirect of a nil pointer, which is null, is the zero Value
}

// checkFields returns an error if a record lacks a field that a new object requires, or changes a fixed field of an
// existing object. Of fixed fields, those that are null or left out do not count. before is nil for a new object.
func checkFields[Record, Row any](fields []field, record *Record, before *Row) error {
	in := reflect.ValueOf(record).Elem()
	for i := range fields {
		f := &fields[i]
		value, given := f.value(in)
		switch {
		case before == nil && f.required && !given:
			return missing(f.name)
		case before != nil && f.fixed && f.column != nil && value.IsValid() &&
			differs(reflect.ValueOf(before).Elem().FieldByIndex(f.column), plain(value)):
			return cannotChange(f.name)
		}
	}
	return nil
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

// applyFields sets the columns of a row to the given values of its record. It does not touch a column that is already
// equal: a new pointer would make the rows differ.
func applyFields[Record, Row any](fields []field, record *Record, row *Row) {
	in, target := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	for i := range fields {
		f := &fields[i]
		if f.column == nil || f.computed {
			continue
		}
		value, given := f.value(in)
		column := target.FieldByIndex(f.column)
		switch value = plain(value); {
		case !given || !differs(column, value): // keep the column
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

// recordOf returns the record of a row, with its id and the fields that have a column. NULL columns, and zero ones if
// the field is omitzero, are left out.
func recordOf[Record, Row any](fields []field, row *Row) *Record {
	record := new(Record)
	target, source := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	id := target.FieldByName("ID").Field(0) // of a domain.Ref
	id.Set(source.FieldByName("ID").Convert(id.Type()))

	for i := range fields {
		f := &fields[i]
		if f.column == nil {
			continue
		}
		column := source.FieldByIndex(f.column)
		if f.omitZero && column.IsZero() || column.Kind() == reflect.Pointer && column.IsNil() {
			continue
		}
		value := reflect.ValueOf(f.optional(target).MarkGiven()).Elem()
		if value.Kind() == reflect.Pointer {
			value.Set(reflect.New(value.Type().Elem()))
			value = value.Elem()
		}
		value = plain(value)
		value.Set(reflect.Indirect(column).Convert(value.Type()))
	}
	return record
}

// idOf returns the id of a record, a domain.Ref.
func idOf[Record any](record *Record) reference {
	return reflect.ValueOf(record).Elem().FieldByName("ID").Interface().(reference)
}
