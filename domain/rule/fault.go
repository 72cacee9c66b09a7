package rule

import (
	"strings"

	"partnerapi/domain"
)

// maxFaults is the maximum number of faults in Faults.
const maxFaults = 100

// maxPath is the length to which the path of a field is cut, in bytes: callers choose the names of unknown fields.
const maxPath = 500

// Whole is the field of a fault that concerns the whole input.
const Whole = "body"

// Faults collects the faults of an input: the first fault of each field. The zero value is empty.
type Faults struct {
	list []domain.FieldError
	// hasFault holds the fields in list.
	hasFault map[string]bool
	// blank maps each member that is null or blank to the message of its fault if it is required: the rules cannot
	// distinguish such a member from an absent one.
	blank map[string]string
}

// Add adds the fault of a field, unless the field has a fault already, or there are maxFaults. A path longer than
// maxPath is cut.
func (f *Faults) Add(field, message string) {
	if len(field) > maxPath {
		field = strings.ToValidUTF8(field[:maxPath], "") + "…"
	}
	if len(f.list) >= maxFaults || f.hasFault[field] {
		return
	}
	if f.hasFault == nil {
		f.hasFault = map[string]bool{}
	}
	f.hasFault[field] = true
	f.list = append(f.list, domain.FieldError{Field: field, Message: message})
}

// List returns the faults in the order in which they were added.
func (f *Faults) List() []domain.FieldError { return f.list }

// Err returns the faults as one error; nil for none.
func (f *Faults) Err() error { return domain.ErrInvalidFields(f.list) }

// truncate removes the faults after the first n.
func (f *Faults) truncate(n int) {
	for _, fault := range f.list[n:] {
		delete(f.hasFault, fault.Field)
	}
	f.list = f.list[:n]
}

// hasParentFault reports whether an object or array that contains the field has a fault: for inner.list[3], inner.list
// or inner.
func (f *Faults) hasParentFault(field string) bool {
	for {
		cut := strings.LastIndexAny(field, ".[")
		if cut < 0 {
			return false
		}
		if field = field[:cut]; f.hasFault[field] {
			return true
		}
	}
}

// markBlank records that a member is null or blank, with the message of its fault if it is required.
func (f *Faults) markBlank(field, message string) {
	if f.blank == nil {
		f.blank = map[string]string{}
	}
	f.blank[field] = message
}
