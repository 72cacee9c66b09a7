package v2test

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"partnerapi/db"
	"partnerapi/domain"
)

// Receivers stand for the endpoints of subscriptions. By default they accept every address, and every event with 200.
// They record whether they were called in a transaction. Receivers are safe for concurrent use.
type Receivers struct {
	// Refuse, if set, returns an error for an address that is not allowed.
	Refuse func(url string) error
	// Answer, if set, returns the outcome of sending an event.
	Answer func(ctx context.Context, m domain.DeliveryMessage) domain.DeliveryTry

	db *db.DB

	mu      sync.Mutex
	checked []string
	sent    []domain.DeliveryMessage
	inTx    bool // whether a call was sent in a transaction
}

// Check records an address, and returns the error of Refuse.
func (r *Receivers) Check(ctx context.Context, url string) error {
	r.mu.Lock()
	r.checked = append(r.checked, url)
	r.inTx = r.inTx || r.db.InTx(ctx)
	r.mu.Unlock()
	if r.Refuse != nil {
		return r.Refuse(url)
	}
	return nil
}

// Send records an event, and returns the outcome of Answer; without that, a success.
func (r *Receivers) Send(ctx context.Context, m domain.DeliveryMessage) domain.DeliveryTry {
	r.mu.Lock()
	r.sent = append(r.sent, m)
	r.inTx = r.inTx || r.db.InTx(ctx)
	r.mu.Unlock()
	if r.Answer != nil {
		return r.Answer(ctx, m)
	}
	return domain.DeliveryTry{At: r.db.Now(), StatusCode: http.StatusOK, DurationMS: 12}
}

// Seen returns the addresses that were checked and the events that were sent.
func (r *Receivers) Seen() (checked []string, sent []domain.DeliveryMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.checked...), append([]domain.DeliveryMessage{}, r.sent...)
}

// fault returns an error if Check or Send was called in a transaction.
func (r *Receivers) fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inTx {
		return errors.New("an endpoint was talked to in a transaction")
	}
	return nil
}
