package operator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// span is a duration of a flag, which may be in days: 7d, or as time.ParseDuration takes it, such as 36h.
type span struct{ time.Duration }

// negative matches the beginning of a negative number.
var negative = regexp.MustCompile(`^-\d`)

// Decode parses the duration of a flag. A negative one gets the error of UnmarshalText, as it is no flag.
func (s *span) Decode(flag *kong.DecodeContext) error {
	text, _ := flag.Scan.Peek().Value.(string)
	if !negative.MatchString(text) {
		if err := flag.Scan.PopValueInto("duration", &text); err != nil {
			return err
		}
	}
	return s.UnmarshalText([]byte(text))
}

// UnmarshalText parses a duration that is not negative.
func (s *span) UnmarshalText(text []byte) (err error) {
	if days, ok := strings.CutSuffix(string(text), "d"); ok {
		var n int64
		n, err = strconv.ParseInt(days, 10, 17)
		s.Duration = time.Duration(n) * 24 * time.Hour
	} else {
		s.Duration, err = time.ParseDuration(string(text))
	}
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a duration such as 7d or 36h", text)
	case s.Duration < 0:
		return fmt.Errorf("%s must not be negative", text)
	}
	return nil
}
