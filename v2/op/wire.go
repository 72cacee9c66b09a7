package op

import (
	"reflect"
	"strings"

	"partnerapi/domain"
)

// IDList is a comma-separated list of ids. Texts that are no id of the kind
// are remembered by their number only: such an object does not exist.
type IDList[K domain.Kind] struct {
	IDs   []domain.ID[K]
	Given int // how many were given, readable or not
}

// MaxIDs is how many ids a list may hold (decisions 3.4).
const MaxIDs = 500

// MaxItems is how many ids the list may hold.
func (*IDList[K]) MaxItems() int { return MaxIDs }

// UnmarshalText reads the list; an empty text is an empty list.
func (l *IDList[K]) UnmarshalText(text []byte) error {
	l.IDs, l.Given = []domain.ID[K]{}, 0
	for item := range strings.SplitSeq(string(text), ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		l.Given++
		if id, err := domain.ParseID[K](item); err == nil {
			l.IDs = append(l.IDs, id)
		}
	}
	return nil
}

// AppendText appends the list as UnmarshalText reads it, without what could not be
// read. It never fails.
func (l *IDList[K]) AppendText(b []byte) ([]byte, error) {
	for i, id := range l.IDs {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = id.AppendText(b)
	}
	return b, nil
}

// OneOf is a wire type that has one of several forms, and is posted to webhooks. A
// member, which each form has, says which it is.
type OneOf interface {
	// Forms returns the name of that member, and the forms. The zero value must be
	// able to.
	Forms() (member string, forms []Form)
}

// Form is one of the forms of a type.
type Form struct {
	// Value is that of the member which tells the forms apart, such as user.created.
	Value string
	// About says when it is posted.
	About string
	Type  reflect.Type
}
