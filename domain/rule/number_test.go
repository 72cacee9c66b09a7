package rule

import (
	"strings"
	"testing"
)

// TestPlainInteger verifies that an integer may be written with a fraction or an exponent, exactly and at bounded cost.
func TestPlainInteger(t *testing.T) {
	for number, want := range map[string]string{
		"26": "26", "-26": "-26", "26.0": "26", "-26.000": "-26", "2.6e1": "26", "2.6E+1": "26", "260e-1": "26", "0.26e2": "26",
		"0.0": "0", "-0.0": "0", "0e5": "0", "0e-5": "0", "1e2": "100", "1.50e1": "15",
		"9007199254740993.0": "9007199254740993", "9223372036854775807.00": "9223372036854775807",
		"26.5": "26.5", "2.65e1": "2.65e1", "26e-1": "26e-1", "1e-1": "1e-1", "-0.5": "-0.5",
		"1e31": "1e31", "1e-31": "1e-31", "1e99999999999999999999": "1e99999999999999999999",
		"1." + strings.Repeat("0", 1<<20): "1",
	} {
		if got := PlainInteger(number); got != want {
			t.Errorf("%.40s: got %.40s, want %.40s", number, got, want)
		}
	}
}
