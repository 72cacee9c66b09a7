package domain

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Date is a calendar day in UTC, from 0001-01-01 to 9999-12-31. Dates can be compared with ==. The zero Date,
// 0001-01-01, means "no date", and is NULL in the database.
type Date struct {
	days int32 // since 0001-01-01
}

const (
	daysToUnix    = 719162  // from 0001-01-01 to 1970-01-01
	lastDay       = 3652058 // 9999-12-31
	secondsPerDay = 24 * 60 * 60
)

const errBadDate = Fault("must be a date, such as 2026-01-31")

// dateAt returns the Date of a day number, clamped to the range of Date.
func dateAt(days int64) Date { return Date{days: int32(min(max(days, 0), lastDay))} }

// DateOf returns the UTC day of a time.
func DateOf(t time.Time) Date {
	seconds := t.Unix()
	days := seconds / secondsPerDay
	if seconds%secondsPerDay < 0 {
		days-- // division rounds towards zero, but before 1970 the day is the floor
	}
	return dateAt(days + daysToUnix)
}

// UntilTomorrow returns the time from now to the start of the next day (UTC).
func UntilTomorrow(now time.Time) time.Duration { return DateOf(now).AddDays(1).Time().Sub(now) }

// ParseDate parses a day in the form 2006-01-02, but rejects the year 0. 0001-01-01 becomes the zero Date.
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
func (d Date) Time() time.Time { return time.Unix((int64(d.days)-daysToUnix)*secondsPerDay, 0).UTC() }

// AddDays returns the day that is n days later or, if n is negative, earlier. The result is clamped to the range of
// Date.
func (d Date) AddDays(n int) Date {
	n = min(max(n, -lastDay), lastDay) // so that the sum cannot overflow
	return dateAt(int64(d.days) + int64(n))
}

// DaysUntil returns the number of days from d to other. It is negative if other is before d.
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

// UnmarshalText parses a day in the form 2006-01-02. It rejects the zero Date.
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

// Scan implements sql.Scanner for a PostgreSQL date. NULL becomes the zero Date.
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

// Value implements driver.Valuer. The zero Date becomes NULL.
func (d Date) Value() (driver.Value, error) {
	if d.IsZero() {
		return nil, nil
	}
	return d.String(), nil
}
