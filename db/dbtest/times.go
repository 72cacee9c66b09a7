package dbtest

// Times returns how often a test of the build tag slow repeats what may fail by chance: n times with the build tag scale,
// as make test-nightly does, otherwise a fifth of that, at least once.
func Times(n int) int {
	if often {
		return n
	}
	return max(1, n/5)
}
