package cli

import (
	"fmt"
	"time"

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
		return fmt.Errorf("%q is neither a date such as 2027-01-31 nor a time such as 2027-01-31T12:00:00Z", text)
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
		return fmt.Errorf("%w nor a duration such as 36h", err)
	}
	return nil
}
