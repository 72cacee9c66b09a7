package v2test

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"partnerapi/db"
	"partnerapi/domain"
)

// Receivers are the endpoints of subscriptions, which the service reaches instead of
// the network's. The zero value takes every address, and every event with 200. It is
// safe for concurrent use.
type Receivers struct {
	// Refuse, where set, says what is wrong with an address.
	Refuse func(url string) error
	// Answer, where set, is what a try comes back with.
	Answer func(ctx context.Context, s Sent) domain.DeliveryTry

	db *db.DB

	mu      sync.Mutex
	checked []string
	sent    []Sent
	inTx    bool
}

// Sent is an event that was sent.
type Sent struct {
	URL, EventID string
	Secrets      []string
	Body         []byte
}

// Check takes an address unless Refuse does not.
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

// Send takes an event as Answer says.
func (r *Receivers) Send(ctx context.Context, url, eventID string, secrets []string, body []byte) domain.DeliveryTry {
	s := Sent{URL: url, EventID: eventID, Secrets: secrets, Body: body}
	r.mu.Lock()
	r.sent = append(r.sent, s)
	r.inTx = r.inTx || r.db.InTx(ctx)
	r.mu.Unlock()
	if r.Answer != nil {
		return r.Answer(ctx, s)
	}
	return domain.DeliveryTry{At: r.db.Now(), StatusCode: http.StatusOK, DurationMS: 12}
}

// Seen returns the addresses that were checked and the events that were sent.
func (r *Receivers) Seen() (checked []string, sent []Sent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.checked...), append([]Sent{}, r.sent...)
}

// fault reports whether the outside world was talked to in a transaction.
func (r *Receivers) fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inTx {
		return errors.New("an endpoint was talked to in a transaction")
	}
	return nil
}
