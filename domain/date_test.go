package domain_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/domain"
)

func mustDate(t *testing.T, text string) domain.Date {
	t.Helper()
	date, err := domain.ParseDate(text)
	if err != nil {
		t.Fatalf("ParseDate(%q): %v", text, err)
	}
	return date
}

func TestDateOfIsTheUTCDay(t *testing.T) {
	east := time.FixedZone("east", 14*3600)
	west := time.FixedZone("west", -12*3600)
	for _, c := range []struct {
		moment time.Time
		want   string
	}{
		{time.Time{}, "0001-01-01"},
		{time.Unix(0, 0), "1970-01-01"},
		{time.Unix(-1, 0), "1969-12-31"},
		{time.Unix(-86400, 0), "1969-12-31"},
		{time.Unix(-86401, 0), "1969-12-30"},
		{time.Date(2024, 2, 29, 23, 59, 59, 999999999, time.UTC), "2024-02-29"},
		{time.Date(2024, 3, 1, 13, 59, 0, 0, east), "2024-02-29"},
		{time.Date(2024, 2, 29, 12, 0, 0, 0, west), "2024-03-01"},
		{time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC), "9999-12-31"},
		{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), "9999-12-31"},
		{time.Date(-44, 3, 15, 0, 0, 0, 0, time.UTC), "0001-01-01"},
	} {
		if got := domain.DateOf(c.moment).String(); got != c.want {
			t.Errorf("DateOf(%v) = %s, want %s", c.moment, got, c.want)
		}
	}
}

func TestDateAgreesWithTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		moment := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds"), 0).UTC()
		date := domain.DateOf(moment)
		if want := moment.Format(time.DateOnly); date.String() != want {
			t.Fatalf("DateOf(%v) = %v", moment, date)
		}
		if again, err := domain.ParseDate(date.String()); err != nil || again != date {
			t.Fatalf("%v is parsed as %v, %v", date, again, err)
		}
		if !date.Time().Equal(moment.Truncate(24 * time.Hour)) {
			t.Fatalf("%v starts at %v", date, date.Time())
		}
		n := rapid.IntRange(-40000, 40000).Draw(t, "days")
		other := domain.DateOf(moment.AddDate(0, 0, n))
		if moved := date.AddDays(n); moved != other {
			t.Fatalf("%v and %d days are %v, want %v", date, n, moved, other)
		}
		if difference := date.DaysUntil(other); date.AddDays(difference) != other {
			t.Fatalf("%d days from %v to %v", difference, date, other)
		}
		if date.Before(other) != date.Time().Before(other.Time()) || date.After(other) != date.Time().After(other.Time()) {
			t.Fatalf("the order of %v and %v", date, other)
		}
	})
}

func TestDateStaysInItsRange(t *testing.T) {
	date := mustDate(t, "2024-02-29")
	for _, c := range []struct {
		days int
		want string
	}{
		{366, "2025-03-01"}, {-60, "2023-12-31"}, {math.MaxInt, "9999-12-31"}, {math.MinInt, "0001-01-01"},
	} {
		if got := date.AddDays(c.days).String(); got != c.want {
			t.Errorf("AddDays(%d) = %s, want %s", c.days, got, c.want)
		}
	}
}

func TestDateInTheDatabase(t *testing.T) {
	want := mustDate(t, "2026-01-05")
	for _, src := range []any{time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), "2026-01-05", []byte("2026-01-05")} {
		var got domain.Date
		if err := got.Scan(src); err != nil || got != want {
			t.Errorf("Scan(%v) = %v, %v", src, got, err)
		}
	}
	got := want
	if err := got.Scan(nil); err != nil || !got.IsZero() {
		t.Errorf("NULL is %v, %v", got, err)
	}
	for _, src := range []any{20260105, "05.01.2026", "0001-01-01"} {
		if err := got.Scan(src); err == nil {
			t.Errorf("Scan(%v) was taken", src)
		}
	}
	if value, err := want.Value(); err != nil || value != "2026-01-05" {
		t.Errorf("Value() = %v, %v", value, err)
	}
	if value, err := (domain.Date{}).Value(); err != nil || value != nil {
		t.Errorf("the zero Date's Value() = %v, %v", value, err)
	}
}
