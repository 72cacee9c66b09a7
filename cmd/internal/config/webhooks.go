package config

import (
	"fmt"

	"partnerapi/domain"
	"partnerapi/platform/webhook"
)

// webhookFlags say where events may be delivered.
type webhookFlags struct {
	WebhookAllowPrivate bool   `name:"webhook-allow-private" help:"Deliver events to private, local and special addresses too: for tests and closed networks."`
	WebhookCA           string `name:"webhook-ca" type:"path" placeholder:"FILE" help:"Certificates in PEM of authorities that endpoints of webhooks may have theirs from, beside the machine's."`
}

// Endpoints returns how a version of the program reaches endpoints, by the time of
// clock.
func (f webhookFlags) Endpoints(version string, clock domain.Clock) (*webhook.Endpoints, error) {
	e, err := webhook.NewEndpoints(webhook.Options{
		AllowPrivate: f.WebhookAllowPrivate, CAFile: f.WebhookCA, Version: version, Clock: clock,
	})
	if err != nil {
		return nil, fmt.Errorf("--webhook-ca: %w", err)
	}
	return e, nil
}
