// Package retire implements the end of version 1 of the interface (decisions 11): the announcement, the phases of keys,
// the brownouts, and the end. A State is an immutable snapshot, whose methods take the time. A Store keeps it in the
// database, where commands change it. Each process that serves v1 follows it with a Keeper. The package can be deleted
// with v1.
package retire

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// Announcement is the announcement that v1 ends.
type Announcement struct {
	// Announced is when callers could first read of the end, Sunset the planned end, at
	// least twelve months later. The sunset refuses no request; ending v1 does.
	Announced, Sunset time.Time
}

// FormatTime formats a time in UTC: as a date if it is midnight, otherwise as RFC 3339.
func FormatTime(t time.Time) string {
	if t = t.UTC(); domain.DateOf(t).Time().Equal(t) {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}

// Deprecation returns the value of the Deprecation header (RFC 9745): when the end was announced.
func (a Announcement) Deprecation() string { return "@" + strconv.FormatInt(a.Announced.Unix(), 10) }

// SunsetHeader returns the value of the Sunset header (RFC 8594).
func (a Announcement) SunsetHeader() string { return a.Sunset.UTC().Format(http.TimeFormat) }

// Postponement is a move of the sunset to a later time.
type Postponement struct{ At, Previous, Sunset time.Time }

// State is the state of v1's retirement. It is immutable, and so safe for concurrent
// use. The zero State is v1 without any retirement.
type State struct {
	// Announcement is nil while nothing is announced.
	Announcement *Announcement
	// Postponements are those of the Announcement, or of one that was withdrawn, oldest first. Earlier versions did not
	// record them.
	Postponements []Postponement
	// EndedAt is when v1 was ended; nil if it was not.
	EndedAt *time.Time
	// Release is the release of v2 that was served last, as text; empty if none is recorded.
	Release string
	// NewKeysOff reports whether keys created from now on are in the phase Off.
	NewKeysOff bool
	// Windows are in the order in which they were added. Windows and Settings may include some that are over.
	Settings Settings
	Windows  []Window
	// Rehearsals maps keys to the end of their rehearsal.
	Rehearsals map[domain.KeyID]time.Time
}

// Unrestricted reports whether no key is refused anything, now or later. Windows refuse only keys with a Setting.
func (s *State) Unrestricted() bool {
	return len(s.Settings) == 0 && len(s.Rehearsals) == 0 && s.EndedAt == nil
}

// PhaseOf returns a key's phase and its end; zero means that it has no end. When v1 has ended, every key is Off.
func (s *State) PhaseOf(key Key, now time.Time) (phase Phase, until time.Time) {
	if s.EndedAt != nil {
		return Off, time.Time{}
	}
	newest := s.Settings.newest(key, now)
	return newest.Phase, newest.Until
}

// PhaseOfNewKeys returns the phase of keys created from now on.
func (s *State) PhaseOfNewKeys() Phase {
	if s.NewKeysOff || s.EndedAt != nil {
		return Off
	}
	return On
}

// Refusal is why v1 refuses a request, and for how long.
type Refusal struct {
	// Phase is the phase of the key.
	Phase Phase
	// Until is the end of the phase, of the brownout windows if earlier, or of the
	// rehearsal; zero means never. The next phase may refuse the request too.
	Until time.Time
	// Rehearsal reports whether a rehearsal of the caller refuses the request.
	Rehearsal bool
	// Cause is the setting or the brownout that refuses the request; none for a rehearsal.
	Cause usage.Cause
}

// Refused reports whether v1 refuses a request of the key, by its phase, otherwise by a rehearsal, and why. write
// reports whether the request writes.
func (s *State) Refused(key Key, write bool, now time.Time) (Refusal, bool) {
	if refusal, refused := s.refusedByPhase(key, write, now); refused {
		return refusal, true
	}
	if end := s.Rehearsals[key.ID]; now.Before(end) {
		return Refusal{Phase: Off, Until: end, Rehearsal: true}, true
	}
	return Refusal{}, false
}

// refusedByPhase reports whether v1 refuses a request of the key by its phase, and why. It ignores rehearsals.
func (s *State) refusedByPhase(key Key, write bool, now time.Time) (Refusal, bool) {
	phase, until := s.PhaseOf(key, now)
	cause := usage.Cause{Kind: usage.PhaseCause, ID: s.Settings.newest(key, now).ID}
	switch phase {
	case Off:
		return Refusal{Phase: phase, Until: until, Cause: cause}, true
	case ReadOnly:
		return Refusal{Phase: phase, Until: until, Cause: cause}, write
	case Brownout:
		end := s.windowsEnd(key.ID, now)
		if until.IsZero() || end.Before(until) {
			until = end
		}
		return Refusal{Phase: phase, Until: until, Cause: s.openBrownout(key.ID, now)}, end.After(now) // end is now if no window is open
	}
	return Refusal{}, false
}

// openBrownout returns the first brownout with an open window that covers the key, as a cause; none if there is none.
func (s *State) openBrownout(key domain.KeyID, now time.Time) usage.Cause {
	for _, w := range s.Windows {
		if from, _, ok := w.Next(now); ok && !from.After(now) && w.covers(key) {
			return usage.Cause{Kind: usage.BrownoutCause, ID: w.ID}
		}
	}
	return usage.Cause{}
}

// windowsEnd returns the first time from t on at which no window covers the key: t itself, or the end of a window and
// of those that follow it without a gap.
func (s *State) windowsEnd(key domain.KeyID, t time.Time) time.Time {
	for {
		before := t
		for _, w := range s.Windows {
			if from, to, ok := w.Next(t); ok && !from.After(t) && w.covers(key) {
				t = to
			}
		}
		if t.Equal(before) {
			return t
		}
	}
}

// Phase is the set of requests that v1 answers a key (decisions 11.6).
type Phase string

// The phases.
const (
	On       Phase = "on"        // everything
	ReadOnly Phase = "read_only" // reads; writes are refused
	Brownout Phase = "brownout"  // everything but in the windows of brownouts
	Off      Phase = "off"       // nothing
)

// Phases lists the phases, from the one that refuses nothing.
var Phases = []Phase{On, ReadOnly, Brownout, Off}

// ParsePhase reads the name of a phase.
func ParsePhase(text string) (Phase, error) {
	if p := Phase(text); slices.Contains(Phases, p) {
		return p, nil
	}
	return "", fmt.Errorf("%q is not a phase; use on, read_only, brownout or off", text)
}

// Key is an API key and the partner that it belongs to.
type Key struct {
	ID      domain.KeyID
	Partner domain.PartnerID
}

// KeyOf returns the key of a caller.
func KeyOf(c *domain.Caller) Key { return Key{c.Key, c.Partner} }

// Scope selects the keys for which a phase is set: one key, all keys of a partner, or, as the zero Scope, all keys. A
// key created later gets its own setting on creation, which is newer and so decides (decisions 11.6).
type Scope struct {
	Key     domain.KeyID
	Partner domain.PartnerID
}

// Setting is a phase that was set for a scope. A key's phase is its newest active setting's; On if it has none.
// So when a setting with an end expires, the key returns to an older one that ends later or never.
type Setting struct {
	// ID is higher than the IDs of all older settings.
	ID int64
	Scope
	Phase Phase
	// Until is the first time at which the setting is not active; zero means that it does not expire.
	Until time.Time
	// SetAt is when it was set.
	SetAt time.Time
}

// isActive reports whether the setting has not expired.
func (s Setting) isActive(now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }

// Settings are settings by their scope, so that a request looks only at those that may apply to its key.
type Settings map[Scope][]Setting

// NewSettings returns the settings of a list in any order.
func NewSettings(list ...Setting) Settings {
	s := Settings{}
	for _, set := range list {
		s[set.Scope] = append(s[set.Scope], set)
	}
	return s
}

// All returns the settings in the order in which they were set.
func (s Settings) All() []Setting {
	return slices.SortedFunc(func(yield func(Setting) bool) {
		for _, list := range s {
			for _, set := range list {
				if !yield(set) {
					return
				}
			}
		}
	}, func(a, b Setting) int { return cmp.Compare(a.ID, b.ID) })
}

// Len returns the number of settings.
func (s Settings) Len() (n int) {
	for _, list := range s {
		n += len(list)
	}
	return n
}

// newest returns a key's newest active setting; On without an end if there is none.
func (s Settings) newest(key Key, now time.Time) Setting {
	newest := Setting{Phase: On}
	for _, scope := range [...]Scope{{}, {Partner: key.Partner}, {Key: key.ID}} {
		for _, set := range s[scope] {
			if set.ID > newest.ID && set.isActive(now) {
				newest = set
			}
		}
	}
	return newest
}

// Window is the schedule of a brownout: Count windows of length For, the first at Start, each later one Every after the
// start of the one before. A window includes its start and excludes its end.
type Window struct {
	ID    int64
	Start time.Time
	For   time.Duration
	// Every is at least For; 0 where Count is 1.
	Every time.Duration
	Count int
	// Keys are the keys that the windows cover; none means all. Only keys in the phase Brownout are refused.
	Keys []domain.KeyID
}

// Ends returns the end of the last window.
func (w Window) Ends() time.Time { return w.Start.Add(time.Duration(w.Count-1)*w.Every + w.For) }

// Next returns the window that contains now, otherwise the next one; ok is false when all are over.
func (w Window) Next(now time.Time) (from, to time.Time, ok bool) {
	n := 0
	if past := now.Sub(w.Start); past >= w.For && w.Every > 0 {
		n = int((past-w.For)/w.Every) + 1
	}
	from = w.Start.Add(time.Duration(n) * w.Every)
	to = from.Add(w.For)
	return from, to, n < w.Count && now.Before(to)
}

// covers reports whether the windows cover a key: one of Keys, or any if there are none.
func (w Window) covers(key domain.KeyID) bool {
	return len(w.Keys) == 0 || slices.Contains(w.Keys, key)
}
