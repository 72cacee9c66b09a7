package webhook

import (
	"context"
	"time"

	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// goneEvent is the reason for dropping a delivery whose event has been deleted.
const goneEvent = "the event is no longer kept"

// batch is the data for the attempts of one claim, read once. secrets lacks the subscriptions whose secrets cannot be
// decrypted.
type batch struct {
	now     time.Time
	err     error // why the data could not be read
	targets map[domain.WebhookID]outbox.DeliveryTarget
	secrets map[domain.WebhookID][]string
	bodies  map[outbox.EventPlace]string
}

// loadBatch reads the targets and bodies of claimed deliveries, and decrypts the secrets. It logs errors, for which
// batch.message postpones deliveries: all after an error in reading, or those whose secrets cannot be decrypted.
func (d *Dispatcher) loadBatch(ctx context.Context, leases []outbox.DeliveryLease) *batch {
	b := &batch{now: d.db.Now(), secrets: map[domain.WebhookID][]string{}}
	b.err = domain.Recover(ctx, d.log, "read what is to be delivered", func() (err error) {
		if b.targets, err = outbox.DeliveryTargets(ctx, d.db, leases); err == nil {
			b.bodies, err = outbox.EventBodies(ctx, d.db, leases)
		}
		return err
	})
	if b.err != nil {
		d.log.WarnContext(ctx, "due deliveries cannot be read; the read will be retried", "error", b.err)
		return b
	}

	for id, target := range b.targets {
		secrets, err := domain.RecoverValue(ctx, d.log, "open the secrets of a subscription", func() ([]string, error) {
			return d.secrets(target)
		})
		if err != nil {
			d.log.ErrorContext(ctx, "deliveries wait, as they cannot be signed", "webhook", id.UUID(), "error", err)
			continue
		}
		b.secrets[id] = secrets
	}
	return b
}

// secrets returns the signing secrets of a subscription: the current secret and, while it is valid, the replaced one.
func (d *Dispatcher) secrets(t outbox.DeliveryTarget) ([]string, error) {
	current, err := d.open(t.ID, t.Secret)
	if err != nil || t.Replaced == nil {
		return []string{current}, err
	}
	replaced, err := d.open(t.ID, t.Replaced)
	return []string{current, replaced}, err
}

// open decrypts a secret of a subscription, or returns it from the cache.
func (d *Dispatcher) open(id domain.WebhookID, sealed []byte) (string, error) {
	key := id.UUID() + string(sealed)
	if secret, ok := d.openSecrets.Get(key); ok {
		return secret, nil
	}
	plain, err := d.keys.Open(sealed, domain.WebhookSecretContext(id))
	if err != nil {
		return "", err
	}
	d.openSecrets.Add(key, string(plain))
	return string(plain), nil
}

// message returns the message of a delivery or, if there can be no attempt, the mark of the delivery: postponed if the
// batch could not be read or the secrets could not be decrypted, and dropped if the event was deleted.
func (b *batch) message(l outbox.DeliveryLease) (Message, *outbox.DeliveryMark) {
	if b.err != nil {
		return Message{}, b.postpone(l, readRetry)
	}
	body := b.bodies[l.EventPlace()]
	if body == "" {
		m := b.postpone(l, 0)
		m.Status, m.Reason = domain.DeliveryDropped, goneEvent
		return Message{}, m
	}
	secrets := b.secrets[l.Webhook]
	if len(secrets) == 0 { // not decrypted, or the subscription was deleted
		return Message{}, b.postpone(l, keyRetry)
	}
	return Message{URL: b.targets[l.Webhook].URL, ID: l.Event.String(), Secrets: secrets, Body: []byte(body)}, nil
}

// postpone returns the mark that requeues a delivery without an attempt, for a pause after the batch's time.
func (b *batch) postpone(l outbox.DeliveryLease, pause time.Duration) *outbox.DeliveryMark {
	return &outbox.DeliveryMark{DeliveryLease: l, Status: domain.DeliveryWaiting, Due: b.now.Add(pause)}
}
