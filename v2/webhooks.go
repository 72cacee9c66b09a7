package v2

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

// Endpoints checks the endpoints of subscriptions and sends events to them.
type Endpoints interface {
	// Check returns InvalidRequest, for the field url, for an address to which deliveries are not allowed: because of
	// its form, its port, or the addresses of its host. It takes at most a few seconds.
	Check(ctx context.Context, url string) error
	// Send posts a message once, signed, and returns the outcome; its StatusCode is 0 without a response.
	Send(ctx context.Context, m domain.DeliveryMessage) domain.DeliveryTry
}

// Sealer encrypts a value for a context, and decrypts values that were encrypted for the same context.
type Sealer interface {
	Seal(plain, context []byte) ([]byte, error)
	Open(sealed, context []byte) ([]byte, error)
}

// WithWebhooks enables creating, changing and testing subscriptions. sealer encrypts their secrets. If endpoints or
// sealer is nil, the operations that need it return Conflict.
func WithWebhooks(endpoints Endpoints, sealer Sealer) Option {
	return func(a *API) { a.endpoints, a.sealer = endpoints, sealer }
}

func webhookOf(w domain.Webhook) api.Webhook {
	return api.Webhook{
		ID: w.ID, URL: w.URL, Events: w.Events, ClientIDs: w.Clients, Description: w.Description, Status: w.Status,
		CreatedAt: domain.At(w.CreatedAt), LastDeliveryAt: domain.MaybeAt(w.LastDeliveryAt), FailingSince: domain.MaybeAt(w.FailingSince),
		DisabledReason: w.DisabledReason, HasAuthorization: w.HasAuthorization,
	}
}

func (a *API) listWebhooks(ctx context.Context, _ *api.ListWebhooksInput, w domain.Window) (domain.Slice[domain.Webhook], error) {
	return outbox.Webhooks(ctx, a.db, w)
}

func (a *API) getWebhook(ctx context.Context, in *api.GetWebhookInput) (*api.Webhook, error) {
	h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
	if err != nil {
		return nil, err
	}
	return new(webhookOf(h.Webhook)), nil
}

// newSecret returns a new secret for a subscription, in plain and encrypted; Conflict without an encryption key.
func (a *API) newSecret(id domain.WebhookID) (secret string, sealed []byte, err error) {
	if err := a.requireKey(); err != nil {
		return "", nil, err
	}
	secret = domain.NewWebhookSecret()
	if sealed, err = a.sealer.Seal([]byte(secret), domain.WebhookSecretContext(id)); err != nil {
		return "", nil, fmt.Errorf("encrypt a webhook's secret: %w", err)
	}
	return secret, sealed, nil
}

// sealAuthorization returns the encrypted value of the header Authorization of a subscription's deliveries; nil for nil.
// It returns Conflict if there is a value but no encryption key.
func (a *API) sealAuthorization(id domain.WebhookID, value *string) ([]byte, error) {
	if value == nil {
		return nil, nil
	}
	if err := a.requireKey(); err != nil {
		return nil, err
	}
	sealed, err := a.sealer.Seal([]byte(*value), domain.WebhookAuthorizationContext(id))
	if err != nil {
		err = fmt.Errorf("encrypt a webhook's authorization: %w", err)
	}
	return sealed, err
}

// requireKey returns Conflict if the service has no key to encrypt secrets with.
func (a *API) requireKey() error {
	if a.sealer != nil {
		return nil
	}
	return domain.ErrConflict("", "the service has no encryption key for webhook secrets and authorization values; its operator creates one with "+
		"partnerapi encryption-key and passes it to serve and work with --encryption-key")
}

// messageTo returns a message to the subscription's endpoint, without an event. It returns Conflict if there is no
// encryption key, or if the key cannot decrypt the subscription's secrets.
func (a *API) messageTo(ctx context.Context, h *outbox.Webhook) (m domain.DeliveryMessage, err error) {
	if err := a.requireKey(); err != nil {
		return m, err
	}
	target, err := h.Target(ctx)
	if err != nil {
		return m, err
	}
	if m, err = target.Message(a.sealer.Open); err != nil {
		e := domain.ErrConflict(h.ID.Noun(), "this webhook's secret or authorization cannot be decrypted with the "+
			"service's encryption key; rotate the secret, and set authorization again if has_authorization is true")
		e.Cause = err
		return m, e
	}
	m.BodySigned, err = a.SignsBodies(ctx)
	return m, err
}

// checkEndpoint checks the URL of an endpoint (Endpoints.Check). It returns Conflict if a.endpoints is nil.
func (a *API) checkEndpoint(ctx context.Context, url string) error {
	if a.endpoints == nil {
		return domain.ErrConflict("", "this process of the service does not call webhook endpoints")
	}
	return a.endpoints.Check(ctx, url)
}

// retryTest is the Retry-After of a test that is rejected because another test of the webhook is running.
const retryTest = time.Second

// ping sends a signed ping once (decisions 8.7), outside of a transaction, and stores the outcome in in.Try. A process
// runs one test of a subscription at a time; a second one is RateLimited.
func (a *API) ping(ctx context.Context, in *api.TestWebhookInput) error {
	h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
	if err != nil {
		return err
	}
	if err := checkKeyEnd(ctx, h); err != nil {
		return err
	}
	message, err := a.messageTo(ctx, h)
	if err != nil {
		return err
	}
	if a.endpoints == nil {
		return a.checkEndpoint(ctx, h.URL) // Conflict: this process has no endpoints
	}
	event := api.PingEvent{
		ID: db.NewID[domain.EventKind](), Type: api.PingType, CreatedAt: domain.At(a.db.Now()), Data: api.PingData{WebhookID: h.ID},
	}
	message.ID = event.ID.String()
	if message.Body, err = json.Marshal(a.release.View(event)); err != nil {
		return err
	}

	if _, running := a.testing.LoadOrStore(h.ID, true); running {
		return &domain.Error{
			Code: domain.RateLimited, RetryAfter: retryTest, Message: "a test of this webhook is in progress",
		}
	}
	defer a.testing.Delete(h.ID)
	sendCtx, cancel := context.WithTimeout(ctx, domain.WebhookDeadline)
	defer cancel()
	in.Try = a.endpoints.Send(sendCtx, message)
	return ctx.Err() // an attempt that the caller cut short has no outcome
}

// testWebhook returns the outcome in in.Try, which ping, the operation's preparation, has set.
func (a *API) testWebhook(_ context.Context, in *api.TestWebhookInput) (*api.WebhookTest, error) {
	return &api.WebhookTest{
		Delivered:  in.Try.StatusCode >= 200 && in.Try.StatusCode < 300,
		StatusCode: in.Try.StatusCode, DurationMS: int(in.Try.DurationMS),
	}, nil
}
