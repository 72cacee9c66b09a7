package v1cmd

import (
	"fmt"
	"math"

	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

const (
	// forecastWeeks is how many weeks a forecast uses at most, and minWeeks at least. Weeks are whole, as calls of programs
	// follow the days of the week.
	forecastWeeks = 4
	minWeeks      = 2
	// rounding is a part of a day that is an error of computation.
	rounding = 1e-6
	// maxAhead is the maximum number of days that a forecast looks ahead.
	maxAhead = 10 * 366
)

// forecast is the straight line through the calls of v1 in the last whole weeks before today, by least squares.
type forecast struct {
	// Weeks is 0 if the days are too few for a forecast.
	Weeks int
	// Called reports whether there was a call in these weeks, and CalledToday whether there was one since.
	Called, CalledToday bool
	// From is yesterday, and Level the line's number of calls on that day.
	From  domain.Date
	Level float64
	// LastCall is the day on which the line reaches zero, today at the earliest; nil if it does not fall, or not within
	// maxAhead days.
	LastCall *domain.Date
}

// newForecast returns the forecast from days, of which the last one is today and incomplete.
func newForecast(days []usage.Day) (f forecast) {
	weeks := min((len(days)-1)/7, forecastWeeks)
	if weeks < minWeeks {
		return f
	}
	today := days[len(days)-1]
	days = days[len(days)-1-7*weeks : len(days)-1]
	n := float64(len(days))
	var sum, moment, spread float64
	for i, d := range days {
		x := float64(i) - (n-1)/2 // the middle is 0
		sum, moment, spread = sum+float64(d.Calls), moment+x*float64(d.Calls), spread+x*x
	}
	slope, last := moment/spread, len(days)-1
	f = forecast{Weeks: weeks, Called: sum > 0, CalledToday: today.Calls > 0, From: days[last].Day, Level: max(0, sum/n+slope*(n-1)/2)}
	if slope >= 0 {
		return f
	}
	if ahead := math.Ceil(f.Level/-slope - rounding); ahead <= maxAhead {
		day := f.From.AddDays(max(1, int(ahead)))
		f.LastCall = &day
	}
	return f
}

// Text returns the forecast as a sentence, which compares it with the sunset of an announcement; nil if there is none.
func (f forecast) Text(a *announcement) string {
	pace := fmt.Sprintf("At the rate of the last %d weeks, ", f.Weeks)
	switch {
	case !f.Called && f.CalledToday:
		return "Too few days with v1 calls for a forecast."
	case !f.Called:
		return fmt.Sprintf("v1 was not called in the %d weeks before today.", f.Weeks)
	case f.LastCall == nil:
		return pace + "calls to v1 will not stop."
	}
	text := pace + "the last call will be around " + f.LastCall.String()
	if a == nil {
		return text + "."
	}
	switch ahead := f.LastCall.DaysUntil(domain.DateOf(a.SunsetAt.Time)); {
	case ahead > 0:
		return text + ", " + output.Plural(ahead, "day", "days") + " before the sunset."
	case ahead < 0:
		return text + ", " + output.Plural(-ahead, "day", "days") + " after the sunset."
	}
	return text + ", the day of the sunset."
}
