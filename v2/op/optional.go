package op

import "reflect"

// optional is any domain.Optional.
type optional interface {
	IsZero() bool
	// Pointer is what the member's rules apply to: a pointer to the value, nil
	// where none is given.
	Pointer() any
}

// opener is a pointer to any domain.Optional.
type opener interface {
	// Open says that the member is there, and returns a pointer to its value.
	Open() any
}

// OptionalElement returns the type of the value of a domain.Optional, and whether it
// is nullable; nil for every other type.
func OptionalElement(t reflect.Type) (of reflect.Type, nullable bool) {
	if _, ok := reflect.Zero(t).Interface().(optional); !ok {
		return nil, false
	}
	value, _ := t.FieldByName("Value")
	if of = value.Type; of.Kind() == reflect.Pointer {
		return of.Elem(), true
	}
	return of, false
}
