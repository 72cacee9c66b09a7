package op

import (
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
)

// Time is a point in time as v2 writes it: RFC 3339, UTC, with Z and six
// fractional digits (decisions 2.7).
type Time struct{ time.Time }

// At returns t as a Time.
func At(t time.Time) Time { return Time{t} }

// MaybeAt returns t as a Time, or nil.
func MaybeAt(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	return &Time{*t}
}

// AppendText appends the time. It never fails.
func (t Time) AppendText(b []byte) ([]byte, error) {
	utc := t.UTC()
	b = utc.AppendFormat(b, time.RFC3339) // the format that package time is quick at
	b[len(b)-1] = '.'                     // in the place of the Z
	for unit := 100_000; unit > 0; unit /= 10 {
		b = append(b, '0'+byte(utc.Nanosecond()/1000/unit%10))
	}
	return append(b, 'Z'), nil
}

// MarshalText returns the time. It never fails.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// MarshalJSONTo writes the time: pages hold hundreds, and this is the cheapest
// way there is.
func (t Time) MarshalJSONTo(enc *jsontext.Encoder) error {
	b, _ := t.AppendText(append(enc.AvailableBuffer(), '"'))
	return enc.WriteValue(append(b, '"'))
}

// MarshalJSON is MarshalJSONTo for encoding/json, and keeps time.Time's own form
// from being used.
func (t Time) MarshalJSON() ([]byte, error) {
	b, _ := t.AppendText([]byte{'"'})
	return append(b, '"'), nil
}

// UnmarshalText reads a time as domain.ParseTime does.
func (t *Time) UnmarshalText(text []byte) error {
	at, err := domain.ParseTime(string(text))
	if err != nil {
		return errTime
	}
	t.Time = at
	return nil
}

// UnmarshalJSON reads any RFC 3339 time in a JSON string.
func (t *Time) UnmarshalJSON(b []byte) error {
	if len(b) < 2 || b[0] != '"' {
		return errTime
	}
	return t.UnmarshalText(b[1 : len(b)-1])
}

const errTime = callerError("must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z")

// callerError is an error whose text is meant for callers.
type callerError string

func (e callerError) Error() string         { return string(e) }
func (e callerError) CallerMessage() string { return string(e) }

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
