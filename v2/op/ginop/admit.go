package ginop

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

// addressBudget returns the name of the budget that counts a remote address without a valid key.
func addressBudget(c *gin.Context) string { return "address/" + countedAddress(c) }

// countedAddress returns the key under which a remote address is counted.
func countedAddress(c *gin.Context) string {
	return domain.CountedAddress(domain.AddressFrom(c.Request.Context()))
}

// lookUpsPerSecond bounds the database look-ups of unseen keys per second for an address whose budget is used up.
const lookUpsPerSecond = 10

// admit authenticates the caller and counts the request: with a valid key against the key's budget, which it
// returns (unless count is false), else against the remote address's budget. An address whose budget is used up is
// allowed few key look-ups: enough for valid callers who share the address, too few for guessing.
func (e *Edge) admit(c *gin.Context, count bool) (caller *domain.Caller, of budget, err error) {
	ctx := c.Request.Context()
	counted := false // the request, against the address
	caller, err = e.Keys.Caller(ctx, c.GetHeader("X-API-Key"), func() error {
		counted = true
		state := e.budgets.charge(ctx, addressBudget(c), e.Limits.PerAddress)
		if state.exceeded() && !e.allowLookup(c) {
			refusal := e.budgets.refusal(state, noValidKey)
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
		e.Keys.markUsed(caller)
		setKeyExpires(c, caller, e.Keys.clock.Now())
		if counted {
			e.budgets.refund(ctx, addressBudget(c))
		}
		if count {
			of = e.chargeKey(ctx, caller)
			setBudgetHeaders(c, of)
		}
		return caller, of, nil
	case errors.Is(err, errKeyMoved): // counts against no budget
	case domain.IsCode(err, domain.Unauthorized), domain.IsCode(err, domain.RateLimited), domain.IsCode(err, domain.Misdirected):
		return nil, of, e.chargeUnauthenticated(c, counted, err)
	}
	if counted {
		e.budgets.refund(ctx, addressBudget(c))
	}
	setBudgetHeaders(c, e.budgets.peek(ctx, addressBudget(c), e.Limits.PerAddress))
	return nil, of, err
}

// setKeyExpires sets X-API-Key-Expires, in its documented spelling, if the caller's key stops working soon.
func setKeyExpires(c *gin.Context, caller *domain.Caller, now time.Time) {
	if end := caller.ExpiresAt; !end.IsZero() && end.Sub(now) <= domain.KeyEndsSoon {
		text, _ := domain.At(end).MarshalText() // never fails
		c.Writer.Header()["X-API-Key-Expires"] = []string{string(text)}
	}
}

// allowLookup counts a key look-up for an address whose budget is used up. The limit is per process, as it protects
// the process's own database connections.
func (e *Edge) allowLookup(c *gin.Context) bool {
	count, _, _ := e.lookUps.Add(c.Request.Context(), countedAddress(c), 1, time.Second) // memory does not fail
	return count <= lookUpsPerSecond
}

// chargeKey counts a request against the budget of a caller's key.
func (e *Edge) chargeKey(ctx context.Context, caller *domain.Caller) budget {
	return e.budgets.charge(ctx, "key/"+caller.Prefix, e.Limits.PerKey)
}

// addressOf returns the remote address of a request; empty if it is unknown.
func addressOf(c *gin.Context) string {
	if address := domain.AddressFrom(c.Request.Context()); address.IsValid() {
		return address.String()
	}
	return ""
}

const noValidKey = "without a valid key from this address"

// chargeUnauthenticated counts a request without a valid key, unless counted is true, and returns the error to
// answer it with.
func (e *Edge) chargeUnauthenticated(c *gin.Context, counted bool, err error) error {
	ask := e.budgets.charge
	if counted {
		ask = e.budgets.peek
	}
	state := ask(c.Request.Context(), addressBudget(c), e.Limits.PerAddress)
	setBudgetHeaders(c, state)
	if state.exceeded() && !domain.IsCode(err, domain.RateLimited) {
		return e.budgets.refusal(state, noValidKey)
	}
	return err
}

// checkNetwork returns Unauthorized if the key's networks do not include the address of the request.
func checkNetwork(caller *domain.Caller, c *gin.Context) error {
	if len(caller.Networks) == 0 {
		return nil
	}
	if domain.Networks(caller.Networks).Contain(domain.AddressFrom(c.Request.Context())) {
		return nil
	}
	return &domain.Error{
		Code: domain.Unauthorized, Message: "this API key may not be used from the address " + addressOf(c),
	}
}
