package retire

import (
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

var (
	noon = time.Date(2027, 6, 15, 12, 0, 0, 0, time.UTC)
	mine = Key{domain.KeyID{1}, domain.PartnerID{1}}
)

// at is noon and the given number of minutes.
func at(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }

// until is a setting that lasts until the given number of minutes after noon.
func until(id int64, of Scope, phase Phase, minutes int) Setting {
	return Setting{ID: id, Scope: of, Phase: phase, Until: at(minutes)}
}

// window is a window from a minute to another, for keys or for all.
func window(from, to int, keys ...domain.KeyID) Window {
	return Window{Start: at(from), For: at(to).Sub(at(from)), Count: 1, Keys: keys}
}

// TestRefused: what is refused, and until when the phase or the window that refuses it
// lasts. Which of many settings is a key's phase TestStateMachine holds to a model.
func TestRefused(t *testing.T) {
	t.Parallel()
	key := Scope{Key: mine.ID}
	all := Setting{ID: 1, Phase: Brownout}
	other := domain.KeyID{2}
	const forever = -1
	for name, c := range map[string]struct {
		settings []Setting
		windows  []Window
		write    bool
		now      int
		until    int // 0 is not refused
	}{
		"on":                        {nil, []Window{window(0, 9)}, true, 5, 0},
		"off":                       {[]Setting{{ID: 1, Phase: Off}}, nil, false, 5, forever},
		"off until":                 {[]Setting{until(1, key, Off, 9)}, nil, false, 5, 9},
		"a read of read_only":       {[]Setting{{ID: 1, Phase: ReadOnly}}, nil, false, 5, 0},
		"a write of read_only":      {[]Setting{{ID: 1, Phase: ReadOnly}}, nil, true, 5, forever},
		"read_only and off after":   {[]Setting{{ID: 1, Phase: Off}, until(2, key, ReadOnly, 9)}, nil, true, 5, 9},
		"a read until off":          {[]Setting{{ID: 1, Phase: Off}, until(2, key, ReadOnly, 9)}, nil, false, 5, 0},
		"off, then off for shorter": {[]Setting{until(1, key, Off, 9), until(2, key, Off, 7)}, nil, true, 5, 7},
		"before a window":           {[]Setting{all}, []Window{window(5, 9)}, false, 4, 0},
		"the window begins":         {[]Setting{all}, []Window{window(5, 9)}, false, 5, 9},
		"the window ends":           {[]Setting{all}, []Window{window(5, 9)}, false, 9, 0},
		"a window of mine":          {[]Setting{all}, []Window{window(5, 9, other, mine.ID)}, false, 5, 9},
		"a window of another":       {[]Setting{all}, []Window{window(5, 9, other)}, false, 5, 0},
		"windows overlap":           {[]Setting{all}, []Window{window(5, 9), window(1, 7, mine.ID), window(8, 12)}, false, 5, 12},
		"windows touch":             {[]Setting{all}, []Window{window(5, 9), window(9, 12, mine.ID), window(12, 13)}, false, 5, 13},
		"a window in another":       {[]Setting{all}, []Window{window(1, 20), window(5, 9)}, false, 6, 20},
		"the phase ends in it":      {[]Setting{until(2, key, Brownout, 7)}, []Window{window(5, 9)}, false, 5, 7},
		"the phase outlasts it":     {[]Setting{until(2, key, Brownout, 12)}, []Window{window(5, 9)}, false, 5, 9},
		"off after it":              {[]Setting{{ID: 1, Phase: Off}, until(2, key, Brownout, 7)}, []Window{window(5, 9)}, false, 5, 7},
		"off after, a gap between":  {[]Setting{{ID: 1, Phase: Off}, until(2, key, Brownout, 12)}, []Window{window(5, 9)}, false, 5, 9},
		"brownout after off":        {[]Setting{all, until(2, key, Off, 7)}, []Window{window(5, 9)}, false, 5, 7},
		"the third of a series": {
			[]Setting{all}, []Window{{Start: noon, For: time.Minute, Every: 10 * time.Minute, Count: 3}}, false, 20, 21},
		"after a series": {
			[]Setting{all}, []Window{{Start: noon, For: time.Minute, Every: 10 * time.Minute, Count: 3}}, false, 30, 0},
	} {
		s := &State{Settings: NewSettings(c.settings...), Windows: c.windows}
		got, refused := s.Refused(mine, c.write, at(c.now))
		switch {
		case refused != (c.until != 0), refused && got.Until.IsZero() != (c.until == forever),
			c.until > 0 && !got.Until.Equal(at(c.until)):
			t.Errorf("%s: %v, until %v", name, refused, got.Until)
		}
	}
	open := &State{Settings: NewSettings(Setting{ID: 4, Phase: Brownout}), Windows: []Window{{ID: 1, Start: at(9), For: time.Minute, Count: 1}, {ID: 2, Start: noon, For: time.Minute, Count: 1}}}
	if got, refused := open.Refused(mine, false, noon); !refused || got.Cause != (usage.Cause{Kind: usage.BrownoutCause, ID: 2}) {
		t.Errorf("got %+v, want brownout 2 as the cause", got)
	}
	off := &State{Settings: NewSettings(Setting{ID: 4, Phase: Off})}
	if got, refused := off.Refused(mine, false, noon); !refused || got.Cause != (usage.Cause{Kind: usage.PhaseCause, ID: 4}) {
		t.Errorf("got %+v, want setting 4 as the cause", got)
	}
	rehearsed := &State{Settings: NewSettings(until(1, key, ReadOnly, 9)), Rehearsals: map[domain.KeyID]time.Time{mine.ID: at(20)}}
	for _, c := range []struct {
		write      bool
		now, until int
		rehearsal  bool
	}{{true, 5, 9, false}, {false, 5, 20, true}, {true, 9, 20, true}, {true, 20, 0, false}} {
		got, refused := rehearsed.Refused(mine, c.write, at(c.now))
		if refused != (c.until != 0) || refused && (!got.Until.Equal(at(c.until)) || got.Rehearsal != c.rehearsal) {
			t.Errorf("in a rehearsal, write %v at %d: %v, %+v", c.write, c.now, refused, got)
		}
	}
	if _, refused := rehearsed.Refused(Key{other, mine.Partner}, false, at(5)); refused {
		t.Error("another key rehearses too")
	}
	ended := &State{EndedAt: &noon}
	if got, refused := ended.Refused(mine, false, noon); !refused || got.Phase != Off || !got.Until.IsZero() {
		t.Errorf("ended: %v, %v", got, refused)
	}
}

// TestNext: the window that runs, or the next one.
func TestNext(t *testing.T) {
	t.Parallel()
	w := Window{Start: noon, For: time.Minute, Every: 10 * time.Minute, Count: 3}
	for now, from := range map[int]int{-5: 0, 0: 0, 1: 10, 10: 10, 11: 20, 20: 20, 21: -1} {
		start, end, ok := w.Next(at(now))
		if ok != (from >= 0) || ok && (!start.Equal(at(from)) || !end.Equal(at(from+1))) {
			t.Errorf("at %d: from %v to %v, %v", now, start, end, ok)
		}
	}
	if one := window(0, 9); !one.Ends().Equal(at(9)) {
		t.Errorf("ends at %v", one.Ends())
	}
	if _, _, ok := window(0, 9).Next(at(9)); ok {
		t.Error("a window that is over is next")
	}
}
