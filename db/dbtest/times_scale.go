//go:build scale

package dbtest

const often = true
