package ginop

import (
	"context"
	"io"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// The limits, in bytes, of bodies held at a time, each from its first byte until the response to its request (decisions
// 2.2): of a key, of all keys, and of a partner. A partner may use half of all, so that no partner excludes the others.
// They are separate from those of requests in progress: while a slow body arrives, it takes no place in progress.
const (
	keyBodies     = 16 << 20
	allBodies     = 128 << 20
	partnerBodies = allBodies / 2
)

// largeBody is the length from which concurrent parsing is bounded: parsing 1 MiB takes some 10 ms of a processor
// and allocates several times its length.
const largeBody = 64 << 10

// acquireForKey acquires n bytes of the key's share.
func (t *turn) acquireForKey(ctx context.Context, n int64) error {
	return t.keep(t.edge.bodies.keys.acquire(ctx, t.caller.Key, n, turnTimeout,
		busy("the bodies of concurrent requests with this key exceed 16 MiB; try again in a moment")))
}

// acquireForOthers acquires n bytes of the partner's and the process's shares.
func (t *turn) acquireForOthers(ctx context.Context, n int64) error {
	err := t.keep(t.edge.bodies.partners.acquire(ctx, t.caller.Partner, n, turnTimeout,
		busy("the bodies of concurrent requests with keys of this partner exceed 64 MiB; try again in a moment")))
	if err != nil {
		return err
	}
	return t.keep(acquire(ctx, t.edge.bodies.all, n, turnTimeout,
		overloaded("the bodies of concurrent requests are too large in total; try again in a moment")))
}

// receiveBounded reads a body of the declared length; -1 if none is declared. A body over op.MaxBody is
// PayloadTooLarge, and one that ends early InvalidRequest. Each byte takes weight units of the shares of the key, the
// partner and the process. They are acquired in a few steps (nextStep) as bytes arrive; only those of the key are
// acquired at once if the length is declared. The last step of a large body takes a quarter more of the partner and the
// process, for the garbage that parsing leaves.
func (t *turn) receiveBounded(ctx context.Context, body io.Reader, length, weight int64) ([]byte, error) {
	maxLen := length
	switch {
	case length > op.MaxBody:
		return nil, errTooLarge
	case length < 0:
		maxLen = op.MaxBody
	default:
		if err := t.acquireForKey(ctx, length*weight); err != nil {
			return nil, err
		}
	}

	var read []byte
	for acquired := int64(0); ; { // bytes, before their weight
		if len(read) == cap(read) {
			next := nextStep(acquired, maxLen)
			if length < 0 {
				if err := t.acquireForKey(ctx, (next-acquired)*weight); err != nil {
					return nil, err
				}
			}
			units := (next - acquired) * weight
			if next > largeBody {
				units += units / 4
			}
			if err := t.acquireForOthers(ctx, units); err != nil {
				return nil, err
			}
			// One more byte, to read the end of a body that has just next bytes.
			read, acquired = append(make([]byte, 0, next+1), read...), next
		}
		n, err := body.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		switch {
		case int64(len(read)) > maxLen:
			return nil, errTooLarge
		case err == io.EOF:
			return read, nil
		case err != nil:
			return nil, errIncompleteBody()
		}
	}
}

// nextStep returns how many bytes of a body, in total, to acquire after the acquired ones have arrived; maxLen is its
// maximum. The first step is small, as the body may stall. The last one is all of a large body: if several bodies held
// much and waited for more, they would deadlock.
func nextStep(acquired, maxLen int64) int64 {
	switch {
	case acquired == 0:
		return min(4<<10, maxLen)
	case acquired < largeBody:
		return min(largeBody, maxLen)
	}
	return maxLen
}

var errTooLarge = &domain.Error{Code: domain.PayloadTooLarge, Message: "the body is larger than 1 MiB"}

// errIncompleteBody returns the error for a body that could not be read completely.
func errIncompleteBody() error { return domain.ErrInvalid("body", "could not be read completely") }
