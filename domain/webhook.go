package domain

import (
	"crypto/rand"
	"encoding/base64"
	"time"
)

const (
	// MaxWebhooks is how many subscriptions a partner may have (decisions 8.6).
	MaxWebhooks = 20
	// MaxWebhookClients is how many clients a subscription may be limited to (decisions 8.6).
	MaxWebhookClients = 500
	// MaxWebhookURL is the greatest length of the URL of an endpoint, in characters.
	MaxWebhookURL = 2000
	// WebhookDeadline is how long a request to an endpoint may take, with its whole response.
	WebhookDeadline = 10 * time.Second
	// WebhookRetryFor is how long after its first attempt a delivery is retried, and the duration of failures after which
	// the subscription is disabled.
	WebhookRetryFor = 24 * time.Hour
	// WebhookMailAfter is the duration of failures after which the partner's admins get an email.
	WebhookMailAfter = 6 * time.Hour
	// ReplacedSecretLife is how long deliveries are signed with a replaced secret too.
	ReplacedSecretLife = 24 * time.Hour
	// DeliveryLife is how long deliveries are kept.
	DeliveryLife = 30 * 24 * time.Hour
	// MaxTryResponse is how much of the response to a try is kept, in bytes.
	MaxTryResponse = 1 << 10
	// MaxConcurrentTries is the greatest number of concurrent tries of one subscription.
	MaxConcurrentTries = 10
)

// SignatureHeader is the header with the service's own signature: t=…,v1=…, where t is the time of the try in Unix
// seconds, and v1 the HMAC-SHA256 of t, a dot and the body in hexadecimal, with the secret's whole text as its key
// (decisions 8.3). For ReplacedSecretLife after a replacement, the replaced secret gives a second v1.
const SignatureHeader = "X-Service-Signature"

// BodySignatureHeader is the header with a signature of the body alone, for receivers that know this form only, which
// GitHub introduced: sha256= and the HMAC-SHA256 of the body in hexadecimal, with the secret's whole text as its key. A
// header has one such signature: a replaced secret gives none.
const BodySignatureHeader = "X-Hub-Signature-256"

// WebhookStatus is the status of a subscription. Only active subscriptions get deliveries.
type WebhookStatus string

// The statuses. A caller pauses a subscription; the service disables it for a DisabledReason.
const (
	WebhookActive   WebhookStatus = "active"
	WebhookPaused   WebhookStatus = "paused"
	WebhookDisabled WebhookStatus = "disabled"
)

// Values lists the statuses.
func (WebhookStatus) Values() []string { return texts(WebhookActive, WebhookPaused, WebhookDisabled) }

// DisabledReason is the reason why the service disabled a subscription (decisions 8.4).
type DisabledReason string

// The reasons. For 24 hours deliveries failed and none succeeded; the endpoint responded with 410; the key was revoked;
// the key has expired.
const (
	DisabledFailures   DisabledReason = "failures"
	DisabledGone       DisabledReason = "gone"
	DisabledKeyRevoked DisabledReason = "key_revoked"
	DisabledKeyExpired DisabledReason = "key_expired"
)

// Values lists the reasons.
func (DisabledReason) Values() []string {
	return texts(DisabledFailures, DisabledGone, DisabledKeyRevoked, DisabledKeyExpired)
}

// Webhook is a subscription to events. It has the access of its key, limited to Clients: the key that created it,
// or the one that took it over after that key had ended.
type Webhook struct {
	ID          WebhookID
	Partner     PartnerID
	Key         KeyID
	URL         string
	Events      []EventType
	Clients     []ClientID // empty means all clients that the key may access
	Description *string
	Status      WebhookStatus
	// DisabledReason is why it is disabled. It is nil if it is not, or if release 1.0 disabled it.
	DisabledReason *DisabledReason
	CreatedAt      time.Time
	UpdatedAt      time.Time
	// LastDeliveryAt is when a delivery last succeeded.
	LastDeliveryAt *time.Time
	// FailingSince is the time of the first of the consecutive failures; nil for none.
	FailingSince *time.Time
	// HasAuthorization is true if its deliveries have the header Authorization, whose value is stored encrypted.
	HasAuthorization bool
}

// DeliveryMessage is the content of one attempt.
type DeliveryMessage struct {
	URL string
	// ID is the event's id, as callers see it.
	ID string
	// Secrets are the secrets of its signatures as callers got them, newest first.
	Secrets []string
	// Authorization is the value of the header Authorization; empty for none.
	Authorization string
	// BodySigned says that the message has BodySignatureHeader.
	BodySigned bool
	Body       []byte
}

// DeliveryStatus is the status of the delivery of an event to a subscription.
type DeliveryStatus string

// The statuses of deliveries. A delivery is dropped because of the subscription or its key, and fails because of the
// endpoint.
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

// Delivery is the delivery of an event to a subscription.
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
	// StatusCode is the status code of the response; 0 without a response.
	StatusCode int   `json:"status_code"`
	DurationMS int64 `json:"duration_ms"`
	// Response is the start of the response, at most MaxTryResponse bytes, otherwise the reason why there was none.
	Response string `json:"response"`
}

// WebhookSecretPrefix begins every secret of a subscription; 33 random bytes in standard base64 follow (decisions 8.3).
const WebhookSecretPrefix = "whsec_"

// NewWebhookSecret returns a new random secret for a subscription.
func NewWebhookSecret() string {
	random := make([]byte, 33) // a multiple of three, so that base64 needs no padding
	_, _ = rand.Read(random)   // never returns an error
	return WebhookSecretPrefix + base64.StdEncoding.EncodeToString(random)
}

// WebhookSecretContext returns the authenticated context with which a subscription's secrets are encrypted.
func WebhookSecretContext(id WebhookID) []byte { return []byte("webhook:" + id.UUID()) }

// WebhookAuthorizationContext returns the authenticated context with which the value of the header Authorization of a
// subscription is encrypted.
func WebhookAuthorizationContext(id WebhookID) []byte {
	return []byte("webhook authorization:" + id.UUID())
}
