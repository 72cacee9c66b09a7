package doctor

// Counters are the names of all stored counts.
func Counters() (names []string) {
	for _, c := range storedCounts {
		names = append(names, c.name)
	}
	return append(names, policyCounter)
}
