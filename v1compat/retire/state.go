// Package retire is how version 1 of the interface ends (decisions 11): the
// announcement, which key is in which phase, the brownouts, and the end. A State
// says what holds; it is a value that nothing changes, and its methods take the
// time. A Store keeps it in the database, where commands change it, and a Keeper
// follows it there, in each process that serves v1. The package can be deleted
// with v1.
package retire

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"partnerapi/domain"
)

// Announcement says that v1 ends, and when.
type Announcement struct {
	// Announced is when its callers could read of it, Sunset when v1 ends: at least twelve
	// months later. The sunset refuses no request; ending v1 does.
	Announced, Sunset time.Time
}

// FormatTime writes a time as short as it can be given: a day, where it begins one in UTC.
func FormatTime(t time.Time) string {
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

// State is how far the retirement of v1 is. Nothing changes it, so it may be used
// by any number of requests. The zero State is v1 without any retirement.
type State struct {
	// Announcement is nil while nothing is announced.
	Announcement *Announcement
	// EndedAt is when v1 was ended; nil while it was not.
	EndedAt *time.Time
	// Release is the release of v2 that was served last, as text; empty where none
	// was yet.
	Release string
	// NewKeysOff says that keys which are made from now on have no v1.
	NewKeysOff bool
	// Windows are in the order in which they were added. What is over may be among them,
	// and among the Settings.
	Settings Settings
	Windows  []Window
	// Rehearsals are when the rehearsals of keys end.
	Rehearsals map[domain.KeyID]time.Time
}

// Unrestricted reports whether no key is refused anything, now or later.
func (s *State) Unrestricted() bool {
	return s.Settings.Len() == 0 && len(s.Rehearsals) == 0 && s.EndedAt == nil
}

// PhaseOf returns the phase that a key is in, and until when; zero means for good.
// When v1 has ended, each key is off.
func (s *State) PhaseOf(key Key, now time.Time) (phase Phase, until time.Time) {
	if s.EndedAt != nil {
		return Off, time.Time{}
	}
	newest := s.Settings.newest(key, now)
	return newest.Phase, newest.Until
}

// PhaseOfNewKeys returns the phase of keys that are made from now on.
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
	// Until is when the phase ends, or the windows of brownouts before it, or the
	// rehearsal; zero means never. What follows may refuse the request too.
	Until time.Time
	// Rehearsal says that the key is off by its own wish.
	Rehearsal bool
}

// Refused reports whether v1 refuses what a key asks for, which write says is a
// write: by its phase, or else as it rehearses.
func (s *State) Refused(key Key, write bool, now time.Time) (Refusal, bool) {
	if refusal, refused := s.refusedByPhase(key, write, now); refused {
		return refusal, true
	}
	if ends := s.Rehearsals[key.ID]; now.Before(ends) {
		return Refusal{Phase: Off, Until: ends, Rehearsal: true}, true
	}
	return Refusal{}, false
}

// refusedByPhase is Refused without rehearsals.
func (s *State) refusedByPhase(key Key, write bool, now time.Time) (Refusal, bool) {
	phase, until := s.PhaseOf(key, now)
	switch phase {
	case Off:
		return Refusal{Phase: phase, Until: until}, true
	case ReadOnly:
		return Refusal{Phase: phase, Until: until}, write
	case Brownout:
		end := s.windowsEnd(key.ID, now)
		if until.IsZero() || end.Before(until) {
			until = end
		}
		return Refusal{Phase: phase, Until: until}, end.After(now)
	}
	return Refusal{}, false
}

// windowsEnd is the first moment from t on that is in no window for a key.
func (s *State) windowsEnd(key domain.KeyID, t time.Time) time.Time {
	for {
		start := t
		for _, w := range s.Windows {
			if from, to, ok := w.Next(t); ok && !from.After(t) && w.covers(key) {
				t = to
			}
		}
		if t.Equal(start) {
			return t
		}
	}
}

// Phase says what v1 answers a key (decisions 11.6).
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
	return "", fmt.Errorf("%q is no phase: use on, read_only, brownout or off", text)
}

// Key is an API key and the partner whose it is.
type Key struct {
	ID      domain.KeyID
	Partner domain.PartnerID
}

// KeyOf is the key that makes a request.
func KeyOf(c *domain.Caller) Key { return Key{c.Key, c.Partner} }

// Scope is the keys that a phase is set for: one key, all keys of a partner, or all
// keys, which is the zero Scope. A key that is created later has a setting of its own
// from the moment on at which it is created, which is newer (decisions 11.11).
type Scope struct {
	Key     domain.KeyID
	Partner domain.PartnerID
}

// Setting is a phase that was set for a scope. The newest setting of a key that
// still lasts is its phase. So a key returns, after a setting with an end, to what
// holds for it by then without that setting: to an older one that lasts longer, or
// to one that was for good. Where none lasts a key is on.
type Setting struct {
	// ID is higher than those of all older settings.
	ID int64
	Scope
	Phase Phase
	// Until is the first moment at which the setting does not last any more; zero
	// means that it is for good.
	Until time.Time
}

// isActive reports whether the setting is not over.
func (s Setting) isActive(now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }

// Settings are settings by what they are for, so that a request looks only at those that
// may be its key's. The zero Settings is none.
type Settings struct {
	all      []Setting
	partners map[domain.PartnerID][]Setting
	keys     map[domain.KeyID][]Setting
	count    int
}

// NewSettings returns the settings of a list in any order.
func NewSettings(list ...Setting) Settings {
	s := Settings{partners: map[domain.PartnerID][]Setting{}, keys: map[domain.KeyID][]Setting{}, count: len(list)}
	for _, set := range list {
		switch {
		case !set.Key.IsZero():
			s.keys[set.Key] = append(s.keys[set.Key], set)
		case !set.Partner.IsZero():
			s.partners[set.Partner] = append(s.partners[set.Partner], set)
		default:
			s.all = append(s.all, set)
		}
	}
	return s
}

// Len returns how many settings there are.
func (s Settings) Len() int { return s.count }

// newest returns a key's newest setting that lasts; On for good where there is none.
func (s Settings) newest(key Key, now time.Time) Setting {
	newest := Setting{Phase: On}
	for _, list := range [...][]Setting{s.all, s.partners[key.Partner], s.keys[key.ID]} {
		for _, set := range list {
			if set.ID > newest.ID && set.isActive(now) {
				newest = set
			}
		}
	}
	return newest
}

// Window is the schedule of a brownout: Count windows, each as long as For, the
// first from Start on, and each of the others Every after the one before. A window
// holds its first moment and not its last.
type Window struct {
	ID    int64
	Start time.Time
	For   time.Duration
	// Every is at least For; 0 where Count is 1.
	Every time.Duration
	Count int
	// Keys are those that the windows are for; none means all. Only keys that are
	// in the phase Brownout are refused.
	Keys []domain.KeyID
}

// Ends is the end of the last window.
func (w Window) Ends() time.Time {
	return w.Start.Add(time.Duration(w.Count-1)*w.Every + w.For)
}

// Next returns the window that holds now or else the next one; ok is false when all
// are over.
func (w Window) Next(now time.Time) (from, to time.Time, ok bool) {
	n := 0
	if past := now.Sub(w.Start); past >= w.For && w.Every > 0 {
		n = int((past-w.For)/w.Every) + 1
	}
	from = w.Start.Add(time.Duration(n) * w.Every)
	to = from.Add(w.For)
	return from, to, n < w.Count && now.Before(to)
}

// covers reports whether the windows are for a key.
func (w Window) covers(key domain.KeyID) bool {
	return len(w.Keys) == 0 || slices.Contains(w.Keys, key)
}
