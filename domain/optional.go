package domain

// Optional is a field of a body, or a field of a record, that may be absent, null or a value. All members of a PATCH
// are Optional, and so are other members whose zero value does not mean that they are absent. Only a nullable member,
// whose T is a pointer, accepts null; its Value is then nil.
type Optional[T any] struct {
	// Given is true if the member is not absent.
	Given bool
	Value T
}

// Give returns an Optional that gives the value.
func Give[T any](value T) Optional[T] { return Optional[T]{Given: true, Value: value} }

// Or returns the value, or other if none is given.
func (p Optional[T]) Or(other T) T {
	if p.Given {
		return p.Value
	}
	return other
}

// IsZero reports whether the member is absent.
func (p Optional[T]) IsZero() bool { return !p.Given }

// MarkGiven marks the member as given, and returns a pointer to its value.
func (p *Optional[T]) MarkGiven() any {
	p.Given = true
	return &p.Value
}

// Pointer returns, for AnyOptional, a *T: a pointer to the value, or nil if the member is absent.
func (p Optional[T]) Pointer() any {
	if !p.Given {
		return (*T)(nil)
	}
	return &p.Value
}

// Apply sets target to the value if the member is given, and reports whether that changed target.
func Apply[T comparable](p Optional[T], target *T) bool {
	if !p.Given || p.Value == *target {
		return false
	}
	*target = p.Value
	return true
}

// ApplyNullable sets target to the nullable value if the member is given, and reports whether that changed target.
// Pointers to equal values count as equal.
func ApplyNullable[T comparable](p Optional[*T], target **T) bool {
	if !p.Given || Same(p.Value, *target) {
		return false
	}
	*target = p.Value
	return true
}

// AnyOptional is a pointer to any Optional.
type AnyOptional interface {
	IsZero() bool
	MarkGiven() any
	Pointer() any
}

// OrNil returns a pointer to a value, or nil for the zero value. It is for nullable columns and members of JSON.
func OrNil[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// OrZero returns *pointer, or the zero value if pointer is nil.
func OrZero[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}
