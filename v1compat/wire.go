package v1compat

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/idmap"
	"partnerapi/v2/op"
)

// Time is a point in time as v1 writes it: ISO 8601, UTC, whole seconds.
type Time struct{ time.Time }

// at converts a time.
func at(t domain.Time) Time { return Time{t.Time} }

// MarshalJSONTo writes the time in seconds, in UTC.
func (t Time) MarshalJSONTo(enc *jsontext.Encoder) error {
	b := t.UTC().AppendFormat(append(enc.AvailableBuffer(), '"'), time.RFC3339)
	return enc.WriteValue(append(b, '"'))
}

// JSONSchema implements openapi.Described.
func (Time) JSONSchema() string {
	return `{"type":"string","format":"date-time","example":"2026-01-31T08:00:00Z"}`
}

// UUID is the id of an object that v1 names by its UUID: a user, an admin, a message.
type UUID[K domain.Kind] struct{ ID domain.ID[K] }

// uuidOf converts an id.
func uuidOf[K domain.Kind](id domain.ID[K]) UUID[K] { return UUID[K]{id} }

// Noun returns the kind's noun.
func (u UUID[K]) Noun() string { return u.ID.Noun() }

// MarshalText returns the UUID in canonical lower case.
func (u UUID[K]) MarshalText() ([]byte, error) { return []byte(u.ID.UUID()), nil }

// UnmarshalText parses a UUID in any case (decisions 1.3).
func (u *UUID[K]) UnmarshalText(text []byte) (err error) {
	if u.ID, err = domain.ParseUUID[K](strings.ToLower(string(text))); err != nil {
		return domain.Fault("must be a UUID")
	}
	return nil
}

// JSONSchema implements openapi.Described.
func (UUID[K]) JSONSchema() string { return `{"type":"string","format":"uuid"}` }

// choice is an enum in a body. Absent and null are its zero value; any text that is not one of the values is
// refused, the empty one too (decisions 2.5).
type choice[E interface {
	~string
	rule.Enum
}] string

// Values lists the values for the OpenAPI document.
func (c choice[E]) Values() []string { return E(c).Values() }

// UnmarshalText parses a value.
func (c *choice[E]) UnmarshalText(text []byte) error {
	if !rule.EnumHas(c, string(text)) {
		return domain.Fault(rule.EnumMessage(c))
	}
	*c = choice[E](text)
	return nil
}

// integer is an integer of a query, clamped to the range of int.
type integer int

// JSONSchema implements openapi.Described.
func (integer) JSONSchema() string { return `{"type":"integer"}` }

// UnmarshalText parses a decimal integer. One beyond the range of int becomes the nearest int, as Atoi returns it.
func (n *integer) UnmarshalText(text []byte) error {
	parsed, err := strconv.Atoi(string(text))
	// With ErrRange, Atoi has not checked the text after the digit that exceeds the range. text[0] may be a sign.
	if err != nil && !(errors.Is(err, strconv.ErrRange) && strings.Trim(string(text[1:]), "0123456789") == "") {
		return errors.New("must be an integer")
	}
	*n = integer(parsed)
	return nil
}

// refList is a list of numbers, comma-separated or repeated.
type refList[K domain.Kind] struct{ Refs []idmap.Ref[K] }

// MaxItems returns the maximum length of the list.
func (*refList[K]) MaxItems() int { return op.MaxIDs }

// JSONSchema implements openapi.Described.
func (refList[K]) JSONSchema() string { return `{"type":"string"}` }

// UnmarshalText parses a list of numbers, written as in paths (decisions 5.4). It skips empty items.
func (l *refList[K]) UnmarshalText(text []byte) error {
	l.Refs = []idmap.Ref[K]{}
	for item := range strings.SplitSeq(string(text), ",") {
		if item == "" {
			continue
		}
		if len(l.Refs) == op.MaxIDs {
			return fmt.Errorf("must contain at most %d ids", op.MaxIDs)
		}

		var ref idmap.Ref[K]
		if err := ref.UnmarshalText([]byte(item)); err != nil {
			return errors.New("must be a list of integers from 1 to 2147483647")
		}
		l.Refs = append(l.Refs, ref)
	}
	return nil
}

// resolved returns the list for v2; nil for nil. Numbers of no object have no id in IDs, but are counted in Given.
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
	ClientID idmap.Ref[domain.ClientKind] `path:"client_id" doc:"Numeric ID of the client."`
}

// userPath is the path of a route on one user.
type userPath struct {
	UserID UUID[domain.UserKind] `path:"user_id" doc:"UUID of the user, in uppercase or lowercase."`
}

// text returns a pointer to a text; nil if it is empty, as v1 treats absent, null and empty alike.
func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// optionalOf returns an Optional of the value, unset if the value is empty.
func optionalOf[T ~string](value T) domain.Optional[T] {
	return domain.Optional[T]{Given: value != "", Value: value}
}

// Paging is the page of every list of v1.
type Paging[Item any] struct {
	Items  []Item `json:"items" doc:"The items of this page."`
	Limit  int    `json:"limit" doc:"Maximum number of items on this page: the requested or default limit, or the nearest allowed value if the requested limit is out of range."`
	Offset int    `json:"offset" doc:"Number of items skipped."`
	Total  int    `json:"total" doc:"Total number of items in the list."`
}

// pageRequest is a requested page, its limit clamped.
type pageRequest struct{ limit, offset int }

// windowed is the Query of a list: one of the types below.
type windowed interface{ page() pageRequest }

// window is the offset of every list.
type window struct {
	Offset integer `query:"offset" default:"0" doc:"Number of items to skip."`
}

// upTo returns the page with its limit clamped to 1..most.
func (w window) upTo(most int, limit integer) pageRequest {
	return pageRequest{limit: min(max(int(limit), 1), most), offset: int(w.Offset)}
}

// upTo50 is the window of most lists.
type upTo50 struct {
	Limit integer `query:"limit" default:"20" doc:"Number of items to return, from 1 to 50. Values outside this range are set to the nearest allowed value."`
	window
}

func (w upTo50) page() pageRequest { return w.upTo(50, w.Limit) }

// upTo1000 is the window of longer lists.
type upTo1000 struct {
	Limit integer `query:"limit" default:"200" doc:"Number of items to return, from 1 to 1000. Values outside this range are set to the nearest allowed value."`
	window
}

func (w upTo1000) page() pageRequest { return w.upTo(1000, w.Limit) }

// pageOf returns the page that a list's input requests.
func pageOf(in any) (pageRequest, error) {
	q, ok := reflect.ValueOf(in).Elem().FieldByName("Query").Interface().(windowed)
	if !ok {
		return pageRequest{}, fmt.Errorf("%T has no window", in)
	}
	page := q.page()
	if page.offset < 0 {
		return pageRequest{}, domain.ErrInvalid("offset", "must be at least 0")
	}
	return page, nil
}
