package retire

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"partnerapi/domain"
)

// Announcement says that v1 ends, and when.
type Announcement struct {
	// Announced is when its callers could read of it, Sunset when v1 ends: at least twelve
	// months later. The sunset refuses nobody anything; ending v1 does.
	Announced, Sunset time.Time
}

// Moment writes a time as short as it can be given: a day, where it begins one in UTC.
func Moment(t time.Time) string {
	if t = t.UTC(); domain.DateOf(t).Time().Equal(t) {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}

// Deprecation is the value of the header that says since when v1 is deprecated
// (RFC 9745).
func (a Announcement) Deprecation() string { return "@" + strconv.FormatInt(a.Announced.Unix(), 10) }

// SunsetHeader is the value of the header that says when v1 ends (RFC 8594).
func (a Announcement) SunsetHeader() string { return a.Sunset.UTC().Format(http.TimeFormat) }

// Facts are what a State is made of, as the database has it.
type Facts struct {
	// Announcement is zero where nothing is announced.
	Announcement Announcement
	// EndedAt is when v1 was ended; zero while it was not.
	EndedAt time.Time
	// Release is the release of v2 that was served last; empty where none was yet.
	Release string
	// Settings and Windows are in any order. What is over may be among them.
	Settings []Setting
	Windows  []Window
}

// State is how far the retirement of v1 is. Nothing changes it, so it may be used
// by any number of requests. The zero State is v1 without any retirement.
type State struct {
	facts    Facts
	settings map[Scope][]Setting // the newest first
	// deprecation and sunset are what Headers returns.
	deprecation, sunset []string
}

// NewState makes a State. It keeps the facts, which must not be changed then.
func NewState(f Facts) *State {
	s := &State{facts: f, settings: map[Scope][]Setting{}}
	if a, ok := s.Announcement(); ok {
		s.deprecation, s.sunset = []string{a.Deprecation()}, []string{a.SunsetHeader()}
	}
	for _, setting := range f.Settings {
		s.settings[setting.Scope] = append(s.settings[setting.Scope], setting)
	}
	for _, list := range s.settings {
		slices.SortFunc(list, func(a, b Setting) int { return cmp.Compare(b.ID, a.ID) })
	}
	return s
}

// Announcement returns the announcement that stands; ok is false where none does.
func (s *State) Announcement() (a Announcement, ok bool) {
	return s.facts.Announcement, s.facts.Announcement != Announcement{}
}

// Headers returns the values of the headers Deprecation and Sunset; nil where nothing
// is announced. They are those of every response, and must not be changed.
func (s *State) Headers() (deprecation, sunset []string) { return s.deprecation, s.sunset }

// Idle reports whether no key is refused anything, now or later.
func (s *State) Idle() bool { return len(s.facts.Settings) == 0 && s.facts.EndedAt.IsZero() }

// Ended returns when v1 was ended; ok is false while it was not.
func (s *State) Ended() (at time.Time, ok bool) { return s.facts.EndedAt, !s.facts.EndedAt.IsZero() }

// Release is the release of v2 that was served last, as text; empty where none was
// yet.
func (s *State) Release() string { return s.facts.Release }

// Windows lists the schedules of brownouts, in the order in which they were added.
// What is over may be among them.
func (s *State) Windows() []Window { return slices.Clone(s.facts.Windows) }

// PhaseOf returns the phase that a key is in, and until when; zero means for good.
// When v1 has ended, each key is off.
func (s *State) PhaseOf(key Key, now time.Time) (phase Phase, until time.Time) {
	if _, ended := s.Ended(); ended {
		return Off, time.Time{}
	}
	newest := Setting{Phase: On}
	for _, scope := range [...]Scope{{Key: key.ID}, {Partner: key.Partner}, {}} {
		for _, setting := range s.settings[scope] {
			if setting.lasts(now) {
				if setting.ID > newest.ID {
					newest = setting
				}
				break
			}
		}
	}
	return newest.Phase, newest.Until
}

// Refusal is why v1 refuses a request, and for how long.
type Refusal struct {
	// Phase is the phase of the key.
	Phase Phase
	// Until is the first moment at which v1 does not refuse the same request of the
	// key any more, as far as that is settled; zero means never.
	Until time.Time
}

// Refused reports whether v1 refuses what a key asks for, which write says is a
// write. Where windows of brownouts touch or overlap, or one phase that refuses it
// follows another, that is one refusal.
func (s *State) Refused(key Key, write bool, now time.Time) (Refusal, bool) {
	first, _ := s.PhaseOf(key, now)
	for t := now; ; {
		phase, until := s.PhaseOf(key, t)
		refused := phase == Off || phase == ReadOnly && write
		if phase == Brownout {
			over := s.windowsEnd(key.ID, t)
			refused = over.After(t)
			if until.IsZero() || over.Before(until) {
				t, refused = over, false
			}
		}

		switch {
		case !refused:
			return Refusal{Phase: first, Until: t}, t.After(now)
		case until.IsZero():
			return Refusal{Phase: first}, true
		}
		t = until
	}
}

// windowsEnd is the first moment from t on that is in no window for a key.
func (s *State) windowsEnd(key domain.KeyID, t time.Time) time.Time {
	for {
		start := t
		for _, w := range s.facts.Windows {
			if from, to, ok := w.Next(t); ok && !from.After(t) && w.isFor(key) {
				t = to
			}
		}
		if t.Equal(start) {
			return t
		}
	}
}
