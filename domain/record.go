package domain

import (
	"fmt"
	"strings"
)

// A record describes an object in a line of an import or an export (decisions 10). It has the object's id, and the
// fields that the line gives.

// Ref is an id in a record: a UUID in upper or lower case, or an id in the form of v2.
type Ref[K Kind] struct{ ID[K] }

// RefTo returns a reference to the object with an id.
func RefTo[K Kind](id ID[K]) Ref[K] { return Ref[K]{id} }

// UnmarshalText parses a UUID, or an id of this kind in the form of v2. The zero UUID is not valid. The error is a
// Fault that names both forms.
func (r *Ref[K]) UnmarshalText(text []byte) error {
	var id ID[K]
	if !id.SetUUID(string(text)) && (id.UnmarshalText(text) != nil || id.IsZero()) {
		return Fault(fmt.Sprintf("must be a UUID, or %s_ and %d characters", r.Prefix(), digits))
	}
	r.ID = id
	return nil
}

// MarshalText returns the id in the form of v2, or the UUID for a kind whose ids v2 does not show. It never fails.
func (r Ref[K]) MarshalText() ([]byte, error) {
	if r.hidden() {
		return []byte(r.UUID()), nil
	}
	return r.ID.MarshalText()
}

// String returns the id like MarshalText.
func (r Ref[K]) String() string {
	text, _ := r.MarshalText()
	return string(text)
}

// hidden reports whether v2 shows no ids of this kind (decisions 1.2).
func (r Ref[K]) hidden() bool {
	switch r.Prefix() {
	case PartnerID{}.Prefix(), MessageID{}.Prefix(), ExposureID{}.Prefix(), TrainingID{}.Prefix():
		return true
	}
	return false
}

// AnyRef is the id of an object that may be a client, a group or a collection. Prefix is the prefix of the kind; it is
// empty if a record has a UUID, so that the kind is unknown.
type AnyRef struct {
	Prefix string
	UUID   [16]byte
}

// AnyRefTo returns a reference to the object with an id.
func AnyRefTo[K Kind](id ID[K]) AnyRef { return AnyRef{id.Prefix(), id} }

// RefAs returns the reference as an id of kind K, also if the kind of the reference is unknown. If it is of another
// kind, RefAs returns zero and false.
func RefAs[K Kind](r AnyRef) (id ID[K], ok bool) {
	if ok = r.Prefix == "" || r.Prefix == id.Prefix(); ok {
		id = r.UUID
	}
	return id, ok
}

// UnmarshalText parses a UUID, or an id of a client, a group or a collection in the form of v2. The zero UUID is not
// valid.
func (r *AnyRef) UnmarshalText(text []byte) error {
	uuid, err := ParseUUID[GroupKind](strings.ToLower(string(text))) // the kind does not matter
	*r = AnyRef{UUID: uuid}
	for _, parse := range []func(string) (AnyRef, error){parseAny[ClientKind], parseAny[GroupKind], parseAny[CollectionKind]} {
		if err != nil { // it is neither a UUID nor an id of the kinds before
			*r, err = parse(string(text))
		}
	}
	if err != nil || r.UUID == [16]byte{} {
		return Fault("must be a UUID or an ID from the API")
	}
	return nil
}

// parseAny parses an id of kind K in the form of v2.
func parseAny[K Kind](text string) (AnyRef, error) {
	id, err := ParseID[K](text)
	return AnyRefTo(id), err
}

// MarshalText returns the id in the form of v2, or as a UUID if its kind is unknown. It never fails.
func (r AnyRef) MarshalText() ([]byte, error) {
	if r.Prefix == "" {
		return []byte(GroupID(r.UUID).UUID()), nil // the text of a UUID is the same for all kinds
	}
	return appendID(nil, r.Prefix, r.UUID), nil
}

// ImportOutcome is the outcome of a record.
type ImportOutcome uint8

// The outcomes. A record that changes nothing is unchanged, and writes nothing.
const (
	ImportRefused ImportOutcome = iota
	ImportCreated
	ImportUpdated
	ImportUnchanged
)

// ImportResult is the result of a record.
type ImportResult struct {
	Outcome ImportOutcome
	// Refusal is the reason, for the operator, why a record is refused.
	Refusal string
	// Clashes is true if a record is refused because another object has its name or address. A later record may free
	// the name, so the record may be tried again.
	Clashes bool
}

// RefuseImport returns the result of a refused record.
func RefuseImport(format string, args ...any) ImportResult {
	return ImportResult{Refusal: fmt.Sprintf(format, args...)}
}
