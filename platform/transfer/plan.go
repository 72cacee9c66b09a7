package transfer

import (
	"reflect"
	"strings"
	"time"

	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// plan defines how lines of one kind of object are read and written: the fields of its
// record (such as domain.UserRecord) in their order, and its rules.
type plan struct {
	object string // the name of the kind in lines
	id     int    // the index of the field ID in the record
	fields []field
	rules  *rule.Rules
}

// field is a field of a record.
type field struct {
	name  string // in lines
	index int
	list  bool // its value is a list
}

// planOf returns the plan of a kind of records. Their fields, other than the id, are domain.Optional.
func planOf(r records.Kind) *plan {
	p := &plan{object: r.Object(), rules: rule.Of(r.Type())}
	for i := range r.Type().NumField() {
		f := r.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "id" {
			p.id = i
			continue
		}
		value, _ := f.Type.FieldByName("Value")
		p.fields = append(p.fields, field{name, i, value.Type.Kind() == reflect.Slice})
	}
	return p
}

// read reads a line into a record, a pointer, and adds its faults to f. If it is a JSON object, read also checks the
// rules as of now. It returns only errors of this check itself.
func (p *plan) read(text []byte, record any, now time.Time, f *rule.Faults) error {
	if (rule.Reader{Skip: "object"}).Read(text, record, f) == nil {
		return nil
	}
	return p.rules.Check(record, now, f)
}

// value returns the field of a record, which must be addressable.
func (f *field) value(record reflect.Value) domain.AnyOptional {
	return record.Field(f.index).Addr().Interface().(domain.AnyOptional)
}

// idOf returns the UUID of the object of a record, a pointer.
func (p *plan) idOf(record any) [16]byte {
	return reflect.ValueOf(record).Elem().Field(p.id).Interface().(interface{ Bytes() [16]byte }).Bytes()
}

// items returns the number of items in all lists of a record.
func (p *plan) items(record any) (n int) {
	for i := range p.fields {
		if f := &p.fields[i]; f.list {
			n += reflect.ValueOf(record).Elem().Field(f.index).FieldByName("Value").Len()
		}
	}
	return n
}
