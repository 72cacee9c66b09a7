package idmap

import (
	"fmt"
	"strconv"

	"partnerapi/domain"
)

// ErrNumber is the error of decoding a Ref from text that cannot be an object's number.
const ErrNumber = domain.Fault("must be an integer from 1 to 2147483647")

// Ref is an object as v1's wire types name it: a number outside, an id inside.
// Decoding sets Number, and Resolve then ID; a translator sets ID, and Number
// then Number. The zero Ref names nothing.
//
// A Ref is a JSON integer, and in paths and queries a canonical decimal
// (decisions 5.4).
type Ref[K domain.Kind] struct {
	Number int64
	ID     domain.ID[K]
}

// RefTo returns a Ref to the object, its number still to be found.
func RefTo[K domain.Kind](id domain.ID[K]) Ref[K] { return Ref[K]{ID: id} }

// JSONSchema says what a Ref looks like, for documents.
func (Ref[K]) JSONSchema() string { return `{"type":"integer","minimum":1,"maximum":2147483647}` }

// TextRef is a Ref that is a decimal string in JSON, as v1's reports are.
type TextRef[K domain.Kind] struct {
	Number int64
	ID     domain.ID[K]
}

// MarshalJSON returns the number, 0 for the zero Ref. A Ref with an ID but no number is an
// error: 0 names no object.
func (r Ref[K]) MarshalJSON() ([]byte, error) {
	if r.Number == 0 && !r.ID.IsZero() {
		return nil, fmt.Errorf("%s %s is written before its number is known", r.ID.Noun(), r.ID)
	}
	return strconv.AppendInt(nil, r.Number, 10), nil
}

// UnmarshalJSON reads a canonical integer from 1 to MaxNumber, else returns ErrNumber.
// Null leaves the Ref as it is.
func (r *Ref[K]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return r.UnmarshalText(data)
}

// UnmarshalText reads a canonical decimal from 1 to MaxNumber, else ErrNumber.
func (r *Ref[K]) UnmarshalText(text []byte) error {
	number, ok := parseNumber(string(text))
	if !ok || number > MaxNumber {
		return ErrNumber
	}
	*r = Ref[K]{Number: number}
	return nil
}

// MarshalJSON gives the number in a string; see Ref.
func (r TextRef[K]) MarshalJSON() ([]byte, error) {
	number, err := Ref[K](r).MarshalJSON()
	if err != nil {
		return nil, err
	}
	return append(append([]byte{'"'}, number...), '"'), nil
}

// UnmarshalJSON reads a string that holds a canonical decimal, else ErrNumber.
// Null leaves the TextRef as it is.
func (r *TextRef[K]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return ErrNumber
	}
	return r.UnmarshalText(data[1 : len(data)-1])
}

// UnmarshalText reads a canonical decimal from 1 to MaxNumber, else ErrNumber.
func (r *TextRef[K]) UnmarshalText(text []byte) error { return (*Ref[K])(r).UnmarshalText(text) }

// parseNumber reads a positive integer that is written in the one canonical
// way: no sign, no leading zero, no fraction, no exponent. It may be above
// MaxNumber; above an int64 it is no number.
func parseNumber(text string) (int64, bool) {
	if text == "" || text[0] < '1' || text[0] > '9' {
		return 0, false
	}
	for _, digit := range []byte(text) {
		if digit < '0' || digit > '9' {
			return 0, false
		}
	}
	number, err := strconv.ParseInt(text, 10, 64)
	return number, err == nil
}

// A slot points to the number and the id of a Ref.
type slot struct {
	kind   Kind
	number *int64
	id     *UUID
	listed bool // it is in a slice or an array
}

// A referrer is a pointer to a Ref or TextRef of whatever kind.
type referrer interface {
	// slot returns a slot without a kind if the registry has no numbers for K.
	slot() slot
}

func (r *Ref[K]) slot() slot {
	var k K
	kind, _ := kindNamed(k.Noun())
	return slot{kind: kind, number: &r.Number, id: (*UUID)(&r.ID)}
}

func (r *TextRef[K]) slot() slot { return (*Ref[K])(r).slot() }

// JSONSchema says what a TextRef looks like, for documents.
func (TextRef[K]) JSONSchema() string { return `{"type":"string"}` }
