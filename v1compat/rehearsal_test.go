package v1compat

import (
	"context"
	"net/http"
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v1compat/retire"
	"partnerapi/v1compat/usage"
	"partnerapi/v2/v2test"
)

const rehearsalPath = "/v1/rehearsal"

// badRehearsals are the bads of the start of a rehearsal.
func badRehearsals() map[int][]bad {
	return map[int][]bad{
		400: badJSON(rehearsalPath, "minutes is required", `{"minutes":null}`, "minutes is required", `{"minutes":0}`, "minutes must be between 1 and 60",
			`{"minutes":61}`, "minutes must be between 1 and 60", `{"minutes":-1}`, "minutes must be between 1 and 60", `{"minutes":1e9}`, "minutes must be between 1 and 60",
			`{"minutes":1.5}`, "minutes must be an integer", `{"minutes":"10"}`, "minutes must be an integer", `{"minutes":[]}`, "minutes must be an integer"),
		413: tooLarge(rehearsalPath),
	}
}

// rehearse starts a rehearsal of a key.
func (s *service) rehearse(key string, minutes int) v2test.Response {
	s.T.Helper()
	return s.Do("POST", rehearsalPath, key, map[string]any{"minutes": minutes})
}

// TestRehearsal: v1 answers the key that asked for it 410 until the rehearsal ends, and no
// other key; v2 and the routes without a phase go on.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	s := newScene(t, setup{})
	colleague := s.AddKey(s.Partner, []domain.Scope{domain.Read}, nil)
	stranger := s.service.AddPartner("Stranger")
	s.Clock.Set(v2test.Noon.Add(time.Minute))
	ends := s.Clock.Now().Add(time.Hour)
	if until := s.rehearse(s.Key, 60).Want(http.StatusOK).Field("until"); until != "2026-06-15T13:01:00Z" {
		t.Errorf("until %v", until)
	}
	got := s.Get("/v1/clients", s.Key) // TestPhases has all routes
	envelope(t, "in a rehearsal", got, http.StatusGone, codeGone,
		"version 1 is switched off for this key until 2026-06-15T13:01:00Z, as a rehearsal that you can end with DELETE /v1/rehearsal; call GET /v2/clients instead; see /docs/migrating/clients#get-v1clients")
	if retry := got.Header.Get("Retry-After"); retry != "3600" {
		t.Errorf("Retry-After is %q", retry)
	}
	s.Get("/v1/usage", s.Key).Want(http.StatusOK)
	s.Do("POST", "/v1/ids/exchange", s.Key, `{"kind":"client","ids":[`+s.clientNo+`]}`).Want(http.StatusOK)
	s.Get("/v1/openapi.yaml", s.Key).Want(http.StatusOK)
	s.Get("/v2/clients", s.Key).Want(http.StatusOK)
	s.Get("/v1/clients", colleague).Want(http.StatusOK)
	s.Get("/v1/clients", stranger.Key).Want(http.StatusOK)

	s.Clock.Set(ends.Add(-time.Microsecond))
	s.Get("/v1/clients", s.Key).Want(http.StatusGone)
	s.Clock.Set(ends)
	s.Get("/v1/clients", s.Key).Want(http.StatusOK)
}

// TestRehearsalOnceADay: a second rehearsal within 24 hours of the first one's start is 429,
// also when the first was ended, and says when the next one may begin. Each key has its own.
func TestRehearsalOnceADay(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	colleague := s.AddKey(tenant, []domain.Scope{domain.Read}, nil)
	tooSoon := func(retry string) {
		t.Helper()
		got := s.rehearse(tenant.Key, 1)
		envelope(t, "too soon", got, http.StatusTooManyRequests, domain.RateLimited,
			"this key had a rehearsal within the last 24 hours; the next one can start at 2026-06-16T12:00:00Z")
		if header := got.Header.Get("Retry-After"); header != retry {
			t.Errorf("Retry-After is %q", header)
		}
	}
	s.rehearse(tenant.Key, 0).Want(http.StatusBadRequest) // which is none
	s.rehearse(tenant.Key, 10).Want(http.StatusOK)
	tooSoon("86400")
	s.rehearse(colleague, 1).Want(http.StatusOK)
	s.Do("DELETE", rehearsalPath, tenant.Key, nil).Want(http.StatusNoContent)
	tooSoon("86400")
	s.Clock.Advance(24*time.Hour - time.Microsecond)
	tooSoon("1")
	s.Get("/v1/clients", tenant.Key).Want(http.StatusOK)
	s.Clock.Advance(time.Microsecond)
	s.rehearse(tenant.Key, 1).Want(http.StatusOK)
	s.Get("/v1/clients", tenant.Key).Want(http.StatusGone)
}

// TestEndRehearsal: it ends the caller's own rehearsal at once, however often it is asked for,
// and no other key's.
func TestEndRehearsal(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant, stranger := s.AddPartner("Partner"), s.AddPartner("Stranger")
	colleague := s.AddKey(tenant, []domain.Scope{domain.Read}, nil)
	end := func(key string) {
		t.Helper()
		if got := s.Do("DELETE", rehearsalPath, key, nil).Want(http.StatusNoContent); len(got.Body) != 0 {
			t.Errorf("the body is %s", got.Body)
		}
	}
	end(tenant.Key) // none is in progress
	s.rehearse(tenant.Key, 10).Want(http.StatusOK)
	for _, other := range []string{colleague, stranger.Key} {
		end(other)
		s.Get("/v1/clients", tenant.Key).Want(http.StatusGone)
	}
	end(tenant.Key)
	s.Get("/v1/clients", tenant.Key).Want(http.StatusOK)
	end(tenant.Key)
	s.Get("/v1/clients", tenant.Key).Want(http.StatusOK)

	writer := s.AddKey(tenant, []domain.Scope{domain.Write}, nil)
	envelope(t, "start without the scope", s.rehearse(writer, 1), http.StatusForbidden, domain.Forbidden, "this key lacks the scope read")
	envelope(t, "end without the scope", s.Do("DELETE", rehearsalPath, writer, nil), http.StatusForbidden, domain.Forbidden, "this key lacks the scope read")
}

// TestRehearsalIsNoCall: neither start nor end is a call of v1, which GET /v1/usage lists, v1
// status dates the last use by, and v1 end minds; what v1 refuses in it is one.
func TestRehearsalIsNoCall(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	s.rehearse(tenant.Key, 10).Want(http.StatusOK)
	s.rehearse(tenant.Key, 10).Want(http.StatusTooManyRequests)
	s.Do("DELETE", rehearsalPath, tenant.Key, nil).Want(http.StatusNoContent)
	calls := func(want int) {
		t.Helper()
		if got := s.used(tenant.Key); len(got) != want {
			t.Errorf("used %v", got)
		}
		last, err := usage.LastCalls(t.Context(), s.DB, s.Clock.Now().Add(-retire.CallerWindow))
		if err != nil || len(last) != want {
			t.Errorf("the last calls are %v, %v", last, err)
		}
	}
	calls(0)
	s.Clock.Advance(24 * time.Hour)
	s.rehearse(tenant.Key, 10).Want(http.StatusOK)
	s.Get("/v1/clients", tenant.Key).Want(http.StatusGone)
	calls(1)
}

// TestRehearsalIsNoUseOfTheKey verifies that neither the start nor the end of a rehearsal is recorded as the key's last
// use, whatever its status, and that any other request is.
func TestRehearsalIsNoUseOfTheKey(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	tenant := s.AddPartner("Partner")
	used := func(after string, want bool) {
		t.Helper()
		if got := s.Edge.Keys.Used(); (len(got) > 0) != want {
			t.Errorf("after %s: got uses %v, want some: %v", after, got, want)
		}
	}
	s.Edge.Keys.Used() // forget what set the scene
	s.rehearse(tenant.Key, 0).Want(http.StatusBadRequest)
	s.rehearse(tenant.Key, 10).Want(http.StatusOK)
	s.rehearse(tenant.Key, 10).Want(http.StatusTooManyRequests)
	used("starting rehearsals", false)
	s.Do("DELETE", rehearsalPath, tenant.Key, nil).Want(http.StatusNoContent)
	used("ending a rehearsal", false)
	s.Get("/v1/usage", tenant.Key).Want(http.StatusOK)
	used("GET /v1/usage", true)
	s.Get(rehearsalPath, tenant.Key).Want(http.StatusNotFound)
	used("an unknown operation", true)
}

// TestRehearsalWithoutKeeper: a facade that keeps no retirement has no rehearsals.
func TestRehearsalWithoutKeeper(t *testing.T) {
	t.Parallel()
	f := Declare(Config{})
	if _, err := f.endRehearsal(context.Background(), &endRehearsal{}); !domain.IsCode(err, domain.Unavailable) {
		t.Errorf("ends with %v", err)
	}
}
