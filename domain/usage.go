package domain

import "time"

// Usage is the number of a client's active users in a period, as a partner bills it.
type Usage struct {
	Client     ClientID
	ClientName string
	ExternalID *string
	CreatedAt  time.Time // of the client
	// StartOn is the first day of the period.
	StartOn Date
	// ActiveUsersMax is the highest number of the period, and ActiveUsersLast that at the end of its last day or, if
	// that is today, of now.
	ActiveUsersMax, ActiveUsersLast int
}

// UsageInterval is the length of the periods of a list of usage.
type UsageInterval string

// The intervals. A period is the part of a calendar month (UTC), or the day, that lies between the first and the last day
// of the list.
const (
	MonthlyUsage UsageInterval = "month"
	DailyUsage   UsageInterval = "day"
)

// Values lists the intervals.
func (UsageInterval) Values() []string { return texts(MonthlyUsage, DailyUsage) }

// UsageDays is the number of days, including today, of which the usage is kept, and the most that a list covers.
const UsageDays = 400

// UsageFilter selects the usage that a list contains.
type UsageFilter struct {
	Start, End *Date // the first and the last day; nil for the defaults of Days
	Interval   UsageInterval
	Client     *ClientID // nil for all
}

// Days returns the first and the last day of the list. The last one is not after today, which is the default. The default
// of the first one is the start of the month of the last one. It returns InvalidRequest if the days are in reverse, or
// more than UsageDays.
func (f *UsageFilter) Days(today Date) (first, last Date, err error) {
	last = today
	if f.End != nil {
		last = *f.End
	}
	year, month, _ := last.Time().Date()
	first = DateOf(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC))
	if f.Start != nil {
		first = *f.Start
	}
	switch {
	case f.Start != nil && f.End != nil && last.Before(first):
		return first, last, ErrInvalid("end_on", "must not be before start_on")
	case f.End != nil && first.DaysUntil(last) >= UsageDays:
		return first, last, ErrInvalid("end_on", "must be at most 399 days after start_on")
	case first.DaysUntil(last) >= UsageDays:
		return first, last, ErrInvalid("start_on", "must be at most 399 days ago if end_on is omitted")
	}
	if last.After(today) {
		last = today
	}
	return first, last, nil
}
