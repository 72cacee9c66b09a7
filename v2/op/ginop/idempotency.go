package ginop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// runAtMostOnce runs the operation, unless an earlier request with its Idempotency-Key did: then it returns the
// recorded outcome, with the header Idempotent-Replayed, if the key still has access. A Conflict says that the key was
// used for another request, or is in use. A dry run is always run, and not recorded.
func (e *Edge) runAtMostOnce(
	c *gin.Context, o op.Operation, in any, key string, body []byte,
) (out domain.Outcome, err error) {
	if !validIdempotencyKey(key) {
		return out, domain.ErrInvalid("Idempotency-Key", "must be at most 255 printable characters")
	}
	if err := o.Validate(in); err != nil { // 400 comes before 409 (decisions 2.4)
		return out, err
	}

	ctx := c.Request.Context()
	if o.Input().IsDryRun(in) { // it changes nothing: a repeat is harmless
		return e.answer(ctx, c, o, in, o.Run)
	}
	w := &idempotentRun{edge: e, c: c, op: o, in: in, key: key}
	err = e.Parse(ctx, len(body), func() error {
		w.request = digestOf(c.Request, body)
		return nil
	})
	if err != nil {
		return out, err
	}
	if o.Prepares() {
		out, err = w.runPrepared(ctx)
	} else {
		out, err = w.runRecorded(ctx, e.Once, o.Run)
	}
	isRepeat := !w.ran && (err == nil || domain.IsCode(err, domain.Conflict)) // of an earlier request with the key
	if !isRepeat {
		return out, err
	}

	if reachErr := e.checkReach(ctx, o, in); reachErr != nil {
		return domain.Outcome{}, reachErr
	}
	if err == nil {
		out, err = e.openOutcome(out)
	}
	if err == nil {
		c.Header("Idempotent-Replayed", "true")
	}
	return out, err
}

// idempotentRun is a request with an Idempotency-Key.
type idempotentRun struct {
	edge *Edge
	c    *gin.Context
	op   op.Operation
	in   any
	key  string
	// request identifies the request among those with the key.
	request domain.RequestDigest
	// ran says that the operation was run by this request, or its step before the transaction.
	ran bool
}

// runPrepared runs the step before the transaction and then the operation, and records the outcome. If an outcome is
// recorded already, it runs neither and returns that. After an error it releases the key, for another request.
func (w *idempotentRun) runPrepared(ctx context.Context) (domain.Outcome, error) {
	recorded, release, err := w.edge.Reserve(ctx, w.key, w.request)
	if err != nil {
		return domain.Outcome{}, err
	}
	if recorded != nil {
		return *recorded, nil
	}

	w.ran = true // the outcome is no repeat
	done := false
	defer func() { // also after a panic
		if !done {
			release()
		}
	}()
	if err := w.op.Prepare(ctx, w.in); err != nil {
		return domain.Outcome{}, err
	}
	out, err := w.runRecorded(ctx, w.edge.Finish, w.op.RunPrepared)
	done = err == nil
	return out, err
}

// runRecorded runs the operation and records its outcome by once, which is the edge's Once or Finish. One with a secret
// is recorded encrypted, and returned with its plain body. An outcome that is recorded already is returned as it is.
func (w *idempotentRun) runRecorded(ctx context.Context, once Once, run runner) (domain.Outcome, error) {
	return once(ctx, w.key, w.request, func(ctx context.Context) (domain.Outcome, error) {
		w.ran = true // the outcome is no repeat
		out, err := w.edge.answer(ctx, w.c, w.op, w.in, run)
		if err != nil || !w.op.Meta().Secret {
			return out, err
		}
		return w.edge.sealOutcome(out)
	})
}

// outcomeContext returns the sealing context of an outcome, without which it cannot be opened; id is its SealedFor.
func outcomeContext(id string) []byte { return []byte("outcome:" + id) }

// sealOutcome sets Sealed to the encrypted body of an outcome that holds a secret, so that it may be recorded.
func (e *Edge) sealOutcome(out domain.Outcome) (domain.Outcome, error) {
	if e.Secrets == nil {
		return out, errors.New("record an outcome that contains a secret: there is no key to encrypt it with")
	}
	var err error
	out.SealedFor = uuid.NewString()
	if out.Sealed, err = e.Secrets.Seal(out.Body, outcomeContext(out.SealedFor)); err != nil {
		return out, fmt.Errorf("encrypt an outcome: %w", err)
	}
	return out, nil
}

// openOutcome decrypts the body of a recorded outcome, if it is encrypted.
func (e *Edge) openOutcome(out domain.Outcome) (domain.Outcome, error) {
	if out.Sealed == nil {
		return out, nil
	}
	if e.Secrets == nil {
		return out, errors.New("read an outcome that contains a secret: there is no key to decrypt it with")
	}
	var err error
	if out.Body, err = e.Secrets.Open(out.Sealed, outcomeContext(out.SealedFor)); err != nil {
		return out, fmt.Errorf("decrypt an outcome: %w", err)
	}
	return out, nil
}

// checkReach returns NotFound if the key no longer has access to the client or the user that the path of a replayed
// request names.
func (e *Edge) checkReach(ctx context.Context, o op.Operation, in any) error {
	client, user := o.Input().Subject(in)
	if e.Reach == nil || client.IsZero() && user.IsZero() {
		return nil
	}
	return e.Reach(ctx, client, user)
}

// validIdempotencyKey reports whether a key has at most 255 characters, all of them printable ASCII.
func validIdempotencyKey(key string) bool {
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

// digestOf returns the digests of a request's path, parameters and body, which is valid for its operation. The numbers of
// such a body are small, so that the canonical form, in which integers are exact here, does not round any.
func digestOf(r *http.Request, body []byte) domain.RequestDigest {
	hash := func(body []byte) []byte {
		hash := sha256.New()
		if only := domain.OnlyFrom(r.Context()); !only.IsZero() { // another access is another request
			hash.Write(only[:])
		}
		hash.Write([]byte(r.URL.RequestURI()))
		hash.Write([]byte{0})
		hash.Write(body)
		return hash.Sum(nil)
	}
	digest := domain.RequestDigest{Exact: hash(body)}
	canonical := jsontext.Value(bytes.TrimPrefix(body, op.ByteOrderMark)).Clone()
	if canonical.Canonicalize(jsontext.CanonicalizeRawInts(false)) != nil { // an optional body that is empty
		canonical = body
	}
	digest.Canonical = hash(canonical)
	return digest
}
