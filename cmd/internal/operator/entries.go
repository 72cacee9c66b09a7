package operator

import (
	"encoding/json"
	"fmt"
)

// entry is one of a file's list, in which each has a name of its own.
type entry interface{ name() string }

// eachEntry reads a JSON list and gives its entries to take, in their order. It
// returns what is wrong with those that are no such entry, have the name of one
// before them, or are refused by take. Only a text that is no JSON list is an
// error, which says of what it should be one.
func eachEntry[E entry](text []byte, what string, take func(E) error) (faults []error, err error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(text, &entries); err != nil {
		return nil, fmt.Errorf("not a JSON list of %s: %w", what, err)
	}
	taken := map[string]int{}
	for i, raw := range entries {
		var e E
		err := json.Unmarshal(raw, &e)
		if first := taken[e.name()]; err == nil && first > 0 {
			err = fmt.Errorf("has the name of entry %d", first)
		}
		if err == nil {
			err = take(e)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("entry %d (%.80q): %w", i+1, e.name(), err))
			continue
		}
		taken[e.name()] = i + 1
	}
	return faults, nil
}
