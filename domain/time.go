package domain

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// The least and the greatest length of a time's text, in bytes: RFC 3339 does not bound
// the digits of a fraction.
const (
	minTimeText = len("2006-01-02T15:04:05Z")
	maxTimeText = 64
)

var errBadTime = errors.New("must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z")

// Time is a point in time as v2, records and signals write it: RFC 3339, UTC, with Z
// and six fractional digits (decisions 2.7). It does not embed time.Time, whose JSON
// form has a varying number of digits.
type Time struct{ Time time.Time }

// At returns t as a Time.
func At(t time.Time) Time { return Time{t} }

// MaybeAt returns t as a Time, or nil.
func MaybeAt(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	return &Time{*t}
}

// IsZero reports whether t is the zero Time, which stands for none.
func (t Time) IsZero() bool { return t.Time.IsZero() }

// AppendText appends the time. It never fails.
func (t Time) AppendText(b []byte) ([]byte, error) {
	utc := t.Time.UTC()
	b = utc.AppendFormat(b, time.RFC3339) // the format that package time is quick at
	b[len(b)-1] = '.'                     // instead of the Z
	for unit := 100_000; unit > 0; unit /= 10 {
		b = append(b, '0'+byte(utc.Nanosecond()/1000/unit%10))
	}
	return append(b, 'Z'), nil
}

// MarshalText returns the time. It never fails.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText reads a time as ParseTime does.
func (t *Time) UnmarshalText(text []byte) (err error) {
	t.Time, err = ParseTime(string(text))
	return err
}

// ParseTime reads a time of RFC 3339, its letters in either case, and returns it in
// UTC, where its year is from 1 to 9999: neither PostgreSQL nor a JSON date-time has a
// year 0. What package time takes beyond RFC 3339 is refused: hours of one digit,
// fractions after a comma, and offsets of 24 hours or 60 minutes.
func ParseTime(text string) (time.Time, error) {
	if len(text) < minTimeText || len(text) > maxTimeText || text[13] != ':' || strings.Contains(text, ",") {
		return time.Time{}, errBadTime
	}
	at, err := time.Parse(time.RFC3339, strings.ToUpper(text)) // whose letters are T and Z
	if err != nil || hasWideOffset(text) {
		return time.Time{}, errBadTime
	}
	if at = at.UTC(); at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}, errBadTime
	}
	return at, nil
}

// hasWideOffset reports an offset of 24 hours or 60 minutes in a text that package time
// took: it ends with Z, or with hh:mm.
func hasWideOffset(text string) bool {
	end := len(text) - len("hh:mm")
	return text[end+2] == ':' && (text[end-1] == '+' || text[end-1] == '-') && (text[end:end+2] > "23" || text[end+3:] > "59")
}

// RetryAfter parses a Retry-After header: seconds, or a date in one of HTTP's three
// forms. It returns a negative duration for any other text.
func RetryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	for _, form := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(form, header); err == nil {
			return max(at.Sub(now), 0)
		}
	}
	return -1
}

// Later returns the later one of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
