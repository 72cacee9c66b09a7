package domain

import "math"

// Percent is part of whole as a percentage with one decimal, half away from
// zero (decisions 2.7); 0 of nothing.
func Percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return math.Round(float64(part)*1000/float64(whole)) / 10
}
