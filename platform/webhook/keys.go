package webhook

import (
	"context"
	"time"

	"partnerapi/db/outbox"
	"partnerapi/platform/lease"
)

// keysPoll is how often the keys of subscriptions are checked: a subscription is disabled within a minute of the end of
// its key (decisions 8.4).
const keysPoll = 20 * time.Second

// FollowKeys disables subscriptions whose key was revoked or has expired, until ctx ends. Any number of processes may do
// so.
func (d *Dispatcher) FollowKeys(ctx context.Context) {
	lease.NewLoop(d.log, "check the keys of webhooks", keysPoll, func(ctx context.Context) (time.Duration, error) {
		return keysPoll, d.FollowKeysOnce(ctx)
	}).Run(ctx)
}

// FollowKeysOnce is one check of FollowKeys. It logs and reports what it disabled or resumed.
func (d *Dispatcher) FollowKeysOnce(ctx context.Context) error {
	followed, err := outbox.FollowKeys(ctx, d.db)
	if err != nil {
		return err
	}
	for _, id := range followed.Disabled {
		d.log.WarnContext(ctx, "a webhook was disabled because its API key was revoked or has expired", "webhook", id.String())
	}
	for _, id := range followed.Resumed {
		d.log.InfoContext(ctx, "a webhook was resumed because its API key has not expired", "webhook", id.String())
	}
	if n := len(followed.Disabled); n > 0 {
		if d.observe.Disabled != nil {
			d.observe.Disabled(n)
		}
		d.Wake() // drops what waits
	}
	return nil
}
