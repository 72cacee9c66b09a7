package db

import (
	"reflect"
	"strings"
	"sync"
	"time"

	"partnerapi/domain"
)

// pair is a field of a record that is a column of its object's row, by its name in Go:
// the same, with ID behind it for a reference, or that of the tag row.
type pair struct {
	name  string // in lines
	field int    // of the record
	row   []int  // the place in the row
	fixed bool
	// computed says that a query fills the column, for an export alone.
	computed bool
	// omitZero says that an export leaves a zero out.
	omitZero bool
}

var pairLists sync.Map // of the types of record and row to []pair

// pairsOf are the pairs of a record and a row.
func pairsOf(record, row reflect.Type) (list []pair) {
	types := [2]reflect.Type{record, row}
	if known, ok := pairLists.Load(types); ok {
		return known.([]pair)
	}
	for i := range record.NumField() {
		f := record.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("record"), ",")
		value, isField := f.Type.FieldByName("Value")
		if !isField || name == "" {
			continue
		}
		for _, column := range []string{f.Tag.Get("row"), f.Name, f.Name + "ID"} {
			to, ok := row.FieldByName(column)
			if !ok || !plainType(value.Type).ConvertibleTo(pointee(to.Type)) {
				continue
			}
			list = append(list, pair{
				name: name, field: i, row: to.Index, omitZero: option == "omitzero",
				computed: strings.Contains(to.Tag.Get("bun"), "scanonly"),
				fixed:    strings.Contains(","+f.Tag.Get("rule")+",", ",fixed,"),
			})
			break
		}
	}
	pairLists.Store(types, list)
	return list
}

// plainType is what rows have for the type of a field: the time of a domain.Moment, the
// id of a domain.Ref.
func plainType(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Struct && t.NumField() == 1 {
		return t.Field(0).Type
	}
	return t
}

func pointee(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// value is what a record says of a column, as rows have it. It is not valid for null,
// and given is false where the record says nothing.
func (p *pair) value(record reflect.Value) (value reflect.Value, given bool) {
	field := record.Field(p.field)
	if !field.FieldByName("Given").Bool() || field.FieldByName("Null").Bool() {
		return reflect.Value{}, field.FieldByName("Given").Bool()
	}
	value = field.FieldByName("Value")
	if plainType(value.Type()) != value.Type() {
		value = value.Field(0)
	}
	return value, true
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

// applyFields sets what a record says of its row's columns. What is the same stays as
// it is, so that rows can be compared.
func applyFields[Record, Row any](record *Record, row *Row) {
	from, into := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	for _, p := range pairsOf(from.Type(), into.Type()) {
		value, given := p.value(from)
		column := into.FieldByIndex(p.row)
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

// changedFixed is the fixed field of a record that says another thing than what is
// there; empty for none.
func changedFixed[Record, Row any](record *Record, row *Row) string {
	from, of := reflect.ValueOf(record).Elem(), reflect.ValueOf(row).Elem()
	for _, p := range pairsOf(from.Type(), of.Type()) {
		if value, _ := p.value(from); p.fixed && value.IsValid() && differs(of.FieldByIndex(p.row), value) {
			return p.name
		}
	}
	return ""
}

// recordOf is a row as a record, without what its columns do not say.
func recordOf[Record, Row any](row *Row) (record Record) {
	into, from := reflect.ValueOf(&record).Elem(), reflect.ValueOf(row).Elem()
	setID(into.FieldByName("ID").Field(0), from)
	for _, p := range pairsOf(into.Type(), from.Type()) {
		column := from.FieldByIndex(p.row)
		if p.omitZero && column.IsZero() || column.Kind() == reflect.Pointer && column.IsNil() {
			continue
		}
		column = reflect.Indirect(column)
		field := into.Field(p.field)
		field.FieldByName("Given").SetBool(true)
		switch value := field.FieldByName("Value"); at := value.Addr().Interface().(type) {
		case *domain.Moment:
			*at = domain.MomentOf(column.Interface().(time.Time))
		default:
			if plainType(value.Type()) != value.Type() {
				value = value.Field(0)
			}
			value.Set(column.Convert(value.Type()))
		}
	}
	return record
}

// setID sets an id to that of a row, or of a record.
func setID(id, of reflect.Value) {
	from := of.FieldByName("ID")
	if from.Kind() == reflect.Struct {
		from = from.Field(0) // of a domain.Ref
	}
	id.Set(from.Convert(id.Type()))
}
