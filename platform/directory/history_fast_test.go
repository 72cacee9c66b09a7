//go:build !slow

package directory_test

// histories is the number of histories that TestHistories plays. With the build tag slow there are more.
const histories = 12
