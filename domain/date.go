package domain

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Date is a civil day of the UTC calendar, from 0001-01-01 to 9999-12-31. Dates
// compare with ==. The zero Date is 0001-01-01 and stands for "no date": the
// database holds it as NULL.
type Date struct {
	days int32 // since 0001-01-01
}

const (
	daysToUnix    = 719162  // from 0001-01-01 to 1970-01-01
	lastDay       = 3652058 // 9999-12-31
	secondsPerDay = 24 * 60 * 60
)

const errBadDate = Fault("must be a date, such as 2026-01-31")

// dateAt returns the Date of a day number, clamped to the four-digit years that the
// text form can hold.
func dateAt(days int64) Date { return Date{days: int32(min(max(days, 0), lastDay))} }

// DateOf returns the UTC day that holds the moment.
func DateOf(t time.Time) Date {
	seconds := t.Unix()
	days := seconds / secondsPerDay
	if seconds%secondsPerDay < 0 {
		days-- // division rounds towards zero, days before 1970 need the floor
	}
	return dateAt(days + daysToUnix)
}

// UntilTomorrow is how long the day (UTC) of now still lasts.
func UntilTomorrow(now time.Time) time.Duration {
	return DateOf(now).AddDays(1).Time().Sub(now)
}

// ParseDate reads a day written as 2006-01-02.
func ParseDate(text string) (Date, error) {
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Year() == 0 {
		return Date{}, errBadDate
	}
	return DateOf(t), nil
}

// IsZero reports whether d is the zero Date, which stands for no date.
func (d Date) IsZero() bool { return d == Date{} }

// Time returns the start of the day, in UTC.
func (d Date) Time() time.Time {
	return time.Unix((int64(d.days)-daysToUnix)*secondsPerDay, 0).UTC()
}

// AddDays returns the day that is n days later, or earlier where n is negative.
// It stops at the first and the last day that a Date can be.
func (d Date) AddDays(n int) Date {
	n = min(max(n, -lastDay), lastDay) // so that the sum cannot overflow
	return dateAt(int64(d.days) + int64(n))
}

// DaysUntil returns how many days after d the other day is, negative where it
// is before d.
func (d Date) DaysUntil(other Date) int { return int(other.days) - int(d.days) }

// Before reports whether d is an earlier day than other.
func (d Date) Before(other Date) bool { return d.days < other.days }

// After reports whether d is a later day than other.
func (d Date) After(other Date) bool { return d.days > other.days }

// String returns the day as 2006-01-02.
func (d Date) String() string { return d.Time().Format(time.DateOnly) }

// AppendText appends the day as 2006-01-02. It never fails.
func (d Date) AppendText(b []byte) ([]byte, error) {
	return d.Time().AppendFormat(b, time.DateOnly), nil
}

// MarshalText returns the day as 2006-01-02. It never fails.
func (d Date) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// UnmarshalText reads a day written as 2006-01-02. It rejects the zero Date.
func (d *Date) UnmarshalText(text []byte) error {
	parsed, err := ParseDate(string(text))
	if err != nil {
		return err
	}
	if parsed.IsZero() {
		return errBadDate
	}
	*d = parsed
	return nil
}

// Scan reads a PostgreSQL date; NULL is the zero Date.
func (d *Date) Scan(src any) error {
	switch src := src.(type) {
	case nil:
		*d = Date{}
		return nil
	case time.Time:
		*d = DateOf(src)
		return nil
	case string:
		return d.UnmarshalText([]byte(src))
	case []byte:
		return d.UnmarshalText(src)
	default:
		return fmt.Errorf("scan %T into a date", src)
	}
}

// Value gives PostgreSQL the day as date text, and NULL for the zero Date.
func (d Date) Value() (driver.Value, error) {
	if d.IsZero() {
		return nil, nil
	}
	return d.String(), nil
}
