package v1cmd

import (
	"slices"
	"strings"
	"testing"
	"time"

	"partnerapi/v1compat/retire"
)

// TestChangesOf verifies that the changelog has the announcement of v1's end, its postponements with their dates, and the
// end. A postponement by an earlier version has no date of its own.
func TestChangesOf(t *testing.T) {
	t.Parallel()
	day := func(year int, month time.Month, day int) time.Time {
		return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	}
	ended := day(2028, 7, 1)
	announced := func(sunset time.Time) *retire.Announcement {
		return &retire.Announcement{Announced: day(2026, 12, 1), Sunset: sunset}
	}
	for _, tt := range []struct {
		state retire.State
		want  []string
	}{
		{retire.State{}, nil},
		{retire.State{Announcement: announced(day(2027, 12, 31))}, []string{"v1-ends-2027-12-31 2026-12-01 Version 1 ends on 31 December 2027"}},
		{retire.State{Announcement: announced(day(2028, 6, 30))}, []string{"v1-ends-2028-06-30 2026-12-01 Version 1 ends on 30 June 2028"}},
		{retire.State{Announcement: announced(day(2028, 12, 31)), Postponements: []retire.Postponement{
			{At: day(2027, 3, 1), Previous: day(2027, 12, 31), Sunset: day(2028, 6, 30)},
			{At: day(2027, 9, 1), Previous: day(2028, 6, 30), Sunset: day(2028, 12, 31)},
		}}, []string{
			"v1-ends-2028-12-31 2027-09-01 End of version 1 postponed to 31 December 2028",
			"v1-ends-2028-06-30 2027-03-01 End of version 1 postponed to 30 June 2028",
			"v1-ends-2027-12-31 2026-12-01 End of version 1 announced for 31 December 2027",
		}},
		{retire.State{Announcement: announced(day(2028, 6, 30)), EndedAt: &ended}, []string{
			"v1-ended 2028-07-01 Version 1 has ended", "v1-ends-2028-06-30 2026-12-01 Version 1 ends on 30 June 2028",
		}},
	} {
		var got []string
		for _, c := range changesOf(&tt.state) {
			got = append(got, c.ID+" "+c.On.Format(time.DateOnly)+" "+c.Title)
			if !strings.Contains(c.Text, "(/docs/guide/moving-from-v1)") {
				t.Errorf("%s does not say how to move: %s", c.ID, c.Text)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
