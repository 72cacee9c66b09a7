package output

import (
	"strings"

	"partnerapi/domain"
)

// DidYouMean ends an error about a name that nothing has: with the name that is likely
// meant, or empty where none is.
func DidYouMean(name string, names []string) string {
	key, byKey := domain.SortKey(name), make(map[string]string, len(names))
	keys := make([]string, len(names))
	for i, n := range names {
		keys[i] = domain.SortKey(n)
		byKey[keys[i]] = n
	}
	likely := Nearest(key, keys, Mistakes(key))
	for i := 0; likely == "" && key != "" && i < len(keys); i++ {
		if strings.Contains(keys[i], key) {
			likely = keys[i]
		}
	}
	if likely == "" {
		return ""
	}
	return ", did you mean \"" + byKey[likely] + "\"?"
}

// Mistakes is how many edits may lead from what was typed to what is meant.
func Mistakes(typed string) int { return max(1, len(typed)/3) }

// Nearest is the first word of those that the fewest edits lead to, where those are at
// most at the most; else empty.
func Nearest(word string, words []string, most int) string {
	best, least := "", most+1
	for _, w := range words {
		if d := len(w) - len(word); d >= least || -d >= least {
			continue
		}
		if d := edits(word, w); d < least {
			best, least = w, d
		}
	}
	return best
}

// edits is the Levenshtein distance of two words, in bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
