package domain_test

import (
	"testing"

	"partnerapi/domain"
)

func TestPreviousPeriod(t *testing.T) {
	for _, test := range [][4]string{
		{"2026-03-01", "2026-03-31", "2026-02-01", "2026-02-28"},
		{"2024-02-01", "2024-02-29", "2024-01-01", "2024-01-31"},
		{"2026-01-01", "2026-01-31", "2025-12-01", "2025-12-31"},
		{"2026-03-01", "2026-03-30", "2026-01-30", "2026-02-28"},
		{"2026-03-10", "2026-03-10", "2026-03-09", "2026-03-09"},
		{"2026-01-01", "2026-12-31", "2025-01-01", "2025-12-31"},
	} {
		var days [4]domain.Date
		for i, text := range test {
			var err error
			if days[i], err = domain.ParseDate(text); err != nil {
				t.Fatal(err)
			}
		}
		p := domain.ReportPeriod{Start: days[0], End: days[1]}
		if got := p.Previous(); got != (domain.ReportPeriod{Start: days[2], End: days[3]}) {
			t.Errorf("before %s to %s is %s to %s", p.Start, p.End, got.Start, got.End)
		}
	}
}
