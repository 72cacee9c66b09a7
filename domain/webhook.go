package domain

import (
	"crypto/rand"
	"encoding/base64"
	"time"
)

const (
	// MaxWebhooks is how many subscriptions a partner may have (decisions 8.6).
	MaxWebhooks = 20
	// MaxWebhookURL is the greatest length of the address of an endpoint, in
	// characters.
	MaxWebhookURL = 2000
	// WebhookDeadline is how long an endpoint may take for its whole answer.
	WebhookDeadline = 10 * time.Second
	// WebhookRetryFor is how long after its first try a delivery is tried again, and
	// how long deliveries may fail until the subscription is disabled.
	WebhookRetryFor = 24 * time.Hour
	// WebhookMailAfter is how long deliveries fail until the partner's admins get a mail.
	WebhookMailAfter = 6 * time.Hour
	// ReplacedSecretLife is how long a secret signs beside the one that replaced it.
	ReplacedSecretLife = 24 * time.Hour
	// DeliveryLife is how long deliveries are kept.
	DeliveryLife = 30 * 24 * time.Hour
	// MaxTryResponse is how much of an answer is kept of a try, in bytes.
	MaxTryResponse = 1 << 10
	// MaxTriesUnderWay is how many tries of one subscription are in progress at a time.
	MaxTriesUnderWay = 10
)

// SignatureHeader is the service's own signature: t=…,v1=…, where t is the time of
// the try in Unix seconds, and v1 the HMAC-SHA256 of t, a dot and the body in
// hexadecimal, keyed by the secret's whole text (decisions 8.3). While a secret is
// being replaced there is a second v1.
const SignatureHeader = "X-Service-Signature"

// WebhookStatus says whether a subscription is delivered to.
type WebhookStatus string

// The statuses: a paused one was paused by a caller, a disabled one by the service,
// after deliveries failed for WebhookRetryFor or the endpoint answered 410.
const (
	WebhookActive   WebhookStatus = "active"
	WebhookPaused   WebhookStatus = "paused"
	WebhookDisabled WebhookStatus = "disabled"
)

// Values lists the statuses.
func (WebhookStatus) Values() []string { return texts(WebhookActive, WebhookPaused, WebhookDisabled) }

// Webhook is a subscription to events. Its access is that of the key that made it,
// narrowed by Clients.
type Webhook struct {
	ID          WebhookID
	Partner     PartnerID
	Key         KeyID
	URL         string
	Events      []EventType
	Clients     []ClientID // empty means all that the key reaches
	Description *string
	Status      WebhookStatus
	CreatedAt   time.Time
	UpdatedAt   time.Time
	// LastDeliveryAt is when a delivery last succeeded.
	LastDeliveryAt *time.Time
	// FailingSince is the time of the first of the consecutive failures; nil for none.
	FailingSince *time.Time
}

// DeliveryStatus says how far the delivery of an event to a subscription is.
type DeliveryStatus string

// The statuses of deliveries: a dropped one was given up because of the subscription
// or its key, a failed one because of the endpoint.
const (
	DeliveryWaiting   DeliveryStatus = "waiting"
	DeliverySucceeded DeliveryStatus = "succeeded"
	DeliveryFailed    DeliveryStatus = "failed"
	DeliveryDropped   DeliveryStatus = "dropped"
)

// Values lists the statuses.
func (DeliveryStatus) Values() []string {
	return texts(DeliveryWaiting, DeliverySucceeded, DeliveryFailed, DeliveryDropped)
}

// Delivery is what became of an event for a subscription.
type Delivery struct {
	ID        DeliveryID
	Webhook   WebhookID
	Event     EventID
	Type      EventType
	Status    DeliveryStatus
	Reason    *string // why it was dropped
	CreatedAt time.Time
	Tries     []DeliveryTry
}

// DeliveryTry is one request to an endpoint.
type DeliveryTry struct {
	At time.Time `json:"at"`
	// StatusCode is that of the answer; 0 where there was none.
	StatusCode int   `json:"status_code"`
	DurationMS int64 `json:"duration_ms"`
	// Response is the start of the answer, at most MaxTryResponse bytes, or else why
	// there was none.
	Response string `json:"response"`
}

// WebhookSecretPrefix begins every secret of a subscription; 33 random bytes in
// standard base64 follow (decisions 8.3).
const WebhookSecretPrefix = "whsec_"

// NewWebhookSecret makes a secret for a subscription.
func NewWebhookSecret() string {
	random := make([]byte, 33)
	_, _ = rand.Read(random) // never fails
	return WebhookSecretPrefix + base64.StdEncoding.EncodeToString(random)
}

// WebhookSecretContext returns the context for which a subscription's secrets are sealed.
func WebhookSecretContext(id WebhookID) []byte { return []byte("webhook:" + id.UUID()) }
