package webhook

import (
	"net/http"
	"time"

	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/platform/lease"
)

// backoff is the pauses after each failed try of a delivery; the last one repeats until
// domain.WebhookRetryFor after the first try (decisions 8.4).
var backoff = lease.Backoff{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
}

// longestPause is the greatest pause that an endpoint may ask for.
const longestPause = 2 * time.Hour

// judge says what becomes of a delivery after a try that ended at now.
//
// Where an endpoint says Retry-After, the next try is not before that, as far as the
// schedule goes: never earlier than its own pause, nor later than longestPause. The
// last try is domain.WebhookRetryFor after the first.
func judge(l outbox.DeliveryLease, a Answer, now time.Time) outbox.DeliveryMark {
	m := outbox.DeliveryMark{DeliveryLease: l, Try: &a.DeliveryTry, Due: now}
	first := l.FirstTry
	if first.IsZero() {
		first = a.At
	}
	end := first.Add(domain.WebhookRetryFor)
	switch {
	case a.Succeeded():
		m.Status = domain.DeliverySucceeded
	case a.StatusCode == http.StatusGone:
		m.Status, m.Gone = domain.DeliveryFailed, true
	case !now.Before(end):
		m.Status = domain.DeliveryFailed
	default:
		pause := max(backoff.After(l.Tries+1), min(a.RetryAfter, longestPause))
		m.Status, m.Due = domain.DeliveryWaiting, now.Add(pause)
		if m.Due.After(end) {
			m.Due = end
		}
	}
	return m
}
