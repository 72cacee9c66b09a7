package op

import (
	"strings"

	"partnerapi/domain"
)

// maxFaults is how many faults of one request are named at the most.
const maxFaults = 100

// faults collects what is wrong with a request, the first fault of each field.
type faults struct {
	list  []domain.FieldError
	named map[string]bool
	// blank says of members that are given, but as null or as the zero value of
	// their type, what is wrong with them if they are required. A rule cannot
	// distinguish them from absent ones.
	blank map[string]string
}

// maxPath is the length at which the path of an unknown member is cut, in bytes.
const maxPath = 500

func (f *faults) add(field, message string) {
	if len(field) > maxPath {
		field = strings.ToValidUTF8(field[:maxPath], "") + "…"
	}
	if len(f.list) >= maxFaults || f.named[field] {
		return
	}
	if f.named == nil {
		f.named = map[string]bool{}
	}
	f.named[field] = true
	f.list = append(f.list, domain.FieldError{Field: field, Message: message})
}

// truncate forgets the faults after the first n.
func (f *faults) truncate(n int) {
	for _, fault := range f.list[n:] {
		delete(f.named, fault.Field)
	}
	f.list = f.list[:n]
}

// hasParentFault reports whether a fault of what holds the field is known: of inner or
// inner.list for inner.list[3].
func (f *faults) hasParentFault(field string) bool {
	for {
		cut := strings.LastIndexAny(field, ".[")
		if cut < 0 {
			return false
		}
		if field = field[:cut]; f.named[field] {
			return true
		}
	}
}

func (f *faults) markBlank(field, message string) {
	if f.blank == nil {
		f.blank = map[string]string{}
	}
	f.blank[field] = message
}

// err is the faults as one error; nil for none.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return domain.ErrInvalidFields(f.list)
}
