package output

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"partnerapi/domain"
)

// Plural formats a number, followed by the word one if it is 1, otherwise by the word many.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Grouped formats a count with a comma between thousands.
func Grouped(n int64) string {
	sign, text := "", fmt.Sprint(n)
	if n < 0 {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// Wrap breaks a text at spaces, so that no line is longer than width unless a word is. The first line begins in the
// column indent, and the others are indented by it.
func Wrap(text string, width, indent int) string {
	var out strings.Builder
	column := indent
	for i, word := range strings.Fields(text) {
		length := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			column--
		case column+1+length > width:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent - 1
		default:
			out.WriteByte(' ')
		}
		out.WriteString(word)
		column += 1 + length
	}
	return out.String()
}

// ShortTime formats a time of a JSON object for people; a dash for nil.
func ShortTime(t *domain.Time) string {
	if t == nil {
		return "-"
	}
	return FormatTime(&t.Time)
}

// FormatTime formats a time for people; a dash for nil.
func FormatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04Z")
}

// DidYouMean returns the end of an error about an unknown name: a question with the nearest name within MaxEdits,
// otherwise with the first one that contains the unknown name. It is empty if there is no such name.
func DidYouMean(name string, names []string) string {
	key, byKey := domain.SortKey(name), make(map[string]string, len(names))
	keys := make([]string, len(names))
	for i, n := range names {
		keys[i] = domain.SortKey(n)
		byKey[keys[i]] = n
	}
	likely := Nearest(key, keys, MaxEdits(key))
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

// MaxEdits returns the maximum edit distance of a suggestion from the typed text: a third of its bytes, at least 1.
func MaxEdits(typed string) int { return max(1, len(typed)/3) }

// Nearest returns the first of the words with the least edit distance from word; empty if none is within maxEdits.
func Nearest(word string, words []string, maxEdits int) string {
	best, least := "", maxEdits+1
	for _, w := range words {
		if d := len(w) - len(word); d >= least || -d >= least {
			continue // the distance is at least the difference of the lengths
		}
		if d := domain.EditDistance(word, w); d < least {
			best, least = w, d
		}
	}
	return best
}
