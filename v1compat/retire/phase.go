// Package retire is how version 1 of the interface ends (decisions 11): the
// announcement, which key is in which phase, the brownouts, and the end. A State
// says what holds; it is a value that nothing changes, and its methods take the
// time. A Store keeps it in the database, where commands change it, and a Keeper
// follows it there, in each process that serves v1. The package can be deleted
// with v1.
package retire

import (
	"fmt"
	"slices"
	"time"

	"partnerapi/domain"
)

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

// lasts reports whether the setting is not over.
func (s Setting) lasts(now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }
