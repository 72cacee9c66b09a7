package domain

// OrNil returns a pointer to a value; nil for the zero value, as nullable columns and members of JSON have it.
func OrNil[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}

// OrZero returns what a pointer points to; the zero value for nil.
func OrZero[T any](pointer *T) (value T) {
	if pointer != nil {
		value = *pointer
	}
	return value
}
