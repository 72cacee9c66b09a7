package output

import (
	"fmt"
	"time"

	"partnerapi/domain"
)

// Counted is a number with the words for one or for many.
func Counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Shortly is Moment for a time as JSON has it.
func Shortly(t *domain.Time) string {
	if t == nil {
		return "-"
	}
	return Moment(&t.Time)
}

// Moment is a time for people, and a dash for none.
func Moment(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// Given is a value, or nil for the zero one.
func Given[T comparable](value T) *T {
	if value == *new(T) {
		return nil
	}
	return &value
}
