package ginop

import (
	"context"
	"crypto/sha256"
	"net/http"

	"github.com/gin-gonic/gin"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// outcome runs the operation, at most once where the request says so, and tells
// whether it is the replay of an earlier run.
func (e *Edge) outcome(
	c *gin.Context, o op.Operation, in any, body []byte,
) (out domain.Outcome, replayed bool, err error) {
	ran := false
	work := func(ctx context.Context) (domain.Outcome, error) {
		ran = true
		out, err := o.Run(ctx, in)
		if err != nil {
			return domain.Outcome{}, err
		}
		if err := e.charge(c, o, out); err != nil {
			return domain.Outcome{}, err
		}
		encoded, err := Encode(out)
		return domain.Outcome{Status: o.Meta().Status, Body: encoded}, err
	}

	ctx, key := c.Request.Context(), c.GetHeader("Idempotency-Key")
	if key == "" || o.Meta().Method != http.MethodPost {
		out, err = work(ctx)
		return out, false, err
	}
	if !goodIdempotencyKey(key) {
		return out, false, domain.ErrInvalid("Idempotency-Key", "must be at most 255 printable characters")
	}
	if err := o.Validate(in); err != nil { // 400 comes before 409 (decisions 2.4)
		return out, false, err
	}

	out, err = e.Once(ctx, key, requestHash(c.Request, body), work)
	if !ran && (err == nil || domain.IsCode(err, domain.Conflict)) {
		if lost := e.stillReached(ctx, o, in); lost != nil {
			return domain.Outcome{}, false, lost
		}
	}
	return out, !ran, err
}

// stillReached checks the reach of a request whose work does not run, as an
// earlier one's did: the key may have lost the client since.
func (e *Edge) stillReached(ctx context.Context, o op.Operation, in any) error {
	client, user := o.Input().Subject(in)
	if e.Reach == nil || client.IsZero() && user.IsZero() {
		return nil
	}
	return e.Reach(ctx, client, user)
}

func goodIdempotencyKey(key string) bool {
	if len(key) > 255 {
		return false
	}
	for _, b := range []byte(key) {
		if b < ' ' || b > '~' {
			return false
		}
	}
	return true
}

// requestHash identifies a request: its path, parameters and body.
func requestHash(r *http.Request, body []byte) []byte {
	hash := sha256.New()
	hash.Write([]byte(r.URL.RequestURI()))
	hash.Write([]byte{0})
	hash.Write(body)
	return hash.Sum(nil)
}
