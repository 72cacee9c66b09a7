package op

import (
	"reflect"
	"strings"

	"partnerapi/domain"
)

// IDList is a comma-separated list of ids. Given counts also items that are no id of the kind: no such object exists.
type IDList[K domain.Kind] struct {
	IDs   []domain.ID[K]
	Given int // the number of items, valid or not
}

// MaxIDs is the maximum number of ids in a list (decisions 3.4).
const MaxIDs = 500

// MaxItems returns the maximum number of ids.
func (*IDList[K]) MaxItems() int { return MaxIDs }

// UnmarshalText reads the list. It skips blank items, counts the others as Given, and keeps the ids. It never fails.
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

// AppendText appends the IDs as UnmarshalText reads them. It never fails.
func (l *IDList[K]) AppendText(b []byte) ([]byte, error) {
	for i, id := range l.IDs {
		if i > 0 {
			b = append(b, ',')
		}
		b, _ = id.AppendText(b)
	}
	return b, nil
}

// OneOf is a wire type with several forms, which is posted to webhooks. A member that all forms have identifies them.
// Documents describe the type as an object with the common fields, so that a caller may meet a form that it does not know, and
// each form as the body of a webhook.
type OneOf interface {
	// Forms returns the name of that member, and the forms. It is called on the zero value.
	Forms() (member string, forms []Form)
}

// Form is one of the forms of a type.
type Form struct {
	// Value is the form's value of the member that tells the forms apart, such as user.created.
	Value string
	// About says when it is posted.
	About string
	Type  reflect.Type
	// Since is the first release with the form; zero for the release of the type.
	Since Release
}
