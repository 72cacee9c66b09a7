package transfer

import (
	"reflect"
	"strings"
	"time"

	"partnerapi/db/records"
	"partnerapi/domain"
	"partnerapi/domain/rule"
)

// plan is how lines of one kind of object are read and written: the fields of its
// record, in their order, and its rules (domain.UserRecord and the others).
type plan struct {
	object string
	id     int
	fields []field
	rules  *rule.Rules
}

// field is a field of a record.
type field struct {
	name  string
	index int
	list  bool // its value is one
}

// planOf makes the plan of records.
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

// read reads a line into a record, a pointer, and adds what is wrong with it as of now to f.
func (p *plan) read(text []byte, record any, now time.Time, f *rule.Faults) error {
	if (rule.Reader{Skip: "object"}).Read(text, record, f) == nil {
		return nil
	}
	return p.rules.Check(record, now, f)
}

// value is the field in a record, which is addressable.
func (f *field) value(record reflect.Value) domain.AnyOptional {
	return record.Field(f.index).Addr().Interface().(domain.AnyOptional)
}

// idOf is the UUID of the object of a record.
func (p *plan) idOf(record any) [16]byte {
	return reflect.ValueOf(record).Elem().Field(p.id).Interface().(interface{ Bytes() [16]byte }).Bytes()
}

// items is how many items the lists of a record have.
func (p *plan) items(record any) (n int) {
	for i := range p.fields {
		if f := &p.fields[i]; f.list {
			n += reflect.ValueOf(record).Elem().Field(f.index).FieldByName("Value").Len()
		}
	}
	return n
}
