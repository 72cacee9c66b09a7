package v1cmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
)

// span is a phase or a brownout on the time axis.
type span struct {
	// What is the phase or the brownout, such as "phase off" or "brownout 3", and Keys the keys that it is for.
	What string `json:"what"`
	Keys string `json:"keys"`
	// From is when the phase was set, or when the first window of the brownout begins. To is the end of the phase or of
	// the last window; null for a phase without an end.
	From domain.Time  `json:"from"`
	To   *domain.Time `json:"to"`
	// Windows is the number of windows of a brownout; 0 for a phase.
	Windows int `json:"windows"`
	// Refused is how many requests it refused in the last 400 days; null for phase brownout, in which brownouts refuse.
	Refused *int64 `json:"refused"`

	window retire.Window // of a brownout
}

// names are the keys and partners that settings and windows name.
type names struct {
	keys     map[domain.KeyID]db.Key
	partners map[domain.PartnerID]string
}

// namesOf returns the names of keys and of their partners.
func namesOf(keys []db.Key) names {
	n := names{map[domain.KeyID]db.Key{}, map[domain.PartnerID]string{}}
	for _, k := range keys {
		n.keys[k.ID], n.partners[k.PartnerID] = k, k.Partner
	}
	return n
}

// key returns the prefix of a key, or its ID if it is no longer in the database.
func (n names) key(id domain.KeyID) string { return cmp.Or(n.keys[id].Prefix, id.UUID()) }

// scope names the keys of a scope.
func (n names) scope(s retire.Scope) string {
	switch {
	case !s.Key.IsZero():
		return n.key(s.Key)
	case !s.Partner.IsZero():
		return "keys of " + cmp.Or(n.partners[s.Partner], s.Partner.UUID())
	}
	return "all keys"
}

// spans returns the phases in force but On, and the brownouts, each in the order in which they were set. If
// only is not zero, they are those that concern this key.
func (n names) spans(state *retire.State, refusals map[usage.Cause]int64, only db.Key, now time.Time) []span {
	list := []span{}
	for _, s := range state.Settings.All() {
		concerns := only.ID.IsZero() || s.Scope == retire.Scope{} || s.Key == only.ID || s.Partner == only.PartnerID
		if s.Phase == retire.On || !concerns || !s.Until.IsZero() && !s.Until.After(now) {
			continue
		}
		phase := span{
			What: "phase " + string(s.Phase), Keys: n.scope(s.Scope), From: domain.At(s.SetAt), To: domain.MaybeAt(domain.OrNil(s.Until)),
		}
		if s.Phase != retire.Brownout {
			phase.Refused = new(refusals[usage.Cause{Kind: usage.PhaseCause, ID: s.ID}])
		}
		list = append(list, phase)
	}
	for _, w := range state.Windows {
		if !only.ID.IsZero() && len(w.Keys) > 0 && !slices.Contains(w.Keys, only.ID) {
			continue
		}
		list = append(list, span{
			What: fmt.Sprint("brownout ", w.ID), Keys: n.covered(w), From: domain.At(w.Start), To: domain.MaybeAt(new(w.Ends())),
			Windows: w.Count, Refused: new(refusals[usage.Cause{Kind: usage.BrownoutCause, ID: w.ID}]), window: w,
		})
	}
	return list
}

// maxNamed is the maximum number of keys that a brownout names.
const maxNamed = 3

// covered names the keys that a brownout covers.
func (n names) covered(w retire.Window) string {
	if len(w.Keys) == 0 {
		return "all keys in phase brownout"
	}
	var prefixes []string
	for _, id := range w.Keys[:min(len(w.Keys), maxNamed)] {
		prefixes = append(prefixes, n.key(id))
	}
	text := strings.Join(prefixes, ", ")
	if more := len(w.Keys) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// When formats when the phase holds, or the windows of the brownout.
func (s span) When() string {
	switch {
	case s.Windows > 0:
		return describeWindows(s.window)
	case s.To == nil:
		return "since " + output.FormatTime(&s.From.Time)
	}
	return "from " + output.FormatTime(&s.From.Time) + " until " + output.FormatTime(&s.To.Time)
}

// Next formats until when the phase holds, or when the next window of the brownout begins.
func (s span) Next(now time.Time) string {
	switch {
	case s.Windows > 0:
		return describeNext(s.window, now)
	case s.To == nil:
		return "no end"
	}
	return "until " + output.FormatTime(&s.To.Time)
}

// Label names the span on the time axis, with the number of requests that it refused.
func (s span) Label() string {
	text := s.What + ": " + s.Keys
	if s.Refused != nil {
		text += ", " + output.Grouped(*s.Refused) + " × 410"
	}
	return text
}

// RefusedText formats the number of refused requests.
func (s span) RefusedText() string {
	if s.Refused == nil {
		return "-"
	}
	return output.Grouped(*s.Refused)
}

// bars returns the times of the phase or of the windows, up to a time.
func (s span) bars(end time.Time) (list [][2]time.Time) {
	if s.Windows == 0 {
		to := end
		if s.To != nil {
			to = s.To.Time
		}
		return [][2]time.Time{{s.From.Time, to}}
	}
	for i := range s.window.Count {
		from := s.window.Start.Add(time.Duration(i) * s.window.Every)
		if from.After(end) {
			break
		}
		list = append(list, [2]time.Time{from, from.Add(s.window.For)})
	}
	return list
}
