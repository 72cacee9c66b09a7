package main

import "fmt"

// failure is the panic by which a measure fails. It costs the measure's own row: try turns it into an error.
type failure struct{ error }

// check fails for an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must returns a value, or fails for an error.
func must[T any](value T, err error) T {
	check(err)
	return value
}

// fail fails with a text.
func fail(format string, args ...any) { check(fmt.Errorf(format, args...)) }

// try calls do, and returns the error with which it failed.
func try(do func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = f.error
		}
	}()
	do()
	return nil
}
