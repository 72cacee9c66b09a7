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
	// months later. The sunset refuses nobody anything; ending v1 does.
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
	// Settings are in any order, Windows in the order in which they were added. What
	// is over may be among them.
	Settings []Setting
	Windows  []Window
}

// Unrestricted reports whether no key is refused anything, now or later.
func (s *State) Unrestricted() bool { return len(s.Settings) == 0 && s.EndedAt == nil }

// PhaseOf returns the phase that a key is in, and until when; zero means for good.
// When v1 has ended, each key is off.
func (s *State) PhaseOf(key Key, now time.Time) (phase Phase, until time.Time) {
	if s.EndedAt != nil {
		return Off, time.Time{}
	}
	newest := Setting{Phase: On}
	for _, setting := range s.Settings {
		if setting.ID > newest.ID && setting.isActive(now) && setting.covers(key) {
			newest = setting
		}
	}
	return newest.Phase, newest.Until
}

// Refusal is why v1 refuses a request, and for how long.
type Refusal struct {
	// Phase is the phase of the key.
	Phase Phase
	// Until is when the phase ends, or the windows of brownouts before it; zero means
	// never. The phase that follows may refuse the request too.
	Until time.Time
}

// Refused reports whether v1 refuses what a key asks for, which write says is a
// write.
func (s *State) Refused(key Key, write bool, now time.Time) (Refusal, bool) {
	phase, until := s.PhaseOf(key, now)
	switch phase {
	case Off:
		return Refusal{phase, until}, true
	case ReadOnly:
		return Refusal{phase, until}, write
	case Brownout:
		end := s.windowsEnd(key.ID, now)
		if until.IsZero() || end.Before(until) {
			until = end
		}
		return Refusal{phase, until}, end.After(now)
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
// keys there are, which is the zero Scope. Keys that are created later are in the
// scopes of their partner and of all.
type Scope struct {
	Key     domain.KeyID
	Partner domain.PartnerID
}

// covers reports whether a key is one of the scope's.
func (s Scope) covers(k Key) bool {
	return s == Scope{} || s == Scope{Key: k.ID} || s == Scope{Partner: k.Partner}
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
