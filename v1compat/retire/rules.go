package retire

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Bounds on brownouts, and on times in the future.
const (
	maxBrownouts = 100
	// maxWindows bounds the windows of all brownouts that are not over.
	maxWindows = 1000
	// maxKeys bounds the keys that one brownout names.
	maxKeys = 100

	maxFor   = 31 * 24 * time.Hour
	maxEvery = 366 * 24 * time.Hour
	// maxAheadYears bounds how far in the future a time may be.
	maxAheadYears = 100 // years
)

// checkNotEnded reports an error once v1 has ended.
func (s *State) checkNotEnded() error {
	if s.EndedAt != nil {
		return fmt.Errorf("version 1 ended on %s; to undo the end, run partnerapi v1 phase --all on", FormatTime(*s.EndedAt))
	}
	return nil
}

// requireAnnouncement returns the announcement; an error if there is none or v1 has ended.
func (s *State) requireAnnouncement() (a Announcement, err error) {
	if err := s.checkNotEnded(); err != nil {
		return a, err
	}
	if s.Announcement == nil {
		return a, errors.New("the end of version 1 is not announced; run partnerapi v1 announce --sunset DATE first")
	}
	return *s.Announcement, nil
}

// twelveMonthsAfter returns the time twelve months later, by the calendar in UTC.
func twelveMonthsAfter(t time.Time) time.Time { return t.UTC().AddDate(1, 0, 0) }

// checkAnnounce returns the reason why an announcement is refused; nil if it is allowed. The other checks do the same.
func (s *State) checkAnnounce(a Announcement, now time.Time) error {
	if err := s.checkNotEnded(); err != nil {
		return err
	}
	if old := s.Announcement; old != nil {
		return fmt.Errorf("the end of version 1 was announced on %s for %s; move it with partnerapi v1 postpone --sunset LATER, "+
			"or withdraw the announcement with partnerapi v1 cancel", FormatTime(old.Announced), FormatTime(old.Sunset))
	}
	if a.Announced.After(now) {
		return fmt.Errorf("--announced: %s is in the future; announce the end then, or omit --announced for today",
			FormatTime(a.Announced))
	}
	if first := twelveMonthsAfter(a.Announced); a.Sunset.Before(first) {
		return fmt.Errorf("--sunset: %s is less than twelve months after the announcement on %s; the earliest possible date is %s",
			FormatTime(a.Sunset), FormatTime(a.Announced), FormatTime(first))
	}
	return checkAhead("--sunset", a.Sunset, now)
}

// checkPostpone returns the reason why a sunset is refused; nil if it is allowed.
func (s *State) checkPostpone(sunset, now time.Time) error {
	a, err := s.requireAnnouncement()
	if err != nil {
		return err
	}
	if !sunset.After(a.Sunset) {
		return fmt.Errorf("--sunset: %s is not after %s, and the end of version 1 can only be moved to a later date. You can withdraw the "+
			"announcement with partnerapi v1 cancel, but a new announcement requires another twelve months' notice", FormatTime(sunset), FormatTime(a.Sunset))
	}
	return checkAhead("--sunset", sunset, now)
}

// checkAhead returns an error if the time of a flag is more than maxAheadYears in the future.
func checkAhead(flag string, t, now time.Time) error {
	if last := now.AddDate(maxAheadYears, 0, 0); t.After(last) {
		return fmt.Errorf("%s: %s is more than %d years away", flag, FormatTime(t), maxAheadYears)
	}
	return nil
}

// checkSetting returns the reason why a setting, which needs no ID yet, is refused; nil if it is allowed.
func (s *State) checkSetting(set Setting, now time.Time) error {
	if set.Scope != (Scope{}) || set.Phase != On { // setting all keys to On reverses the end
		if err := s.checkNotEnded(); err != nil {
			return err
		}
	}
	if set.Until.IsZero() {
		return nil
	}
	if !set.Until.After(now) {
		return fmt.Errorf("--until: %s is not after the current time, %s", FormatTime(set.Until), FormatTime(now))
	}
	return checkAhead("--until", set.Until, now)
}

// checkBrownout returns the reason why a brownout, which needs no ID yet, is refused; nil if it is allowed.
func (s *State) checkBrownout(w Window, now time.Time) error {
	if err := s.checkNotEnded(); err != nil {
		return err
	}
	if err := w.check(); err != nil {
		return err
	}
	if !w.Ends().After(now) {
		return fmt.Errorf("--start: the last window ended on %s, which is in the past", FormatTime(w.Ends()))
	}
	if err := checkAhead("--start", w.Ends(), now); err != nil {
		return err
	}

	brownouts, windows := 1, w.Count
	for _, other := range s.Windows {
		if other.Ends().After(now) {
			brownouts, windows = brownouts+1, windows+other.Count
		}
	}
	if brownouts > maxBrownouts || windows > maxWindows {
		return fmt.Errorf("with this one, there would be %d brownouts with %d windows; the limits are %d and %d. List them with partnerapi v1 brownout "+
			"list and remove one with partnerapi v1 brownout cancel", brownouts, windows, maxBrownouts, maxWindows)
	}
	return nil
}

// check returns an error if the schedule is invalid by itself.
func (w Window) check() error {
	switch {
	case w.For < time.Second || w.For > maxFor || w.For%time.Second != 0:
		return fmt.Errorf("--for: %v is not a whole number of seconds between 1s and %v", w.For, maxFor)
	case w.Count < 1 || w.Count > maxWindows:
		return fmt.Errorf("--count must be between 1 and %[2]d: %[1]d", w.Count, maxWindows)
	case w.Count == 1 && w.Every != 0:
		return errors.New("--every requires a --count of at least 2")
	case w.Count > 1 && w.Every == 0:
		return errors.New("--count requires --every, the time from the start of one window to the next")
	case w.Count > 1 && (w.Every < w.For || w.Every > maxEvery || w.Every%time.Second != 0):
		return fmt.Errorf("--every: %v is not a whole number of seconds between --for (%v) and %v", w.Every, w.For, maxEvery)
	case time.Duration(w.Count) > math.MaxInt64/max(w.Every, 1): // Ends would overflow: 292 years
		return fmt.Errorf("--every: %v times --count %d is more than %d years", w.Every, w.Count, maxAheadYears)
	case len(w.Keys) > maxKeys:
		return fmt.Errorf("--keys: %d keys exceed the maximum of %d; add another brownout for the others", len(w.Keys), maxKeys)
	}
	return nil
}
