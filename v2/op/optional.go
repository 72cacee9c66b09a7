package op

import (
	"reflect"

	"partnerapi/domain"
)

// Optional is a member of a body that may be absent, null or a value: all of a
// PATCH's, and those of others for which no value can stand for their absence.
// Null is taken only by a nullable member, whose T is a pointer; it is then a
// Value of nil.
type Optional[T any] struct {
	// Given says that the member is there.
	Given bool
	Value T
}

// Give returns an Optional that gives the value.
func Give[T any](value T) Optional[T] { return Optional[T]{Given: true, Value: value} }

// Apply sets target where the member was given, and reports whether that
// changed it.
func Apply[T comparable](p Optional[T], target *T) bool {
	if !p.Given || p.Value == *target {
		return false
	}
	*target = p.Value
	return true
}

// ApplyNullable is Apply for a nullable member: it compares what the pointers
// point to.
func ApplyNullable[T comparable](p Optional[*T], target **T) bool {
	if !p.Given || domain.Same(p.Value, *target) {
		return false
	}
	*target = p.Value
	return true
}

// optionalTarget is a pointer to any Optional.
type optionalTarget interface {
	// give says that the member is there, and returns a pointer to its value.
	give() any
}

func (p *Optional[T]) give() any {
	p.Given = true
	return &p.Value
}

// optional is any Optional.
type optional interface {
	given() bool
	// rules is what the member's rules apply to: a pointer to the value, nil
	// where none is given.
	rules() any
	// element is the type of the value, without its pointer.
	element() (t reflect.Type, nullable bool)
}

func (p Optional[T]) given() bool { return p.Given }

func (p Optional[T]) rules() any {
	if !p.Given {
		return (*T)(nil)
	}
	return &p.Value
}

func (p Optional[T]) element() (reflect.Type, bool) {
	t := reflect.TypeFor[T]()
	if t.Kind() == reflect.Pointer {
		return t.Elem(), true
	}
	return t, false
}

// OptionalElement returns the type of the value, and whether it is nullable;
// nil for every other type.
func OptionalElement(t reflect.Type) (reflect.Type, bool) {
	if p, ok := reflect.Zero(t).Interface().(optional); ok {
		return p.element()
	}
	return nil, false
}
