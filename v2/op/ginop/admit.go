package ginop

import (
	"context"
	"errors"
	"time"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
)

// addressBudget names the budget of a remote address without a valid key.
func addressBudget(c *gin.Context) string { return "address/" + countedAddress(c) }

// countedAddress is what the remote address is counted as.
func countedAddress(c *gin.Context) string {
	return domain.CountedAddress(domain.AddressFrom(c.Request.Context()))
}

// lookUpsPerSecond is how many keys that this process has not seen are looked up in
// a second for an address whose budget is used up.
const lookUpsPerSecond = 10

// admit recognizes the caller and counts the request. With a valid key it counts against
// the key's budget, and returns it; where count is false, against none. Without a valid
// key it counts against the remote address's budget. An address whose budget is used up
// can have few keys looked up: enough for callers beside a stranger, and too few for
// guesses.
func (e *Edge) admit(c *gin.Context, count bool) (caller *domain.Caller, of budget, err error) {
	ctx := c.Request.Context()
	counted := false // the request, against the address
	caller, err = e.Keys.Caller(ctx, c.GetHeader("X-API-Key"), func() error {
		counted = true
		state := e.budgets.take(ctx, addressBudget(c), e.Limits.PerAddress)
		if state.exceeded() && !e.mayLookUp(c) {
			refusal := e.budgets.refusal(state, noValidKey)
			refusal.RetryAfter = time.Second // when keys are looked up again
			return refusal
		}
		return nil
	})
	if err == nil {
		err = allowed(caller, c)
	}

	switch {
	case err == nil:
		e.Keys.use(caller)
		if counted {
			e.budgets.giveBack(ctx, addressBudget(c))
		}
		if count {
			of = e.takeOf(ctx, caller)
			report(c, of)
		}
		return caller, of, nil
	case errors.Is(err, errKeyLeft): // counts against nobody
	case domain.IsCode(err, domain.Unauthorized), domain.IsCode(err, domain.RateLimited), domain.IsCode(err, domain.Misdirected):
		return nil, of, e.refuse(c, counted, err)
	}
	if counted {
		e.budgets.giveBack(ctx, addressBudget(c))
	}
	report(c, e.budgets.peek(ctx, addressBudget(c), e.Limits.PerAddress))
	return nil, of, err
}

// mayLookUp counts a look-up for an address whose budget is used up. Each process
// counts for itself, as it protects its own database connections.
func (e *Edge) mayLookUp(c *gin.Context) bool {
	count, _, _ := e.lookUps.Add(c.Request.Context(), countedAddress(c), 1, time.Second) // memory does not fail
	return count <= lookUpsPerSecond
}

// takeOf counts a request against the budget of a caller's key.
func (e *Edge) takeOf(ctx context.Context, caller *domain.Caller) budget {
	return e.budgets.take(ctx, "key/"+caller.Prefix, e.Limits.PerKey)
}

// addressOf is the remote address; empty where it is not known.
func addressOf(c *gin.Context) string {
	if address := domain.AddressFrom(c.Request.Context()); address.IsValid() {
		return address.String()
	}
	return ""
}

const noValidKey = "without a valid key from this address"

// refuse counts a request without a valid key, unless that was done, and
// returns what it is answered.
func (e *Edge) refuse(c *gin.Context, counted bool, err error) error {
	ask := e.budgets.take
	if counted {
		ask = e.budgets.peek
	}
	state := ask(c.Request.Context(), addressBudget(c), e.Limits.PerAddress)
	report(c, state)
	if state.exceeded() && !domain.IsCode(err, domain.RateLimited) {
		return e.budgets.refusal(state, noValidKey)
	}
	return err
}

// allowed reports Unauthorized for a key that may not be used from the address
// of the request.
func allowed(caller *domain.Caller, c *gin.Context) error {
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
