package domain

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// The least and the greatest length of a time's text, in bytes. The latter is the service's: RFC 3339 does not limit
// the number of digits of a fraction.
const (
	minTimeText = len("2006-01-02T15:04:05Z")
	maxTimeText = 64
)

var errBadTime = errors.New("must be an RFC 3339 date-time, such as 2026-01-31T08:00:00Z")

// Time is a point in time in the format of v2, records and signals: RFC 3339, UTC, with Z and six fractional digits
// (decisions 2.7). It does not embed time.Time, whose methods write a varying number of digits.
type Time struct{ Time time.Time }

// At returns t as a Time.
func At(t time.Time) Time { return Time{t} }

// MaybeAt returns *t as a Time, or nil if t is nil.
func MaybeAt(t *time.Time) *Time {
	if t == nil {
		return nil
	}
	return &Time{*t}
}

// IsZero reports whether t is the zero Time, which means no time.
func (t Time) IsZero() bool { return t.Time.IsZero() }

// AppendText appends the time as 2026-01-31T08:00:00.000000Z, in UTC. It never returns an error.
func (t Time) AppendText(b []byte) ([]byte, error) {
	utc := t.Time.UTC()
	b = utc.AppendFormat(b, time.RFC3339) // package time has a fast path for it
	b[len(b)-1] = '.'                     // instead of the Z
	for unit := 100_000; unit > 0; unit /= 10 {
		b = append(b, '0'+byte(utc.Nanosecond()/1000/unit%10))
	}
	return append(b, 'Z'), nil
}

// MarshalText returns the time as 2026-01-31T08:00:00.000000Z, in UTC. It never returns an error.
func (t Time) MarshalText() ([]byte, error) { return t.AppendText(nil) }

// UnmarshalText parses a time as ParseTime does.
func (t *Time) UnmarshalText(text []byte) (err error) {
	t.Time, err = ParseTime(string(text))
	return err
}

// ParseTime parses a time of RFC 3339, with T and Z in upper or lower case, and returns it in UTC. The error is
// errBadTime if the year in UTC is not from 1 to 9999 (year 0 exists neither in PostgreSQL nor in a JSON date-time), if
// the text is longer than maxTimeText, and for forms that package time accepts but RFC 3339 does not: hours of one
// digit (then text[13] is no colon), fractions after a comma, and offsets of 24 hours or 60 minutes.
func ParseTime(text string) (time.Time, error) {
	if len(text) < minTimeText || len(text) > maxTimeText || text[13] != ':' || strings.Contains(text, ",") {
		return time.Time{}, errBadTime
	}
	at, err := time.Parse(time.RFC3339, strings.ToUpper(text))
	if err != nil || hasWideOffset(text) {
		return time.Time{}, errBadTime
	}
	if at = at.UTC(); at.Year() < 1 || at.Year() > 9999 {
		return time.Time{}, errBadTime
	}
	return at, nil
}

// hasWideOffset reports whether a text that time.Parse accepted, which ends with Z or with hh:mm, has an offset with
// more than 23 hours or 59 minutes.
func hasWideOffset(text string) bool {
	end := len(text) - len("hh:mm")
	return text[end+2] == ':' && (text[end-1] == '+' || text[end-1] == '-') && (text[end:end+2] > "23" || text[end+3:] > "59")
}

// RetryAfter returns the delay that a Retry-After header demands: a number of seconds, or the time until a date in one
// of HTTP's three formats, 0 if it is past. It returns -1 for any other text.
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

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
