package ginop

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// atMostOnce runs the operation, unless an earlier request with its Idempotency-Key
// did: the answer is then the one that was recorded, and a header says so.
func (e *Edge) atMostOnce(c *gin.Context, o op.Operation, in any, key string, body []byte) (out domain.Outcome, err error) {
	if !goodIdempotencyKey(key) {
		return out, domain.ErrInvalid("Idempotency-Key", "must be at most 255 printable characters")
	}
	if err := o.Validate(in); err != nil { // 400 comes before 409 (decisions 2.4)
		return out, err
	}

	ctx := c.Request.Context()
	w := &onceWork{edge: e, c: c, op: o, in: in, key: key, hash: requestHash(c.Request, body)}
	if o.Prepares() {
		out, err = w.prepared(ctx)
	} else {
		out, err = w.once(ctx, e.Once, o.Run)
	}
	if w.ran || err != nil && !domain.IsCode(err, domain.Conflict) {
		return out, err
	}

	if lost := e.stillReached(ctx, o, in); lost != nil {
		return domain.Outcome{}, lost
	}
	if err == nil {
		out, err = e.opened(out)
	}
	if err == nil {
		c.Header("Idempotent-Replayed", "true")
	}
	return out, err
}

// onceWork is the work of a request that is done at most once.
type onceWork struct {
	edge *Edge
	c    *gin.Context
	op   op.Operation
	in   any
	key  string
	hash []byte
	// ran says that the operation was run, or its work before the transaction.
	ran bool
}

// prepared does the work before the transaction, and the operation, unless an
// outcome is recorded: neither is done twice.
func (w *onceWork) prepared(ctx context.Context) (domain.Outcome, error) {
	recorded, release, err := w.edge.Reserve(ctx, w.key, w.hash)
	if err != nil {
		return domain.Outcome{}, err
	}
	if recorded != nil {
		return *recorded, nil
	}

	w.ran = true
	done := false
	defer func() { // also after a panic
		if !done {
			release()
		}
	}()
	if err := w.op.Prepare(ctx, w.in); err != nil {
		return domain.Outcome{}, err
	}
	out, err := w.once(ctx, w.edge.Finish, w.op.RunPrepared)
	done = err == nil
	return out, err
}

// once runs the operation and has the outcome recorded, by Once or Finish of the edge.
func (w *onceWork) once(ctx context.Context, once Once, run runner) (domain.Outcome, error) {
	return once(ctx, w.key, w.hash, func(ctx context.Context) (domain.Outcome, error) {
		w.ran = true
		out, err := w.edge.answer(ctx, w.c, w.op, w.in, run)
		if err != nil || !w.op.Meta().Secret {
			return out, err
		}
		return w.edge.sealed(out)
	})
}

// outcomeContext is what an outcome is encrypted for.
func outcomeContext(id string) []byte { return []byte("outcome:" + id) }

// sealed is an outcome that may be recorded although it holds a secret.
func (e *Edge) sealed(out domain.Outcome) (domain.Outcome, error) {
	if e.Secrets == nil {
		return out, errors.New("record an outcome that holds a secret: there is no key to encrypt it with")
	}
	var err error
	out.SealedFor = uuid.NewString()
	if out.Sealed, err = e.Secrets.Seal(out.Body, outcomeContext(out.SealedFor)); err != nil {
		return out, fmt.Errorf("encrypt an outcome: %w", err)
	}
	return out, nil
}

// opened is a recorded outcome with its body.
func (e *Edge) opened(out domain.Outcome) (domain.Outcome, error) {
	if out.Sealed == nil {
		return out, nil
	}
	if e.Secrets == nil {
		return out, errors.New("read an outcome that holds a secret: there is no key to decrypt it with")
	}
	var err error
	if out.Body, err = e.Secrets.Open(out.Sealed, outcomeContext(out.SealedFor)); err != nil {
		return out, fmt.Errorf("decrypt an outcome: %w", err)
	}
	return out, nil
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
