package v1cmd

import (
	"testing"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// daysOf returns days up to that of noon with a number of calls each; number gets the days before today.
func daysOf(n int, number func(ago int) int64) []usage.Day {
	days := make([]usage.Day, n)
	for i := range days {
		ago := n - 1 - i
		days[i] = usage.Day{Day: domain.DateOf(noon).AddDays(-ago), Calls: number(ago)}
	}
	return days
}

// TestForecast verifies the day of the last call at the present pace, whatever today's calls are so far, and its sentence.
func TestForecast(t *testing.T) {
	t.Parallel()
	today := domain.DateOf(noon)
	a := &announcement{SunsetAt: domain.At(today.AddDays(30).Time())}
	falls := func(ago int) int64 { return int64(ago-1)*10 + 100 } // 100 yesterday, 110 before
	weekly := func(ago int) int64 {                               // none at weekends, and a tenth less each week
		if ago%7 < 2 {
			return 0
		}
		return int64(ago+6)/7*100 + 500
	}
	for name, c := range map[string]struct {
		days []usage.Day
		a    *announcement
		want string
	}{
		"falls":             {daysOf(30, falls), a, "At the rate of the last 4 weeks, the last call will be around 2026-06-24, 21 days before the sunset."},
		"today is not over": {daysOf(30, func(ago int) int64 { return falls(max(ago, 1)) * int64(min(ago, 1)) }), a, "At the rate of the last 4 weeks, the last call will be around 2026-06-24, 21 days before the sunset."},
		"not announced":     {daysOf(30, falls), nil, "At the rate of the last 4 weeks, the last call will be around 2026-06-24."},
		"two weeks":         {daysOf(20, falls), a, "At the rate of the last 2 weeks, the last call will be around 2026-06-24, 21 days before the sunset."},
		"too few days":      {daysOf(14, falls), a, ""},
		"rises":             {daysOf(30, func(ago int) int64 { return 100 - int64(ago) }), a, "At the rate of the last 4 weeks, calls to v1 will not stop."},
		"stays":             {daysOf(400, func(int) int64 { return 7 }), a, "At the rate of the last 4 weeks, calls to v1 will not stop."},
		"hardly falls":      {daysOf(30, func(ago int) int64 { return 1_000_000 + int64(ago) }), a, "At the rate of the last 4 weeks, calls to v1 will not stop."},
		"no calls":          {daysOf(30, func(int) int64 { return 0 }), a, "v1 was not called in the 4 weeks before today."},
		"only today":        {daysOf(30, func(ago int) int64 { return 18 * int64(max(0, 1-ago)) }), a, "Too few days with v1 calls for a forecast."},
		"late":              {daysOf(30, func(ago int) int64 { return 400 + 2*int64(ago) }), a, "At the rate of the last 4 weeks, the last call will be around 2027-01-01, 170 days after the sunset."},
		"ended long ago":    {daysOf(30, func(ago int) int64 { return int64(max(0, ago-20)) }), a, "At the rate of the last 4 weeks, the last call will be around 2026-06-15, 30 days before the sunset."},
		"weekends":          {daysOf(29, weekly), nil, "At the rate of the last 4 weeks, the last call will be around 2026-07-27."},
	} {
		f := newForecast(c.days)
		got := ""
		if f.Weeks > 0 {
			got = f.Text(c.a)
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
