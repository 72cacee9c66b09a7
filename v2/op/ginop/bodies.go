package ginop

import (
	"context"
	"io"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// The limits, in bytes, of bodies held at a time, each from its first byte until its request is answered (decisions
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
	return t.keep(t.edge.bodies.keys.acquire(ctx, t.caller.Key, n, turnWithin,
		busy("the bodies of requests with this key have more than 16 MiB")))
}

// acquireForOthers acquires n bytes of the partner's and the process's shares.
func (t *turn) acquireForOthers(ctx context.Context, n int64) error {
	err := t.keep(t.edge.bodies.partners.acquire(ctx, t.caller.Partner, n, turnWithin,
		busy("the bodies of requests with keys of this partner have more than 64 MiB")))
	if err != nil {
		return err
	}
	return t.keep(acquire(ctx, t.edge.bodies.all, n, turnWithin,
		overloaded("too many bodies are under way; try again in a moment")))
}

// receiveBounded reads a body of the declared length; -1 if none is declared. A body over op.MaxBody is
// PayloadTooLarge, and one that ends early InvalidRequest. Each byte takes weight units of the shares. The units of a
// declared length are acquired from the key's share at once; those of the partner and the process, and of the key if no
// length is declared, as bytes arrive, in a few steps. A large body takes a quarter more of the partner and the
// process, for the garbage that parsing leaves.
func (t *turn) receiveBounded(ctx context.Context, body io.Reader, length, weight int64) ([]byte, error) {
	most := length
	switch {
	case length > op.MaxBody:
		return nil, errTooLarge
	case length < 0:
		most = op.MaxBody
	default:
		if err := t.acquireForKey(ctx, length*weight); err != nil {
			return nil, err
		}
	}

	var read []byte
	for acquired := int64(0); ; { // bytes, before their weight
		if len(read) == cap(read) {
			next := nextStep(acquired, most)
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
		case int64(len(read)) > most:
			return nil, errTooLarge
		case err == io.EOF:
			return read, nil
		case err != nil:
			return nil, errIncompleteBody()
		}
	}
}

// nextStep returns the number of bytes, in total, to acquire after the acquired ones have arrived; most is the maximum.
// It is small at first, as the body may stall, and then the whole of a large body: several bodies that hold much and
// wait for more would deadlock.
func nextStep(acquired, most int64) int64 {
	switch {
	case acquired == 0:
		return min(4<<10, most)
	case acquired < largeBody:
		return min(largeBody, most)
	}
	return most
}

var errTooLarge = &domain.Error{Code: domain.PayloadTooLarge, Message: "the body is larger than 1 MiB"}

// errIncompleteBody returns the error for a body that could not be read to its end.
func errIncompleteBody() error { return domain.ErrInvalid("body", "could not be read to its end") }
