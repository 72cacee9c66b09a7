package webhook

import (
	"context"
	"time"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// goneEvent is the reason for dropping a delivery whose event has been deleted.
const goneEvent = "the event is no longer kept"

// batch is the data for the attempts of one claim, read once. messages lacks the subscriptions whose secrets cannot be
// decrypted.
type batch struct {
	now      time.Time
	err      error                                       // why the data could not be read
	messages map[domain.WebhookID]domain.DeliveryMessage // without their events
	bodies   map[outbox.EventPlace]string
	signed   bool // the messages' BodySigned
}

// loadBatch reads the targets and bodies of claimed deliveries, and decrypts the secrets. It logs errors, for which
// batch.message postpones deliveries: all after an error in reading, or those whose secrets cannot be decrypted.
func (d *Dispatcher) loadBatch(ctx context.Context, leases []outbox.DeliveryLease) *batch {
	b := &batch{now: d.db.Now(), messages: map[domain.WebhookID]domain.DeliveryMessage{}}
	var targets map[domain.WebhookID]outbox.DeliveryTarget
	b.err = domain.Recover(ctx, d.log, "read what is to be delivered", func() (err error) {
		if targets, err = outbox.DeliveryTargets(ctx, d.db, leases); err == nil {
			b.bodies, err = outbox.EventBodies(ctx, d.db, leases)
		}
		if err == nil {
			b.signed, err = d.signed(ctx)
		}
		return err
	})
	if b.err != nil {
		d.log.WarnContext(ctx, "due deliveries cannot be read; the read will be retried", "error", b.err)
		return b
	}

	for id, target := range targets {
		message, err := domain.RecoverValue(ctx, d.log, "open the secrets of a subscription", func() (domain.DeliveryMessage, error) {
			return target.Message(d.open)
		})
		if err != nil {
			d.log.ErrorContext(ctx, "deliveries wait because their webhook's secret or authorization cannot be decrypted", "webhook", id.UUID(), "error", err)
			continue
		}
		b.messages[id] = message
	}
	return b
}

// open decrypts a secret that was encrypted for a context, or returns it from the cache.
func (d *Dispatcher) open(sealed, context []byte) ([]byte, error) {
	key := string(context) + string(sealed)
	if secret, ok := d.openSecrets.Get(key); ok {
		return []byte(secret), nil
	}
	plain, err := d.keys.Open(sealed, context)
	if err == nil {
		d.openSecrets.Add(key, string(plain))
	}
	return plain, err
}

// message returns the message of a delivery or, if there can be no attempt, the mark of the delivery: postponed if the
// batch could not be read or the secrets could not be decrypted, and dropped if the event was deleted.
func (b *batch) message(l outbox.DeliveryLease) (domain.DeliveryMessage, *outbox.DeliveryMark) {
	m, known := b.messages[l.Webhook]
	if b.err != nil {
		return m, b.postpone(l, readRetry)
	}
	body := b.bodies[l.EventPlace()]
	if body == "" {
		mark := b.postpone(l, 0)
		mark.Status, mark.Reason = domain.DeliveryDropped, goneEvent
		return m, mark
	}
	if !known { // not decrypted, or the subscription was deleted
		return m, b.postpone(l, keyRetry)
	}
	m.ID, m.BodySigned, m.Body = l.Event.String(), b.signed, []byte(body)
	return m, nil
}

// postpone returns the mark that requeues a delivery without an attempt, for a pause after the batch's time.
func (b *batch) postpone(l outbox.DeliveryLease, pause time.Duration) *outbox.DeliveryMark {
	return &outbox.DeliveryMark{DeliveryLease: l, Status: domain.DeliveryWaiting, Due: b.now.Add(pause)}
}
