package ginop

import (
	"context"
	"io"
	"runtime"

	"golang.org/x/sync/semaphore"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// The limits, in bytes, of bodies held at a time, each from its first byte until its request is answered (decisions
// 2.2): of a key, of all keys, and of a partner. A partner may use half of all, so that no partner excludes the others.
const (
	keyBodies     = 16 << 20
	allBodies     = 128 << 20
	partnerBodies = allBodies / 2
)

// largeBody is the length from which concurrent parsing is bounded: parsing 1 MiB takes some 10 ms of a processor
// and allocates several times its length.
const largeBody = 64 << 10

// bodies bounds the bytes of request bodies, separately from the requests in progress: while a slow body arrives, it
// takes no place in progress, and its share of bytes grows in steps. It is safe for concurrent use.
type bodies struct {
	keys     *shares[domain.KeyID]
	partners *shares[domain.PartnerID]
	all      *semaphore.Weighted
	// parsing bounds the large bodies that are parsed at a time to half of the processors, so that other requests have
	// the rest.
	parsing *semaphore.Weighted
}

// newBodies returns bounds per key, per partner and for the process.
func newBodies() *bodies {
	return &bodies{
		keys: newShares[domain.KeyID](keyBodies), partners: newShares[domain.PartnerID](partnerBodies),
		all:     semaphore.NewWeighted(allBodies),
		parsing: semaphore.NewWeighted(int64(max(runtime.GOMAXPROCS(0)/2, 1))),
	}
}

// room holds the bytes that one body has acquired of the shares of its key, its partner and the process.
type room struct {
	of       *bodies
	caller   *domain.Caller
	releases []func()
}

// release returns the held bytes to all three shares.
func (r *room) release() {
	for _, give := range r.releases {
		give()
	}
	r.releases = nil
}

// acquireForKey acquires n bytes of the key's share.
func (r *room) acquireForKey(ctx context.Context, n int64) error {
	give, err := r.of.keys.acquire(ctx, r.caller.Key, n, busy("the bodies of requests with this key have more than 16 MiB"))
	if err == nil {
		r.releases = append(r.releases, give)
	}
	return err
}

// acquireForOthers acquires n bytes of the partner's and the process's shares.
func (r *room) acquireForOthers(ctx context.Context, n int64) error {
	give, err := r.of.partners.acquire(ctx, r.caller.Partner, n,
		busy("the bodies of requests with keys of this partner have more than 64 MiB"))
	if err != nil {
		return err
	}
	r.releases = append(r.releases, give)
	if err := acquire(ctx, r.of.all, n, overloaded("too many bodies are under way; try again in a moment")); err != nil {
		return err
	}
	r.releases = append(r.releases, func() { r.of.all.Release(n) })
	return nil
}

// receive reads a body of the declared length; -1 if none is declared. A body over op.MaxBody is PayloadTooLarge, and
// one that ends early InvalidRequest. Each byte takes weight units of the shares. The units of a declared length are
// acquired from the key's share at once; those of the partner and the process, and of the key if no length is declared,
// as bytes arrive, in a few steps. A large body takes a quarter more of the partner and the process, for the garbage
// that parsing leaves.
func (r *room) receive(ctx context.Context, body io.Reader, length, weight int64) ([]byte, error) {
	most := length
	switch {
	case length > op.MaxBody:
		return nil, errTooLarge
	case length < 0:
		most = op.MaxBody
	default:
		if err := r.acquireForKey(ctx, length*weight); err != nil {
			return nil, err
		}
	}

	var read []byte
	for acquired := int64(0); ; { // bytes, before their weight
		if len(read) == cap(read) {
			next := nextStep(acquired, most)
			if length < 0 {
				if err := r.acquireForKey(ctx, (next-acquired)*weight); err != nil {
					return nil, err
				}
			}
			units := (next - acquired) * weight
			if next > largeBody {
				units += units / 4
			}
			if err := r.acquireForOthers(ctx, units); err != nil {
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
