package domain

import "sync"

// OtherLabel is the label of values beyond the limit of Labels.
const OtherLabel = "others"

// Labels bounds the number of values of a metric's label, because each value is a series that is kept until the process
// ends. The first values are used as labels, and all later values share OtherLabel. It is safe for concurrent use.
type Labels struct {
	most int
	mu   sync.Mutex
	seen map[string]bool
}

// NewLabels returns Labels that keep the given number of values besides OtherLabel.
func NewLabels(most int) *Labels { return &Labels{most: most, seen: map[string]bool{}} }

// Of returns the label of a value: the value itself or, if it is new and the limit is reached, OtherLabel.
func (l *Labels) Of(value string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[value] && len(l.seen) >= l.most {
		return OtherLabel
	}
	l.seen[value] = true
	return value
}
