//go:build slow

package directory_test

// histories is the number of histories that TestHistories plays.
const histories = 1000
