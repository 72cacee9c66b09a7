package ginop_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
)

var noon = time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)

// clocked is an edge that goes by a clock.
func clocked(t *testing.T) (*edge, *domain.ManualClock) {
	t.Helper()
	clock := domain.NewManualClock(noon)
	return newEdgeOf(t, func(c *ginop.Config) { c.Clock = clock }, operations()), clock
}

// TestUnknownKeysStayOutside: an address that has used its budget up can have 10
// keys a second looked up, and texts that are no keys never are.
func TestUnknownKeysStayOutside(t *testing.T) {
	e, clock := clocked(t)
	wantRemaining(t, e.do("GET", "/v2/fine", "pk_demo_good"), 200, 599)
	for n := range 100 {
		w := e.do("GET", "/v2/fine", fmt.Sprint("pk_demo_guess", n))
		want := 401
		if n >= 60 {
			want = 429
		}
		wantRemaining(t, w, want, max(59-n, 0))
		if after := w.Header().Get("Retry-After"); n >= 70 && after != "1" {
			t.Errorf("guess %d may come again after %s", n, after)
		}
	}
	if got := e.finds.Load(); got != 71 {
		t.Errorf("%d keys are looked up", got)
	}

	// A key that was valid here goes on, after its time in memory too; a valid one
	// that was not seen is taken, as soon as the address has a look-up left.
	clock.Advance(ginop.KeyMemory)
	for _, key := range []string{"pk_demo_good", "pk_demo_good1"} {
		if w := e.do("GET", "/v2/fine", key); w.Code != 200 || w.Header().Get("X-RateLimit-Limit") != "600" {
			t.Errorf("the key %s answers %d", key, w.Code)
		}
	}
	clock.Advance(time.Minute)
	wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good2"), 200)
	wantRemaining(t, e.do("GET", "/v2/fine", ""), 401, 59) // valid keys are not charged to the address
}

// TestNoKeys: what has not the form of a key, or a wrong checksum, is refused without
// a look-up, and takes no look-up from others.
func TestNoKeys(t *testing.T) {
	e, _ := clocked(t)
	for n := range 200 {
		text := fmt.Sprintf("papi_%040d", n)
		if n%2 == 1 {
			text = fmt.Sprint("guess", n)
		}
		want := 401
		if n >= 60 {
			want = 429
		}
		wantStatus(t, e.do("GET", "/v2/fine", text), want)
	}
	if got := e.finds.Load(); got != 0 {
		t.Errorf("%d are looked up", got)
	}
	for n := range 10 {
		wantStatus(t, e.do("GET", "/v2/fine", fmt.Sprint("pk_demo_good", n)), 200)
	}
}

// TestOtherCells: a key of another cell is answered with that cell's code, without a
// look-up, and counts against the address; a key that is none stays unknown.
func TestOtherCells(t *testing.T) {
	e := newEdgeOf(t, func(c *ginop.Config) { c.Limits.PerAddress = 7 }, operations())
	e.Keys.ForeignCell = func(key string, _ []byte) string {
		if of := (domain.Cell{Number: 1, Count: 4}).OfKey(key); strings.HasPrefix(key, "papi_") && of.Number != 1 {
			return of.Code()
		}
		return ""
	}
	e.Protocol(e.engine, ginop.Protocol{Path: "/protocol"})
	other, err := domain.NewAPIKey(domain.Cell{Number: 2, Count: 4})
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{"/v2/fine", "/v2/unknown", "/protocol", "/v2/fine", "/protocol"} {
		w := e.do("GET", path, other)
		wantError(t, w, domain.Misdirected)
		if wantRemaining(t, w, 421, 6-i); w.Header().Get("X-Cell") != "02" {
			t.Errorf("%s answers %v", path, w.Header())
		}
	}
	if got := e.finds.Load(); got != 0 {
		t.Errorf("%d are looked up", got)
	}
	e.Keys.MovedAway = func([]byte) bool { return true }
	wantRemaining(t, e.do("GET", "/v2/fine", other), 421, 2) // it does not count against the address
	e.Keys.MovedAway = nil
	wrong := other[:len(other)-1] + "_"
	for _, key := range []string{wrong, "pk_demo_guess"} {
		w := e.do("GET", "/v2/fine", key)
		if wantStatus(t, w, 401); w.Header()["X-Cell"] != nil {
			t.Errorf("%s answers %v", key, w.Header())
		}
	}
	wantError(t, e.do("GET", "/v2/fine", other), domain.RateLimited) // beyond the address's budget
	wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_good"), 200)
}

// TestUnknownKeysAreRemembered: the same unknown key is looked up every 5 s.
func TestUnknownKeysAreRemembered(t *testing.T) {
	e, clock := clocked(t)
	for want := 1; want <= 3; want++ {
		for range 5 {
			wantStatus(t, e.do("GET", "/v2/fine", "pk_demo_guess"), 401)
		}
		if got := e.finds.Load(); got != int64(want) {
			t.Errorf("looked up %d times, not %d", got, want)
		}
		clock.Advance(5 * time.Second)
	}
	wantRemaining(t, e.do("GET", "/v2/fine", ""), 401, 44) // remembered keys are counted
}

// TestLookUpsAreShared: requests that come with the same new key at once are
// one look-up, and none is refused for the others.
func TestLookUpsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, found := 0, make(chan struct{})
		find := func(context.Context, []byte) (*domain.Caller, error) {
			asked++
			<-found
			return &domain.Caller{Prefix: "pk_new", Scopes: []domain.Scope{domain.Read}}, nil
		}
		e := newEdgeOf(t, func(c *ginop.Config) {
			c.Keys = ginop.NewKeys(find, domain.SystemClock{}, false)
		}, operations())
		answers := make(chan *httptest.ResponseRecorder, 100)
		for range 100 {
			go func() { answers <- e.do("GET", "/v2/fine", "pk_demo_new") }()
		}
		synctest.Wait()
		close(found)
		wantFine(t, answers, 100)
		if asked != 1 {
			t.Errorf("looked up %d times", asked)
		}
	})
}

// TestOutageIsNotCharged: while no key can be looked up, no budget is charged.
func TestOutageIsNotCharged(t *testing.T) {
	away := &domain.Error{Code: domain.Unavailable, Message: "m", Cause: errors.New("refused")}
	find := func(context.Context, []byte) (*domain.Caller, error) { return nil, away }
	e := newEdgeOf(t, func(c *ginop.Config) { c.Keys = ginop.NewKeys(find, domain.SystemClock{}, false) }, operations())
	for range 100 {
		wantRemaining(t, e.do("GET", "/v2/fine", "pk_demo_good"), 503, 60)
	}
}

// TestRefusalsAreSummedUp: one line a minute names those who are refused most, while
// each refusal is counted in the metrics, by partner too.
func TestRefusalsAreSummedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEdgeOf(t, func(c *ginop.Config) { c.Limits.PerKey = 5 }, operations())
		for range 25 {
			e.do("GET", "/v2/fine", "pk_demo_good")
		}
		for range 70 {
			e.do("GET", "/v2/fine", "")
		}
		synctest.Wait()
		for _, status := range []string{"429", "401"} {
			if n := strings.Count(e.log.String(), "status="+status); n > 0 {
				t.Errorf("%d lines of %s", n, status)
			}
		}
		e.wantMetric(t, `partnerapi_requests_total{operation="fine",status="429",version="v2"} 30`)
		e.wantMetric(t, `partnerapi_refusals_total{partner="`+domain.PartnerID{}.String()+`"} 20`)
		e.wantMetric(t, `partnerapi_refusals_total{partner="none"} 10`)
		before := len(e.log.String())
		time.Sleep(time.Minute)
		synctest.Wait()
		logs := e.log.String()[before:]
		if strings.Count(logs, "\n") != 2 || !strings.Contains(logs,
			`msg="requests rejected without a valid key" requests=60 keys=0 top_keys="" addresses=1 top_addresses="192.0.2.1 60"`) || !strings.Contains(logs,
			`requests=30 keys=1 top_keys="pk_good 20" addresses=1 top_addresses="192.0.2.1 10" within=1m0s`) {
			t.Errorf("logs %s", logs)
		}
		for range 3 { // in a window of their own
			e.do("GET", "/v2/fine", "good")
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if logs := e.log.String()[before:]; strings.Count(logs, "rejected by a rate limit") != 1 {
			t.Errorf("logs %s", logs)
		}
	})
}

// TestAddressesOfIPv6 are counted together within a /64, and apart beyond it.
func TestAddressesOfIPv6(t *testing.T) {
	e := newEdgeOf(t, func(c *ginop.Config) { c.Limits.PerAddress = 3 }, operations(), "192.0.2.1")
	for i, from := range []string{"2001:db8::1", "2001:db8::2", "2001:db8::ffff:0:0:1"} {
		wantRemaining(t, e.do("GET", "/v2/fine", "", "X-Forwarded-For", from), 401, 2-i)
	}
	for from, want := range map[string]int{"2001:db8::9": 429, "2001:db8:0:1::1": 401, "203.0.113.9": 401} {
		wantStatus(t, e.do("GET", "/v2/fine", "", "X-Forwarded-For", from), want)
	}
}

// TestReset: X-RateLimit-Reset and Retry-After are the first second at which a
// request passes (decisions 3.12).
func TestReset(t *testing.T) {
	e, clock := clocked(t)
	clock.Advance(300 * time.Millisecond)
	first := e.do("GET", "/v2/fine", "pk_demo_good")
	end := noon.Add(time.Minute + 300*time.Millisecond)
	if got := first.Header().Get("X-RateLimit-Reset"); got != fmt.Sprint(end.Unix()+1) {
		t.Errorf("the reset is %s", got)
	}
	for range 599 {
		e.do("GET", "/v2/fine", "pk_demo_good")
	}
	for _, test := range []struct {
		at   time.Time
		wait string
	}{
		{noon.Add(300 * time.Millisecond), "60"},
		{end.Add(-58*time.Second - 1*time.Millisecond), "59"},
		{end.Add(-58 * time.Second), "58"},
		{end.Add(-time.Millisecond), "1"},
	} {
		clock.Set(test.at)
		w := e.do("GET", "/v2/fine", "pk_demo_good")
		if w.Code != 429 || w.Header().Get("Retry-After") != test.wait {
			t.Errorf("%v before the end, answers %d, Retry-After %s", end.Sub(test.at), w.Code, w.Header().Get("Retry-After"))
		}
	}
	clock.Set(end)
	wantRemaining(t, e.do("GET", "/v2/fine", "pk_demo_good"), 200, 599)
}

// TestNetworks: a key with networks works from those only, and is used from those
// only.
func TestNetworks(t *testing.T) {
	find := func(context.Context, []byte) (*domain.Caller, error) {
		networks := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8::/32")}
		return &domain.Caller{Prefix: "pk_net", Scopes: []domain.Scope{domain.Read}, Networks: networks}, nil
	}
	keys := ginop.NewKeys(find, domain.SystemClock{}, false)
	e := newEdgeOf(t, func(c *ginop.Config) { c.Keys = keys }, operations(), "192.0.2.1")
	for from, want := range map[string]int{
		"198.51.100.7": 200, "::ffff:198.51.100.7": 200, "2001:db8::1": 200, "198.51.101.7": 401, "2001:db9::1": 401,
	} {
		w := e.do("GET", "/v2/fine", "pk_demo_net", "X-Forwarded-For", from)
		wantStatus(t, w, want)
		if want == 401 && (!strings.Contains(w.Body.String(), from) || w.Header().Get("X-RateLimit-Limit") != "60") {
			t.Errorf("from %s, answers %s %v", from, w.Body, w.Header())
		}
		if used := len(keys.Used()) > 0; used != (want == 200) {
			t.Errorf("from %s, the key is noted as used: %t", from, used)
		}
	}
}

// TestHeldWritesAreCounted: a write that was refused as its partner is handed over to
// another cell is counted, as no other 503 is, and the log says why.
func TestHeldWritesAreCounted(t *testing.T) {
	t.Parallel()
	set := operations()
	add(set, "held", "DELETE", "/held", 204, func(context.Context, *empty) (*op.NoContent, error) {
		return nil, fmt.Errorf("write: %w", &domain.Error{Code: domain.Unavailable, Message: "shown", Cause: domain.ErrMoving})
	})
	e := newEdgeOf(t, func(*ginop.Config) {}, set)
	wantError(t, e.do("GET", "/v2/waits", "pk_demo_good"), domain.Unavailable)
	w := e.do("DELETE", "/v2/held", "pk_demo_good")
	wantError(t, w, domain.Unavailable)
	e.wantMetric(t, "partnerapi_move_refused_writes_total 1")
	if why := domain.ErrMoving.Error(); strings.Contains(w.Body.String(), why) || !strings.Contains(e.log.String(), why) {
		t.Errorf("answers %s, logs %s", w.Body, e.log)
	}
}
