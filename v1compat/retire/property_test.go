//go:build slow

package retire

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// model is the retirement told naively: each key carries the story of its phases as
// a function of time, windows are looked through one by one, and nothing is ever
// forgotten.
type model struct {
	announced, sunset time.Time // zero: nothing is announced
	ended             bool
	keys              []*modelKey
	newOff            bool // new keys have no v1
	windows           map[int64]Window
	// edges are the moments at which something may begin or end.
	edges []time.Time
}

type modelKey struct {
	Key
	phase func(time.Time) Phase
}

// newKey adds a key of one of two partners, which no setting of before is for; allowed is
// that it has v1 though new keys have none.
func (m *model) newKey(n, partner byte, allowed bool) {
	phase := On
	if m.ended || m.newOff && !allowed {
		phase = Off
	}
	m.keys = append(m.keys, &modelKey{Key{domain.KeyID{n}, domain.PartnerID{partner}}, func(time.Time) Phase { return phase }})
}

// set sets a phase for the keys of a scope.
func (m *model) set(of Scope, phase Phase, until time.Time) {
	m.edges = append(m.edges, until)
	for _, k := range m.keys {
		if of.Key != (domain.KeyID{}) && of.Key != k.ID || of.Partner != (domain.PartnerID{}) && of.Partner != k.Partner {
			continue
		}
		before := k.phase
		k.phase = func(t time.Time) Phase {
			if !until.IsZero() && !t.Before(until) {
				return before(t)
			}
			return phase
		}
	}
}

// refuses reports whether a request is to be refused at a time.
func (m *model) refuses(k *modelKey, write bool, t time.Time) bool {
	if m.ended {
		return true
	}
	switch k.phase(t) {
	case Off:
		return true
	case ReadOnly:
		return write
	case Brownout:
		for _, w := range m.windows {
			if len(w.Keys) > 0 && !slices.Contains(w.Keys, k.ID) {
				continue
			}
			for from := w.Start; from.Before(w.Ends()); from = from.Add(max(w.Every, w.For)) {
				if !t.Before(from) && t.Before(from.Add(w.For)) {
					return true
				}
			}
		}
	}
	return false
}

// check holds what a process does at a time against the model: whether each key is
// refused, and that it is until then.
func (m *model) check(t *rapid.T, s *State, now time.Time) {
	later := slices.DeleteFunc(slices.Clone(m.edges), func(e time.Time) bool { return !e.After(now) })
	slices.SortFunc(later, time.Time.Compare)
	for _, k := range m.keys {
		for _, write := range []bool{false, true} {
			got, refused := s.Refused(k.Key, write, now)
			if refused != m.refuses(k, write, now) {
				t.Fatalf("at %v key %v, write %v: refused is %v", now, k.Key, write, refused)
			}
			if !refused {
				continue
			}
			for _, edge := range later {
				if (got.Until.IsZero() || edge.Before(got.Until)) && !m.refuses(k, write, edge) {
					t.Fatalf("at %v key %v, write %v: refused until %v, not %v", now, k.Key, write, got.Until, edge)
				}
			}
		}
	}
	if (s.PhaseOfNewKeys() == Off) != (m.newOff || m.ended) {
		t.Fatalf("new keys are in phase %s", s.PhaseOfNewKeys())
	}
	if a := s.Announcement; (a == nil) != m.announced.IsZero() ||
		a != nil && (!a.Announced.Equal(m.announced) || !a.Sunset.Equal(m.sunset)) {
		t.Fatalf("announced: %v", a)
	}
}

// machine is the commands, the clock and a process that is restarted, beside the
// model.
type machine struct {
	*world
	rt   *rapid.T
	kept *Keeper
	model
}

// did wants a command to be refused, or not to be, and the process to follow.
func (m *machine) did(err error, allowed bool) bool {
	if allowed != (err == nil) {
		m.rt.Fatalf("allowed: %v, but: %v", allowed, err)
	}
	if err := m.kept.Refresh(m.t.Context()); err != nil {
		m.rt.Fatal(err)
	}
	return allowed
}

// soon is a time a little before or after now.
func (m *machine) soon(what string) time.Time {
	return m.clock.Now().Add(time.Duration(rapid.IntRange(-3, 12).Draw(m.rt, what)) * time.Minute)
}

func (m *machine) setPhase() {
	of := Scope{}
	switch n := rapid.IntRange(0, 4).Draw(m.rt, "scope"); {
	case n < 2 && len(m.keys) > 0:
		of.Key = rapid.SampledFrom(m.keys).Draw(m.rt, "key").ID
	case n < 4:
		of.Partner = domain.PartnerID{byte(rapid.IntRange(1, 2).Draw(m.rt, "partner"))}
	}
	phase := rapid.SampledFrom(Phases).Draw(m.rt, "phase")
	var until time.Time
	if rapid.Bool().Draw(m.rt, "for a while") {
		until = m.soon("until")
	}
	allowed := (until.IsZero() || until.After(m.clock.Now())) && (!m.ended || of == Scope{} && phase == On)
	err := m.SetPhase(m.t.Context(), of, phase, until)
	if !m.did(err, allowed) {
		return
	}
	m.ended = false
	m.set(of, phase, until)
}

func (m *machine) setNewKeys() {
	off := rapid.Bool().Draw(m.rt, "off")
	if m.did(m.SetNewKeys(m.t.Context(), off), !m.ended) {
		m.newOff = off
	}
}

// create makes a key, and gives it v1 where allow says so.
func (m *machine) create(allow bool) {
	if len(m.keys) == 6 {
		m.rt.Skip("enough keys")
	}
	n, partner := byte(len(m.keys)+1), byte(rapid.IntRange(1, 2).Draw(m.rt, "partner"))
	m.insertKey(n, partner)
	if allow && m.AllowNewKey(m.t.Context(), domain.KeyID{n}) == nil == m.ended {
		m.rt.Fatal("a key is given v1, and v1 has ended, or the other way round")
	}
	m.newKey(n, partner, allow)
	m.did(nil, true)
}

func (m *machine) addBrownout() {
	w := Window{Start: m.soon("start"), For: time.Duration(rapid.IntRange(1, 5).Draw(m.rt, "for")) * time.Minute, Count: 1}
	if w.Count = rapid.IntRange(1, 3).Draw(m.rt, "count"); w.Count > 1 {
		w.Every = w.For + time.Duration(rapid.IntRange(0, 3).Draw(m.rt, "pause"))*time.Minute
	}
	for _, k := range m.keys {
		if rapid.IntRange(0, 3).Draw(m.rt, "named") == 0 {
			w.Keys = append(w.Keys, k.ID)
		}
	}
	id, err := m.AddBrownout(m.t.Context(), w)
	if !m.did(err, !m.ended && w.Ends().After(m.clock.Now())) {
		return
	}
	m.windows[id] = w
	for from := w.Start; from.Before(w.Ends()); from = from.Add(max(w.Every, w.For)) {
		m.edges = append(m.edges, from, from.Add(w.For))
	}
}

func (m *machine) cancelBrownout() {
	id := int64(rapid.IntRange(1, 9).Draw(m.rt, "brownout"))
	_, there := m.windows[id]
	m.did(m.CancelBrownout(m.t.Context(), id), there)
	delete(m.windows, id)
}

func (m *machine) announce() {
	now := m.clock.Now()
	a := Announcement{Announced: now.AddDate(0, rapid.IntRange(-30, 1).Draw(m.rt, "announced"), 0)}
	a.Sunset = a.Announced.AddDate(0, rapid.IntRange(9, 15).Draw(m.rt, "notice"), 0)
	allowed := !m.ended && m.announced.IsZero() && !a.Announced.After(now) && !a.Sunset.Before(a.Announced.AddDate(1, 0, 0))
	if m.did(m.Announce(m.t.Context(), a), allowed) {
		m.announced, m.sunset = a.Announced, a.Sunset
	}
}

func (m *machine) postpone() {
	sunset := m.clock.Now().AddDate(0, rapid.IntRange(-12, 30).Draw(m.rt, "sunset"), 0)
	_, err := m.Postpone(m.t.Context(), sunset)
	if m.did(err, !m.ended && !m.announced.IsZero() && sunset.After(m.sunset)) {
		m.sunset = sunset
	}
}

func (m *machine) cancel() {
	_, err := m.Cancel(m.t.Context())
	if m.did(err, !m.ended && !m.announced.IsZero()) {
		m.announced, m.sunset = time.Time{}, time.Time{}
	}
}

func (m *machine) end() {
	e := EndRequest{Force: rapid.Bool().Draw(m.rt, "force")}
	if rapid.Bool().Draw(m.rt, "called") {
		e.Calls = []usage.LastCall{{Prefix: "pk_a"}}
	}
	now := m.clock.Now()
	allowed := !m.ended && !m.announced.IsZero() && !now.Before(m.sunset) && !now.Before(m.announced.AddDate(1, 0, 0)) &&
		(e.Force || len(e.Calls) == 0)
	if m.did(m.End(m.t.Context(), e), allowed) {
		m.ended = true
		m.set(Scope{}, Off, time.Time{})
	}
}

// restart loses all that the process knows.
func (m *machine) restart() {
	k, err := NewKeeper(m.t.Context(), m.Store)
	if err != nil {
		m.rt.Fatal(err)
	}
	m.kept = k
}

func (m *machine) wait() {
	m.clock.Advance(time.Duration(rapid.IntRange(1, 300).Draw(m.rt, "seconds")) * time.Second)
}

func (m *machine) waitLong() {
	m.clock.Advance(time.Duration(rapid.IntRange(1, 90).Draw(m.rt, "days")) * 24 * time.Hour)
}

// TestStateMachine: whatever commands are given, however time passes and whenever
// the process restarts, it refuses what the model does and nothing else, and the
// rules let through what the model's do.
func TestStateMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		_, err := w.sql.ExecContext(t.Context(), `TRUNCATE v1_phases, v1_brownouts RESTART IDENTITY;
			UPDATE v1_state SET announced_at = NULL, sunset_at = NULL, ended_at = NULL, new_keys_off = false;
			DELETE FROM api_keys; DELETE FROM partners`)
		w.must(err)
		w.clock.Set(noon)
		m := &machine{world: w, rt: rt, model: model{windows: map[int64]Window{}}}
		m.restart()
		m.create(false)
		phase := func(*rapid.T) { m.setPhase() }
		rt.Repeat(map[string]func(*rapid.T){
			"create a key":       func(*rapid.T) { m.create(false) },
			"create one with v1": func(*rapid.T) { m.create(true) },
			"new keys":           func(*rapid.T) { m.setNewKeys() },
			"phase":              phase, "phase again": phase,
			"brownout":        func(*rapid.T) { m.addBrownout() },
			"cancel brownout": func(*rapid.T) { m.cancelBrownout() },
			"announce":        func(*rapid.T) { m.announce() },
			"postpone":        func(*rapid.T) { m.postpone() },
			"cancel":          func(*rapid.T) { m.cancel() },
			"end":             func(*rapid.T) { m.end() },
			"restart":         func(*rapid.T) { m.restart() },
			"wait":            func(*rapid.T) { m.wait() },
			"wait long":       func(*rapid.T) { m.waitLong() },
			"":                func(*rapid.T) { m.check(rt, m.kept.State(), w.clock.Now()) },
		})
	})
}
