package usage

import (
	"slices"
	"testing"

	"partnerapi/domain"
)

// TestParity verifies that calls of v1 by parity are counted and reported apart, that its calls of v2 are not counted,
// and that neither changes a verdict, a count or the last calls.
func TestParity(t *testing.T) {
	t.Parallel()
	d := open(t)
	person(t, d, 1)
	person(t, d, 2)
	c := counter(t, d, domain.NewManualClock(noon))
	call := func(n byte, s Surface, operation string, status int, agent string) {
		c.Count(Call{Key: key(n), Surface: s, Operation: operation, Status: status, UserAgent: agent})
	}
	call(1, V1, oldClients, 200, "acme-sync/2.4")
	for _, agent := range []string{ParityAgent + "2.3", " " + ParityAgent} {
		call(1, V1, oldClients, 200, agent)
		call(1, V2, newClients, 200, agent)
		call(2, V1, oldUsers, 404, agent)
	}
	call(2, V1, oldClients, 200, ParityAgent)
	flush(t, c)

	got := report(t, d, 30)
	if len(got.Keys) != 1 || got.Keys[0].ID != key(1) {
		t.Fatalf("got keys %+v, want the first alone", got.Keys)
	}
	one := got.Keys[0]
	if one.Calls != 1 || one.Verdict != NotBegun || len(one.Rows) != 1 || one.Operations[0].SuccessorCalls != 0 ||
		!slices.Equal(one.Operations[0].UserAgents, []string{"acme-sync/2.4"}) {
		t.Errorf("got %+v, want a key that parity did not touch", one)
	}
	if today := got.Days[29]; today.Calls != 1 || today.Successors != 0 {
		t.Errorf("got %+v today, want 1 call", today)
	}
	if len(got.Parity) != 2 {
		t.Fatalf("got %d keys that parity used, want 2", len(got.Parity))
	}
	for _, p := range got.Parity {
		want := map[string]ParityKey{
			"pk_1": {Who: Who{"pk_1", "key 1", "Acme", true}, LastAt: domain.At(noon), Calls: 2},
			"pk_2": {Who: Who{"pk_2", "key 2", "Acme", true}, LastAt: domain.At(noon), Calls: 3, Failures: 2},
		}[p.Prefix]
		rows := p.Rows
		if p.Rows = nil; p.Who != want.Who || p.Calls != want.Calls || p.Failures != want.Failures || !p.LastAt.Time.Equal(noon) {
			t.Errorf("got %+v, want %+v", p, want)
		}
		if slices.ContainsFunc(rows, func(r Row) bool { return r.Surface != Parity }) || len(rows) == 0 {
			t.Errorf("got rows %+v, want those of parity", rows)
		}
	}

	last, err := LastCalls(t.Context(), d, noon.AddDate(0, 0, -30))
	if err != nil || len(last) != 1 || last[0].Key != key(1) || !slices.Equal(last[0].UserAgents, []string{"acme-sync/2.4"}) {
		t.Errorf("got last calls %+v (%v), want that of the first key", last, err)
	}
	rows, err := c.ByKey(t.Context(), key(2), domain.DateOf(noon))
	if err != nil || len(rows) != 2 || rows[0].Surface != Parity || rows[0].Operation != oldClients {
		t.Errorf("got rows %+v (%v), want two of parity", rows, err)
	}
}
