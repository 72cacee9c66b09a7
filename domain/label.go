package domain

import "sync"

// OtherLabel is the label of values for which Labels has no room.
const OtherLabel = "others"

// Labels bounds the values of a metric's label: each value is a series, which is kept
// until the process ends. The first values are labels of their own, later ones share
// OtherLabel. It is safe for concurrent use.
type Labels struct {
	most int
	mu   sync.Mutex
	seen map[string]bool
}

// NewLabels returns Labels that keep the given number of values besides OtherLabel.
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
