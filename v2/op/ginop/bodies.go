package ginop

import (
	"context"
	"io"
	"runtime"

	"golang.org/x/sync/semaphore"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// The bytes of bodies that may be under way at a time: from their first byte until
// their request is answered (decisions 2.2). A partner has half of all, so that
// none takes the room of all others.
const (
	keyBodies     = 16 << 20
	allBodies     = 128 << 20
	partnerBodies = allBodies / 2
)

// largeBody is the length from which few bodies are parsed at a time: parsing one
// of 1 MiB takes a processor for some 10 ms, and leaves several times its length to
// the garbage collector.
const largeBody = 64 << 10

// bodies bounds the bytes of bodies under way, apart from the requests in progress:
// a body that does not arrive holds no more than what of it has arrived, and no
// place. It is safe for concurrent use.
type bodies struct {
	keys     *shares[domain.KeyID]
	partners *shares[domain.PartnerID]
	all      *semaphore.Weighted
	// parsing are the large bodies that are read into values: a processor is left
	// to other requests where there are two.
	parsing *semaphore.Weighted
}

func newBodies() *bodies {
	return &bodies{
		keys: newShares[domain.KeyID](keyBodies), partners: newShares[domain.PartnerID](partnerBodies),
		all:     semaphore.NewWeighted(allBodies),
		parsing: semaphore.NewWeighted(int64(max(runtime.GOMAXPROCS(0)/2, 1))),
	}
}

// room is what one body holds of the bytes of its key, its partner and all.
type room struct {
	of     *bodies
	caller *domain.Caller
	held   []func()
}

func (r *room) give() {
	for _, give := range r.held {
		give()
	}
	r.held = nil
}

func (r *room) takeOfKey(ctx context.Context, n int64) error {
	give, err := r.of.keys.take(ctx, r.caller.Key, n, busy("the bodies of requests with this key have more than 16 MiB"))
	if err == nil {
		r.held = append(r.held, give)
	}
	return err
}

func (r *room) takeOfOthers(ctx context.Context, n int64) error {
	give, err := r.of.partners.take(ctx, r.caller.Partner, n,
		busy("the bodies of requests with keys of this partner have more than 64 MiB"))
	if err != nil {
		return err
	}
	r.held = append(r.held, give)
	if err := acquire(ctx, r.of.all, n, overloaded("too many bodies are under way; try again in a moment")); err != nil {
		return err
	}
	r.held = append(r.held, func() { r.of.all.Release(n) })
	return nil
}

// receive reads a body of the declared length; -1 where none is. A byte counts for
// weight. What a key declares counts for it at once; what counts for its partner
// and all, and for a key that declares nothing, is what arrives, in a few steps. A
// large one counts a quarter more for partner and all: for what parsing leaves.
func (r *room) receive(ctx context.Context, body io.Reader, length, weight int64) ([]byte, error) {
	most := length
	switch {
	case length > op.MaxBody:
		return nil, errTooLarge
	case length < 0:
		most = op.MaxBody
	default:
		if err := r.takeOfKey(ctx, length*weight); err != nil {
			return nil, err
		}
	}

	var read []byte
	for taken := int64(0); ; {
		if len(read) == cap(read) {
			next := nextStep(taken, most)
			if length < 0 {
				if err := r.takeOfKey(ctx, (next-taken)*weight); err != nil {
					return nil, err
				}
			}
			more := (next - taken) * weight
			if next > largeBody {
				more += more / 4
			}
			if err := r.takeOfOthers(ctx, more); err != nil {
				return nil, err
			}
			// One more byte, to see the end of a body that fills the rest.
			read, taken = append(make([]byte, 0, next+1), read...), next
		}
		n, err := body.Read(read[len(read):cap(read)])
		read = read[:len(read)+n]
		switch {
		case int64(len(read)) > most:
			return nil, errTooLarge
		case err == io.EOF:
			return read, nil
		case err != nil:
			return nil, cutBody()
		}
	}
}

// nextStep is how many bytes are taken after that many have arrived: few for a body
// that may not arrive, and a large one's rest as a whole. Bodies that each wait for
// a little more, with much in hand, would keep each other from their ends.
func nextStep(taken, most int64) int64 {
	switch {
	case taken == 0:
		return min(4<<10, most)
	case taken < largeBody:
		return min(largeBody, most)
	}
	return most
}

var errTooLarge = &domain.Error{Code: domain.PayloadTooLarge, Message: "the body is larger than 1 MiB"}

func cutBody() error { return domain.ErrInvalid("body", "could not be read to its end") }
