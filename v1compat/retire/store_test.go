package retire

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat/usage"
)

// TestAnnouncement: at least twelve months of the calendar, once at a time, and only
// ever later (decisions 11.1).
func TestAnnouncement(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	today := date("2027-06-15")
	_, err := w.Postpone(ctx, date("2029-01-01"))
	w.refused(err, "not announced", "partnerapi v1 announce")
	_, err = w.Cancel(ctx)
	w.refused(err, "not announced")
	w.refused(w.Announce(ctx, Announcement{today, date("2028-06-14")}), "--sunset", "twelve months", "2028-06-15")
	w.refused(w.Announce(ctx, Announcement{noon, date("2028-06-15")}), "2028-06-15T12:00:00Z")
	w.refused(w.Announce(ctx, Announcement{date("2028-02-29"), date("2030-01-01")}), "--announced", "future")
	w.refused(w.Announce(ctx, Announcement{today, date("2128-01-01")}), "--sunset", "100 years")
	if w.holds().Announcement != nil {
		t.Fatal("what was refused was recorded")
	}

	w.must(w.Announce(ctx, Announcement{today, date("2028-06-15")}))
	w.refused(w.Announce(ctx, Announcement{today, date("2029-06-15")}), "2028-06-15", "postpone", "cancel")
	_, err = w.Postpone(ctx, date("2028-06-15"))
	w.refused(err, "not after 2028-06-15", "cancel")
	before, err := w.Postpone(ctx, date("2028-07-01"))
	w.must(err)
	if want := date("2028-06-15"); !before.Equal(want) {
		t.Errorf("the sunset was %v", before)
	}
	a := w.holds().Announcement
	if a == nil || *a != (Announcement{today, date("2028-07-01")}) {
		t.Fatalf("announced: %v", a)
	}
	want := []Postponement{{At: noon, Previous: date("2028-06-15"), Sunset: date("2028-07-01")}}
	if got := w.holds().Postponements; !slices.Equal(got, want) {
		t.Errorf("got the postponements %v, want %v", got, want)
	}
	if a.Deprecation() != "@1813017600" || a.SunsetHeader() != "Sat, 01 Jul 2028 00:00:00 GMT" {
		t.Errorf("the headers are %s and %s", a.Deprecation(), a.SunsetHeader())
	}
	_, err = w.Cancel(ctx)
	w.must(err)
	if w.holds().Announcement != nil {
		t.Error("an announcement that was taken back stands")
	}

	// One that was made elsewhere, on a leap day: a year of the calendar ends on
	// the first of March.
	w.refused(w.Announce(ctx, Announcement{date("2024-02-29"), date("2025-02-28")}), "2025-03-01")
	w.must(w.Announce(ctx, Announcement{date("2024-02-29"), date("2025-03-01")}))
	if got := w.holds().Postponements; len(got) > 0 {
		t.Errorf("a new announcement has the postponements %v of the one before", got)
	}
}

// TestEnding: every reason that stands against it is named at once, and only that
// keys still call it can be forced (decisions 11.6).
func TestEnding(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	w.refused(w.End(ctx, EndRequest{Force: true}), "not announced", "partnerapi v1 announce")
	w.must(w.Announce(ctx, Announcement{date("2027-06-15"), date("2028-07-01")}))
	calls := []usage.LastCall{
		{Prefix: "pk_aaaaaaaa", Name: "PSA", At: noon, Operation: "GET /v1/clients", UserAgents: []string{"curl/8"}},
		{Prefix: "pk_bbbbbbbb", Name: "CRM", At: noon, Partner: "Acme"},
		{At: noon},
	}
	e := EndRequest{Missing: []string{"POST /v1/clients"}, Calls: calls}
	w.refused(w.End(ctx, e), "2028-07-01", "2027-06-15", "POST /v1/clients", "--release", "--force",
		`pk_aaaaaaaa (PSA): last call 2027-06-15T12:00:00Z, GET /v1/clients, by "curl/8"`, "pk_bbbbbbbb (CRM) of Acme: last call", "a deleted key: last call",
		"→ partnerapi v1 end\n", "→ partnerapi v1 remind --partner 'Acme'", "→ partnerapi serve --release latest")
	w.refused(w.End(ctx, EndRequest{Force: true}), "sunset")
	w.clock.Set(date("2028-07-01").Add(-time.Microsecond))
	w.refused(w.End(ctx, EndRequest{}), "sunset")
	w.clock.Set(date("2028-07-01"))
	w.refused(w.End(ctx, e), "POST /v1/clients", "pk_aaaaaaaa")
	w.refused(w.End(ctx, EndRequest{Missing: e.Missing, Force: true}), "POST /v1/clients")
	w.refused(w.End(ctx, EndRequest{Calls: calls}), "3 keys")
	if w.holds().EndedAt != nil {
		t.Fatal("what was refused was done")
	}

	w.must(w.SetPhase(ctx, Scope{Key: mine.ID}, On, time.Time{}))
	w.must(w.End(ctx, EndRequest{Calls: calls, Force: true}))
	off := func(want bool) {
		t.Helper()
		for _, key := range []Key{mine, {ID: domain.KeyID{200}}} {
			if _, refused := w.holds().Refused(key, false, w.clock.Now()); refused != want {
				t.Errorf("%v is refused: %v", key, refused)
			}
		}
	}
	off(true)
	const back = "partnerapi v1 phase --all on"
	w.refused(w.End(ctx, EndRequest{}), "ended on 2028-07-01", back)
	w.refused(w.Announce(ctx, Announcement{date("2027-06-15"), date("2030-07-01")}), back)
	_, err := w.Postpone(ctx, date("2030-01-01"))
	w.refused(err, back)
	_, err = w.Cancel(ctx)
	w.refused(err, back)
	w.refused(w.SetPhase(ctx, Scope{Key: mine.ID}, On, time.Time{}), back)
	w.refused(w.SetNewKeys(ctx, false), "ended")
	w.refused(w.AllowNewKey(ctx, mine.ID), "ended")
	w.refused(w.SetPhase(ctx, Scope{}, ReadOnly, time.Time{}), back)
	_, err = w.AddBrownout(ctx, window(0, 1))
	w.refused(err, back)

	// It can be taken back, also for a while.
	w.must(w.SetPhase(ctx, Scope{}, On, date("2028-08-01")))
	off(false)
	w.clock.Set(date("2028-08-01"))
	off(true)
	w.must(w.SetPhase(ctx, Scope{}, On, time.Time{}))
	off(false)
	w.must(w.End(ctx, EndRequest{}))
	off(true)
}

// TestBrownoutRules: what a schedule must be, and how many there may be.
func TestBrownoutRules(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	start := at(10)
	for word, bad := range map[string]Window{
		"--for: 0s":             {Start: start, Count: 1},
		"--for: 1.5s":           {Start: start, For: 1500 * time.Millisecond, Count: 1},
		"--for: 745h0m0s":       {Start: start, For: 745 * time.Hour, Count: 1},
		"1 and 1000: 0":         {Start: start, For: time.Minute},
		"1 and 1000: 1001":      {Start: start, For: time.Minute, Every: time.Hour, Count: 1001},
		"--count of at least 2": {Start: start, For: time.Minute, Every: time.Hour, Count: 1},
		"--count requires":      {Start: start, For: time.Minute, Count: 2},
		"--every: 30s":          {Start: start, For: time.Minute, Every: 30 * time.Second, Count: 2},
		"--every: 8785h":        {Start: start, For: time.Minute, Every: 8785 * time.Hour, Count: 2},
		"--every: 8784h":        {Start: start, For: time.Minute, Every: 8784 * time.Hour, Count: 600},
		"in the past":           {Start: at(-10), For: time.Minute, Every: 2 * time.Minute, Count: 5},
		"100 years":             {Start: date("2127-06-14"), For: time.Minute, Every: 24 * time.Hour, Count: 3},
		"--keys: 101 keys":      {Start: start, For: time.Minute, Count: 1, Keys: make([]domain.KeyID, 101)},
	} {
		_, err := w.AddBrownout(ctx, bad)
		w.refused(err, word)
	}
	w.refused(w.CancelBrownout(ctx, 1), "no brownout 1", "brownout list")

	series := Window{Start: start, For: time.Minute, Every: 10 * time.Minute, Count: 901, Keys: []domain.KeyID{{1}, {2}}}
	id, err := w.AddBrownout(ctx, series)
	w.must(err)
	series.ID = id
	if got := w.holds().Windows; len(got) != 1 || !got[0].Start.Equal(start) || got[0].Ends() != series.Ends() ||
		len(got[0].Keys) != 2 || got[0].Keys[1] != series.Keys[1] || got[0].ID != id {
		t.Errorf("added %v, and there is %v", series, got)
	}
	for range 99 {
		_, err := w.AddBrownout(ctx, window(20, 21))
		w.must(err)
	}
	_, err = w.AddBrownout(ctx, window(20, 21))
	w.refused(err, "101 brownouts", "brownout cancel")
	w.must(w.CancelBrownout(ctx, id))
	_, err = w.AddBrownout(ctx, Window{Start: start, For: time.Minute, Every: time.Minute, Count: 902})
	w.refused(err, "1001 windows")

	// What is over counts no more, and is forgotten at last.
	w.clock.Set(at(24 * 60))
	for range 3 {
		_, err := w.AddBrownout(ctx, window(24*60+1, 24*60+2))
		w.must(err)
	}
	w.clock.Advance(24 * time.Hour)
	_, err = w.AddBrownout(ctx, window(3*24*60, 3*24*60+1))
	w.must(err)
	if n := len(w.holds().Windows); n != 101 {
		t.Errorf("%d brownouts are kept", n)
	}
}

// TestSetPhaseForgets: settings that are hidden for as long as they last are
// removed, so that their number is bounded.
func TestSetPhaseForgets(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	key := Scope{Key: mine.ID}
	w.refused(w.SetPhase(ctx, key, Off, noon), "--until", "not after the current time")
	settings := func() int { return w.holds().Settings.Len() }
	for i := range 10 {
		w.must(w.SetPhase(ctx, key, Off, at(100-i)))
	}
	if n := settings(); n != 10 {
		t.Errorf("%d settings wait", n)
	}
	for range 3 {
		w.must(w.SetPhase(ctx, key, Brownout, at(100)))
	}
	w.must(w.SetPhase(ctx, Scope{Key: domain.KeyID{2}}, Off, at(300)))
	if n := settings(); n != 2 {
		t.Errorf("%d settings are left after one that outlasts them", n)
	}
	w.must(w.SetPhase(ctx, Scope{}, ReadOnly, at(200)))
	if n := settings(); n != 2 {
		t.Errorf("%d settings are left after one for all", n)
	}
	w.must(w.SetPhase(ctx, Scope{}, ReadOnly, time.Time{}))
	w.must(w.SetPhase(ctx, Scope{}, Off, time.Time{}))
	if n := settings(); n != 1 {
		t.Errorf("%d settings are left after one for good", n)
	}
}

// TestCommandsFollowOneAnother: commands that run at a time cannot break a rule
// together.
func TestCommandsFollowOneAnother(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t), t.Context()
	var announced, added atomic.Int32
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if w.Announce(ctx, Announcement{date("2027-06-15"), date("2029-06-15").AddDate(0, 0, i)}) == nil {
				announced.Add(1)
			}
			if _, err := w.AddBrownout(ctx, Window{Start: at(10), For: time.Minute, Every: time.Minute, Count: 300}); err == nil {
				added.Add(1)
			}
		})
	}
	all.Wait()
	if announced.Load() != 1 || added.Load() != 3 {
		t.Errorf("%d announcements and %d brownouts were accepted", announced.Load(), added.Load())
	}
}
