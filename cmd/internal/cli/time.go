package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"partnerapi/domain"
)

// Moment is a time of a flag: a day, which begins at 00:00 UTC, or a moment. The zero Moment is none.
type Moment struct{ time.Time }

// UnmarshalText parses a day or a time.
func (m *Moment) UnmarshalText(text []byte) (err error) {
	if day, err := domain.ParseDate(string(text)); err == nil {
		m.Time = day.Time()
		return nil
	}
	if m.Time, err = domain.ParseTime(string(text)); err != nil {
		return fmt.Errorf("%q is neither a day such as 2027-01-31 nor a time such as 2027-01-31T12:00:00Z", text)
	}
	m.Time = m.Truncate(time.Microsecond) // as PostgreSQL stores it
	return nil
}

// Since is a Moment that a flag can also give by its distance from now, such as 36h.
type Since struct{ Moment }

// UnmarshalText parses a day or a time, or a duration before now.
func (s *Since) UnmarshalText(text []byte) error {
	if ago, err := time.ParseDuration(string(text)); err == nil && ago > 0 {
		s.Time = domain.SystemClock{}.Now().Add(-ago)
		return nil
	}
	if err := s.Moment.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, nor how long ago, such as 36h", err)
	}
	return nil
}

// Span is a duration of a flag, which may be in days: 7d, or as time.ParseDuration takes it, such as 36h.
type Span struct{ time.Duration }

// negative matches the beginning of a negative number.
var negative = regexp.MustCompile(`^-\d`)

// Decode parses the duration of a flag. A negative one gets the error of UnmarshalText, as it is no flag.
func (s *Span) Decode(flag *kong.DecodeContext) error {
	text, _ := flag.Scan.Peek().Value.(string)
	if !negative.MatchString(text) {
		if err := flag.Scan.PopValueInto("duration", &text); err != nil {
			return err
		}
	}
	return s.UnmarshalText([]byte(text))
}

// UnmarshalText parses a duration that is not negative.
func (s *Span) UnmarshalText(text []byte) (err error) {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 16)
		s.Duration = time.Duration(n) * 24 * time.Hour
	} else {
		s.Duration, err = time.ParseDuration(string(text))
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a duration such as 7d or 36h", text)
	case s.Duration < 0:
		return fmt.Errorf("%s must not be negative", text)
	}
	return nil
}
