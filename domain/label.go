package domain

import "sync"

// OtherLabel is the value that Labels gives to those that have none of their own.
const OtherLabel = "others"

// Labels bounds the values of a metric's label: each is a series, which is kept until
// the process ends. The first values are kept as they are, those after them are one. It
// is safe for concurrent use.
type Labels struct {
	most int
	mu   sync.Mutex
	seen map[string]bool
}

// NewLabels returns labels of at most that many values, and of OtherLabel.
func NewLabels(most int) *Labels { return &Labels{most: most, seen: map[string]bool{}} }

// Of is the label of a value: itself, or OtherLabel.
func (l *Labels) Of(value string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[value] && len(l.seen) >= l.most {
		return OtherLabel
	}
	l.seen[value] = true
	return value
}
