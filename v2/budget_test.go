package v2_test

import (
	"testing"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/v2test"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	if ginop.DefaultLimits != (ginop.Limits{PerKey: 600, PerAddress: 60, PerClientFactor: 1}) {
		t.Errorf("the limits are %+v", ginop.DefaultLimits)
	}
	w := newWorld(t, v2test.Options{})
	begin := time.Now().Unix()
	r := w.Get("/v2/clients", w.tenant.Key).Want(200)
	if number(t, r, "X-Ratelimit-Limit") != 600 || number(t, r, "X-Ratelimit-Remaining") != 599 {
		t.Errorf("the headers are %v", r.Header)
	}
	// The window begins with its first request and lasts a minute.
	end := time.Now().Unix()
	reset := int64(number(t, r, "X-Ratelimit-Reset"))
	if reset < begin+60 || reset > end+61 {
		t.Errorf("the window that begins between %d and %d ends at %d", begin, end, reset)
	}
	if again := w.Get("/v2/clients", w.tenant.Key); int64(number(t, again, "X-Ratelimit-Reset")) != reset {
		t.Errorf("the window moved from %d to %v", reset, again.Header)
	}
}

// TestClientBudgets holds decisions 2.3 for every operation that has a budget
// per client.
func TestClientBudgets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	w.each(t, func(t *testing.T, w *world, o op.Operation) {
		limit := o.Meta().PerClient
		if limit == 0 {
			return
		}
		key := w.AddKey(w.tenant, bothScopes, nil)
		report := func(r v2test.Response, limit, remaining int) {
			t.Helper()
			if number(t, r, "X-Ratelimit-Limit") != limit || number(t, r, "X-Ratelimit-Remaining") != remaining {
				t.Errorf("reports %s of %s, not %d of %d", r.Header.Get("X-Ratelimit-Remaining"), r.Header.Get("X-Ratelimit-Limit"), remaining, limit)
			}
		}
		for left := limit - 1; left >= 0; left-- {
			r := w.send(o, key, w.ids()).Want(200)
			checkHeaders(t, r)
			report(r, limit, left)
		}
		report(checkError(t, w.send(o, key, w.ids()), domain.RateLimited), limit, 0)
		// What is not found is charged to the key, and shows its budget.
		report(checkError(t, w.send(o, key, strangers()), domain.NotFound), 600, 600-limit-2)
		// Another client, another key and another operation have their own.
		other := w.AddClient(w.tenant, "Other of "+o.Meta().ID)
		at := w.pair(other, w.AddUser(w.tenant, other.ID, "x@example.com"))
		report(w.send(o, key, at).Want(200), limit, limit-1)
		report(w.send(o, w.AddKey(w.tenant, bothScopes, nil), w.ids()).Want(200), limit, limit-1)
		report(w.Get("/v2/clients", key).Want(200), 600, 600-limit-4)
		report(checkError(t, w.send(o, key, w.ids()), domain.RateLimited), limit, 0)
	})
	// A key's budget reveals no client that it does not reach.
	subset := w.AddKey(w.tenant, bothScopes, []domain.ClientID{})
	for range 130 {
		r := checkError(t, w.Get("/v2/clients/"+w.client.ID.String(), subset), domain.NotFound)
		if number(t, r, "X-Ratelimit-Limit") != 600 {
			t.Fatalf("reports a limit of %s", r.Header.Get("X-Ratelimit-Limit"))
		}
	}
}

// TestUsersOfOneClientShareItsBudget: a user's risk is charged to the client.
func TestUsersOfOneClientShareItsBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, v2test.Options{})
	second := w.AddUser(w.tenant, w.client.ID, "second@example.com")
	for i, id := range []domain.UserID{w.user.ID, second.ID, w.user.ID} {
		r := w.Get("/v2/users/"+id.String()+"/risk", w.tenant.Key).Want(200)
		if got := number(t, r, "X-Ratelimit-Remaining"); got != 119-i {
			t.Errorf("request %d leaves %d", i, got)
		}
	}
}

// TestKeyBudgetBeforeClientBudget: only a 429 of the key's own budget reports
// the key's.
func TestKeyBudgetBeforeClientBudget(t *testing.T) {
	t.Parallel()
	limits := ginop.Limits{PerKey: 2, PerAddress: 60, PerClientFactor: 1}
	w := newWorld(t, v2test.Options{Limits: limits})
	path := "/v2/clients/" + w.client.ID.String()
	for range 2 {
		if r := w.Get(path, w.tenant.Key).Want(200); number(t, r, "X-Ratelimit-Limit") != 60 {
			t.Errorf("reports %s", r.Header.Get("X-Ratelimit-Limit"))
		}
	}
	if r := checkError(t, w.Get(path, w.tenant.Key), domain.RateLimited); number(t, r, "X-Ratelimit-Limit") != 2 {
		t.Errorf("reports %s", r.Header.Get("X-Ratelimit-Limit"))
	}
}
