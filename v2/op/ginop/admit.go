package ginop

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

// addressBudget returns the name of the budget that counts the requests of a remote address without a valid key.
func addressBudget(c *gin.Context) string { return "address/" + countedAddress(c) }

// countedAddress returns the name under which a remote address is counted (domain.CountedAddress).
func countedAddress(c *gin.Context) string {
	return domain.CountedAddress(domain.AddressFrom(c.Request.Context()))
}

// lookUpsPerSecond is the limit of key look-ups per second for an address whose budget is used up.
const lookUpsPerSecond = 10

// admit authenticates the caller and counts the request. With a valid key, it counts against the key's budget, which is
// returned as keyBudget, unless count is false; without one, against the remote address's budget. A request that fails
// otherwise, such as for a key that moved to another cell, counts against none. An address whose budget is used up is
// allowed few key look-ups: enough for valid callers who share the address, too few for guessing. admit sets the budget
// headers of the budget that counts.
func (e *Edge) admit(c *gin.Context, count bool) (caller *domain.Caller, keyBudget budget, err error) {
	ctx := c.Request.Context()
	counted := false // whether the request was counted against the address, before the look-up of its key
	caller, err = e.Keys.Caller(ctx, c.GetHeader("X-API-Key"), func() error {
		counted = true
		state := e.budgets.charge(ctx, addressBudget(c), e.Limits.PerAddress)
		if state.exceeded() && !e.allowLookup(c) {
			refusal := state.refusal(noValidKey)
			refusal.RetryAfter = time.Second // when keys are looked up again
			return refusal
		}
		return nil
	})
	if err == nil {
		err = checkNetwork(caller, c)
	}

	switch {
	case err == nil:
		setKeyExpires(c, caller, e.Keys.clock.Now())
		if counted { // the key is valid
			e.budgets.refund(ctx, addressBudget(c))
		}
		if count {
			keyBudget = e.chargeKey(ctx, caller)
			setBudgetHeaders(c, keyBudget, e.Clock.Now())
		}
		return caller, keyBudget, nil
	case errors.Is(err, errKeyMoved): // counts against no budget
	case domain.IsCode(err, domain.Unauthorized), domain.IsCode(err, domain.RateLimited), domain.IsCode(err, domain.Misdirected):
		return nil, keyBudget, e.chargeUnauthenticated(c, counted, err)
	}
	if counted {
		e.budgets.refund(ctx, addressBudget(c))
	}
	setBudgetHeaders(c, e.budgets.peek(ctx, addressBudget(c), e.Limits.PerAddress), e.Clock.Now())
	return nil, keyBudget, err
}

// setKeyExpires sets X-API-Key-Expires, in its documented spelling, if the key expires within domain.KeyEndsSoon.
func setKeyExpires(c *gin.Context, caller *domain.Caller, now time.Time) {
	if end := caller.ExpiresAt; !end.IsZero() && end.Sub(now) <= domain.KeyEndsSoon {
		text, _ := domain.At(end).MarshalText() // never fails
		c.Writer.Header()["X-API-Key-Expires"] = []string{string(text)}
	}
}

// allowLookup counts a key look-up for an address whose budget is used up, and reports whether it is within
// lookUpsPerSecond. The limit is per process, as it protects the process's own database connections.
func (e *Edge) allowLookup(c *gin.Context) bool {
	count, _, _ := e.lookUps.Add(c.Request.Context(), countedAddress(c), 1, time.Second) // memory does not fail
	return count <= lookUpsPerSecond
}

// chargeKey counts a request against the budget of a caller's key.
func (e *Edge) chargeKey(ctx context.Context, caller *domain.Caller) budget {
	return e.budgets.charge(ctx, "key/"+caller.Name(), e.Limits.PerKey)
}

// addressOf returns the remote address of a request; empty if it is unknown.
func addressOf(c *gin.Context) string {
	if address := domain.AddressFrom(c.Request.Context()); address.IsValid() {
		return address.String()
	}
	return ""
}

// noValidKey names, in a refusal, the requests that count against an address.
const noValidKey = "without a valid key from this IP address"

// chargeUnauthenticated counts a request without a valid key against its address, unless counted is true. It returns
// the error of the response: err, or RateLimited if the address's budget is used up.
func (e *Edge) chargeUnauthenticated(c *gin.Context, counted bool, err error) error {
	chargeOrPeek := e.budgets.charge
	if counted {
		chargeOrPeek = e.budgets.peek
	}
	state := chargeOrPeek(c.Request.Context(), addressBudget(c), e.Limits.PerAddress)
	setBudgetHeaders(c, state, e.Clock.Now())
	if state.exceeded() && !domain.IsCode(err, domain.RateLimited) { // a RateLimited err has its own RetryAfter
		return state.refusal(noValidKey)
	}
	return err
}

// checkNetwork returns Unauthorized if the key has networks, and none of them includes the address of the request.
func checkNetwork(caller *domain.Caller, c *gin.Context) error {
	address := domain.AddressFrom(c.Request.Context())
	if len(caller.Networks) == 0 || domain.Networks(caller.Networks).Contain(address) {
		return nil
	}
	return &domain.Error{
		Code: domain.Unauthorized, Message: "this API key cannot be used from the IP address " + addressOf(c),
	}
}
