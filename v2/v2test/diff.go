package v2test

import "strings"

// Diff shows how a text differs from the one that was wanted: lines of both between the
// first and the last that differ, after "-" and "+".
func Diff(want, got string) string {
	before, after := strings.Split(want, "\n"), strings.Split(got, "\n")
	same := 0
	for same < min(len(before), len(after)) && before[same] == after[same] {
		same++
	}
	before, after = before[same:], after[same:]
	for len(before) > 0 && len(after) > 0 && before[len(before)-1] == after[len(after)-1] {
		before, after = before[:len(before)-1], after[:len(after)-1]
	}
	var b strings.Builder
	for _, line := range before {
		b.WriteString("-" + line + "\n")
	}
	for _, line := range after {
		b.WriteString("+" + line + "\n")
	}
	return b.String()
}
