package idmap

import (
	"fmt"
	"strconv"

	"partnerapi/domain"
)

// ErrNumber is the error of decoding a Ref from a text that is not a valid number.
const ErrNumber = domain.Fault("must be an integer from 1 to 2147483647")

// Ref is a reference to an object in v1's wire types: requests and responses have its Number, and the service its ID.
// Decoding a request sets Number, from which Resolve sets ID; code that builds a response sets ID, from which the
// function Number sets Number. The zero Ref refers to no object.
//
// A Ref is an integer in JSON, and a canonical decimal number in paths and queries (decisions 5.4).
type Ref[K domain.Kind] struct {
	Number int64
	ID     domain.ID[K]
}

// RefTo returns a Ref to the object, without its number.
func RefTo[K domain.Kind](id domain.ID[K]) Ref[K] { return Ref[K]{ID: id} }

// JSONSchema returns the JSON Schema of a Ref.
func (Ref[K]) JSONSchema() string { return `{"type":"integer","minimum":1,"maximum":2147483647}` }

// TextRef is a Ref that is a decimal string in JSON, as the ids of v1's reports are.
type TextRef[K domain.Kind] struct {
	Number int64
	ID     domain.ID[K]
}

// MarshalJSON returns the number; 0 for the zero Ref. It returns an error for a Ref with an ID but without a number.
func (r Ref[K]) MarshalJSON() ([]byte, error) {
	if r.Number == 0 && !r.ID.IsZero() {
		return nil, fmt.Errorf("%s %s is written before its number is known", r.ID.Noun(), r.ID)
	}
	return strconv.AppendInt(nil, r.Number, 10), nil
}

// UnmarshalJSON parses an integer from 1 to MaxNumber, by UnmarshalText. It does not change the Ref for null.
func (r *Ref[K]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	return r.UnmarshalText(data)
}

// UnmarshalText parses a canonical decimal number from 1 to MaxNumber, and sets the ID to zero. It returns ErrNumber
// for any other text.
func (r *Ref[K]) UnmarshalText(text []byte) error {
	number, ok := parseNumber(string(text))
	if !ok || number > MaxNumber {
		return ErrNumber
	}
	*r = Ref[K]{Number: number}
	return nil
}

// MarshalJSON returns the number in a string. It returns an error for an ID without a number.
func (r TextRef[K]) MarshalJSON() ([]byte, error) {
	number, err := Ref[K](r).MarshalJSON()
	if err != nil {
		return nil, err
	}
	return append(append([]byte{'"'}, number...), '"'), nil
}

// UnmarshalJSON parses a string that holds a number from 1 to MaxNumber; ErrNumber for any other value. It does not
// change the TextRef for null.
func (r *TextRef[K]) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return ErrNumber
	}
	return r.UnmarshalText(data[1 : len(data)-1])
}

// UnmarshalText parses a canonical decimal number from 1 to MaxNumber.
func (r *TextRef[K]) UnmarshalText(text []byte) error { return (*Ref[K])(r).UnmarshalText(text) }

// parseNumber parses a positive integer in canonical form: without sign, leading zeros, fraction and exponent. It may
// be above MaxNumber. It returns false for any other text, and for a number above the highest int64.
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
	listed bool // whether the Ref is in a slice or an array
}

// A referrer is a pointer to a Ref or TextRef of any kind.
type referrer interface {
	// slot returns a slot without a kind if the registry has no numbers for K.
	slot() slot
}

func (r *Ref[K]) slot() slot {
	kind, _ := kindNamed(domain.ID[K]{}.Noun()) // 0, which walk refuses, for a kind without numbers
	return slot{kind: kind, number: &r.Number, id: (*UUID)(&r.ID)}
}

func (r *TextRef[K]) slot() slot { return (*Ref[K])(r).slot() }

// JSONSchema returns the JSON Schema of a TextRef.
func (TextRef[K]) JSONSchema() string { return `{"type":"string"}` }
