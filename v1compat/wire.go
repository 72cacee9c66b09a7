package v1compat

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/op"
)

// Time is a point in time as v1 writes it: ISO 8601, UTC, whole seconds.
type Time struct{ time.Time }

func at(t domain.Time) Time { return Time{t.Time} }

// MarshalJSONTo writes the time.
func (t Time) MarshalJSONTo(enc *jsontext.Encoder) error {
	b := t.UTC().AppendFormat(append(enc.AvailableBuffer(), '"'), time.RFC3339)
	return enc.WriteValue(append(b, '"'))
}

// JSONSchema says what the time looks like, for the document.
func (Time) JSONSchema() string {
	return `{"type":"string","format":"date-time","example":"2026-01-31T08:00:00Z"}`
}

// UUID is an object that v1 names by its UUID: a user, an admin, a message.
type UUID[K domain.Kind] struct{ ID domain.ID[K] }

func uuidOf[K domain.Kind](id domain.ID[K]) UUID[K] { return UUID[K]{id} }

// Noun is what the object is called.
func (u UUID[K]) Noun() string { return u.ID.Noun() }

// MarshalText returns the UUID in canonical lower case.
func (u UUID[K]) MarshalText() ([]byte, error) { return []byte(u.ID.UUID()), nil }

// UnmarshalText reads a UUID in any case (decisions 1.3).
func (u *UUID[K]) UnmarshalText(text []byte) (err error) {
	if u.ID, err = domain.ParseUUID[K](strings.ToLower(string(text))); err != nil {
		return faultText("must be a UUID")
	}
	return nil
}

// JSONSchema says what the id looks like, for the document.
func (UUID[K]) JSONSchema() string { return `{"type":"string","format":"uuid"}` }

// choice is an enum in a body. Absent and null are its zero value; every other
// text than the enum's values is refused, the empty one too (decisions 2.5).
type choice[E interface {
	~string
	op.Enum
}] string

// Values lists the values of the enum.
func (c choice[E]) Values() []string { return E(c).Values() }

// UnmarshalText reads a value.
func (c *choice[E]) UnmarshalText(text []byte) error {
	if !op.EnumHas(c, string(text)) {
		return faultText("must be one of " + strings.Join(c.Values(), ", "))
	}
	*c = choice[E](text)
	return nil
}

// faultText is what is wrong with a member of a body, in words for callers.
type faultText string

func (f faultText) Error() string { return string(f) }

// CallerMessage returns the words.
func (f faultText) CallerMessage() string { return string(f) }

// integer is an integer of a query, of any size: one that an int cannot hold is
// the nearest that it can.
type integer int

// JSONSchema says what the integer looks like, for the document.
func (integer) JSONSchema() string { return `{"type":"integer"}` }

// UnmarshalText reads a decimal.
func (n *integer) UnmarshalText(text []byte) error {
	parsed, err := strconv.Atoi(string(text))
	// Where the range is exceeded, the rest of the text was not looked at.
	if err != nil && !(errors.Is(err, strconv.ErrRange) && strings.Trim(string(text[1:]), "0123456789") == "") {
		return errors.New("must be an integer")
	}
	*n = integer(parsed)
	return nil
}

// refList is a list of numbers, comma-separated or repeated.
type refList[K domain.Kind] struct{ Refs []idmap.Ref[K] }

// MaxItems is how many items the list may hold.
func (*refList[K]) MaxItems() int { return op.MaxIDs }

// JSONSchema says what the list looks like, for the document.
func (refList[K]) JSONSchema() string { return `{"type":"string"}` }

// UnmarshalText reads a list of numbers that are written as in paths (decisions
// 5.5); an empty text is an empty list.
func (l *refList[K]) UnmarshalText(text []byte) error {
	l.Refs = []idmap.Ref[K]{}
	for item := range strings.SplitSeq(string(text), ",") {
		if item == "" {
			continue
		}
		if len(l.Refs) == op.MaxIDs {
			return errors.New("must hold at most 500 ids")
		}

		var ref idmap.Ref[K]
		if err := ref.UnmarshalText([]byte(item)); err != nil {
			return errors.New("must be a list of integers from 1 to 2147483647")
		}
		l.Refs = append(l.Refs, ref)
	}
	return nil
}

// resolved is the list for v2, unresolved numbers left out; nil for nil.
func (l *refList[K]) resolved() *op.IDList[K] {
	if l == nil {
		return nil
	}
	ids := &op.IDList[K]{IDs: []domain.ID[K]{}, Given: len(l.Refs)}
	for _, r := range l.Refs {
		if !r.ID.IsZero() {
			ids.IDs = append(ids.IDs, r.ID)
		}
	}
	return ids
}

// clientPath is the path of a route on one client.
type clientPath struct {
	ClientID idmap.Ref[domain.ClientKind] `path:"client_id" doc:"Number of the client."`
}

// userPath is the path of a route on one user.
type userPath struct {
	UserID UUID[domain.UserKind] `path:"user_id" doc:"UUID of the user, in any case."`
}

// text is an optional text of v1, where absent, null and empty are one.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// orEmpty is what v1 shows in the place of a text that is not there.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// given is an Optional that gives the value unless it is empty.
func given[T ~string](value T) domain.Optional[T] {
	return domain.Optional[T]{Given: value != "", Value: value}
}
