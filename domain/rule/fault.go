package rule

import (
	"strings"

	"partnerapi/domain"
)

// maxFaults is the maximum number of faults that are kept of one text.
const maxFaults = 100

// maxPath is the length at which the path of an unknown member is cut, in bytes.
const maxPath = 500

// Whole is the field of a fault of a text as a whole.
const Whole = "body"

// Faults collects what is wrong with an input: the first fault of each field. The zero value is empty.
type Faults struct {
	list  []domain.FieldError
	named map[string]bool
	// blank maps each member given as null or as the zero value of its type to its
	// fault if it is required. A rule cannot distinguish it from an absent one.
	blank map[string]string
}

// Add adds what is wrong with a field, unless that has a fault already.
func (f *Faults) Add(field, message string) {
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

// List returns the faults in the order in which they were added.
func (f *Faults) List() []domain.FieldError { return f.list }

// Err returns the faults as one error; nil for none.
func (f *Faults) Err() error {
	if len(f.list) == 0 {
		return nil
	}
	return domain.ErrInvalidFields(f.list)
}

// truncate drops the faults after the first n.
func (f *Faults) truncate(n int) {
	for _, fault := range f.list[n:] {
		delete(f.named, fault.Field)
	}
	f.list = f.list[:n]
}

// hasParentFault reports whether a fault of what holds the field is known: of inner or
// inner.list for inner.list[3].
func (f *Faults) hasParentFault(field string) bool {
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

func (f *Faults) markBlank(field, message string) {
	if f.blank == nil {
		f.blank = map[string]string{}
	}
	f.blank[field] = message
}
