package pg

import (
	"testing"
)

// TestStandingFault: only a standby of the same database and timeline is read that has
// replayed what the primary had written.
func TestStandingFault(t *testing.T) {
	at := position{system: 7, database: 5, timeline: 3, lsn: "0/3000060"}
	fit := serverState{position: at, recovers: true, replayed: true}
	if err := fit.fault(at); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*serverState){
		"the server is not a standby":                             func(s *serverState) { s.recovers = false },
		"the server is a standby of another database":             func(s *serverState) { s.system = 8 },
		"the standby is on timeline 2, but the primary is on 3":   func(s *serverState) { s.timeline = 2 },
		"the standby did not replay the primary's writes in time": func(s *serverState) { s.replayed = false },
	} {
		s := fit
		change(&s)
		if err := s.fault(at); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	other := fit
	other.database = 6
	if err := other.fault(at); err == nil {
		t.Error("another database of the server is read")
	}
}
