package transfer

import (
	"encoding"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"partnerapi/db/records"
)

// plan is how lines of one kind of object are read and written: the fields of its
// record, in their order, with their rules (domain.UserRecord and the others).
type plan struct {
	object string
	id     int
	fields []field
	byName map[string]*field
}

// field is a field of a record, with its rules.
type field struct {
	name  string
	index int
	list  bool // its value is one

	needed, fixed, null, filled, isName, email, past bool
	min, max                                         *int
}

// state is a pointer to any domain.Optional.
type state interface {
	IsZero() bool
	Open() any
	Pointer() any
}

// planOf makes the plan of records. A rule that it does not know is a programming
// error, which panics.
func planOf(r records.Kind) *plan {
	p := &plan{object: r.Object(), byName: map[string]*field{}}
	for i := range r.Type().NumField() {
		f := r.Type().Field(i)
		switch name, _, _ := strings.Cut(f.Tag.Get("record"), ","); name {
		case "":
		case "id":
			p.id = i
		default:
			value, _ := f.Type.FieldByName("Value")
			p.fields = append(p.fields, fieldOf(name, i, f.Tag.Get("rule")))
			p.fields[len(p.fields)-1].list = value.Type.Kind() == reflect.Slice
			p.fields[len(p.fields)-1].null = value.Type.Kind() == reflect.Pointer
		}
	}
	for i := range p.fields {
		p.byName[p.fields[i].name] = &p.fields[i]
	}
	return p
}

func fieldOf(name string, index int, rules string) field {
	f := field{name: name, index: index}
	flags := map[string]*bool{
		"new": &f.needed, "fixed": &f.fixed, "filled": &f.filled, "name": &f.isName,
		"email": &f.email, "past": &f.past,
	}
	for rule := range strings.SplitSeq(rules, ",") {
		word, bound, bounded := strings.Cut(rule, "=")
		switch {
		case rule == "":
		case flags[word] != nil && !bounded:
			*flags[word] = true
		case bounded && (word == "min" || word == "max"):
			n, err := strconv.Atoi(bound)
			if err != nil {
				panic(err)
			}
			if word == "min" {
				f.min = &n
			} else {
				f.max = &n
			}
		default:
			panic(fmt.Sprintf("%s has the unknown rule %q", name, rule))
		}
	}
	return f
}

// state is the field in a record, which is addressable.
func (f *field) state(record reflect.Value) state {
	return record.Field(f.index).Addr().Interface().(state)
}

// readID reads the id of a record, which is addressable.
func (p *plan) readID(record reflect.Value, text string) error {
	return record.Field(p.id).Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
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
