package main

import "fmt"

// failure is the panic by which whatever belongs to a measure fails. It costs the
// measure's own row: try turns it into an error.
type failure struct{ error }

// check fails for an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must is a value without its error, for which it fails.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// fail fails with a text.
func fail(format string, args ...any) { check(fmt.Errorf(format, args...)) }

// try does something, and returns what it failed with.
func try(do func()) (err error) {
	defer func() {
		switch f := recover().(type) {
		case nil:
		case failure:
			err = f.error
		default:
			panic(f)
		}
	}()
	do()
	return nil
}
