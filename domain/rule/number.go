package rule

import (
	"strconv"
	"strings"
)

// maxExponent is the greatest absolute exponent that PlainInteger resolves: an integer with more digits fits no type.
const maxExponent = 30

// PlainInteger returns a JSON number without fraction and exponent if it is an integer, as in 26.0 and 2.6e1: JSON
// Schema counts these as integers. Any other number is returned unchanged.
func PlainInteger(number string) string {
	if !strings.ContainsAny(number, ".eE") {
		return number
	}
	mantissa, exponent := number, 0
	if at := strings.IndexAny(number, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(number[at+1:]); err != nil || exponent > maxExponent || exponent < -maxExponent {
			return number
		}
		mantissa = number[:at]
	}
	unsigned, isNegative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(unsigned, ".")
	digits, point := whole+fraction, len(whole)+exponent // the point is before digits[point]
	if missing := point - len(digits); missing > 0 {
		digits += strings.Repeat("0", missing)
	}
	if strings.Trim(digits[max(point, 0):], "0") != "" {
		return number // it has a fraction
	}
	digits = strings.TrimLeft(digits[:max(point, 0)], "0")
	switch {
	case digits == "":
		return "0"
	case isNegative:
		return "-" + digits
	}
	return digits
}
