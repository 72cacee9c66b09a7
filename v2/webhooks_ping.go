package v2

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
)

// TestWebhook asks for a ping to the endpoint of a subscription.
type TestWebhook struct {
	Path webhookPath

	// try is what came back.
	try domain.DeliveryTry
}

// WebhookTest says what became of a ping.
type WebhookTest struct {
	Delivered  bool `json:"delivered" doc:"Whether the endpoint answered with a 2xx status in time."`
	StatusCode int  `json:"status_code" doc:"Status of the answer; 0 where there was none."`
	DurationMS int  `json:"duration_ms" doc:"How long the endpoint took, in milliseconds."`
}

// pingType is the type of a ping, beside those of events.
const pingType = "ping"

// pingEvent is the body of a ping.
type pingEvent struct {
	ID        domain.EventID `json:"id" doc:"Names the ping."`
	Type      string         `json:"type" doc:"What it is."`
	CreatedAt domain.Time    `json:"created_at" doc:"When it was sent."`
	ClientID  *noClient      `json:"client_id" doc:"Always null."`
	Data      PingData       `json:"data" doc:"What is tested."`
}

// noClient is pointed to by nil alone: a ping is about no client.
type noClient string

// JSONSchema is the one of the client of an event, but for the example.
func (noClient) JSONSchema() string { return `{"type":"string","examples":[null]}` }

// PingData is the data of a ping.
type PingData struct {
	WebhookID domain.WebhookID `json:"webhook_id" doc:"Opaque id of the webhook."`
}

// retryTest is when a test may be tried again that met another one.
const retryTest = time.Second

// ping makes one signed try of a ping (decisions 8.7), outside of a transaction. One
// test of a subscription is under way at a time in a process; RateLimited for
// another.
func (a *API) ping(ctx context.Context, in *TestWebhook) error {
	h, err := outbox.FindWebhook(ctx, a.db, in.Path.WebhookID)
	if err != nil {
		return err
	}
	secrets, err := a.secrets(ctx, h)
	if err != nil {
		return err
	}
	if a.endpoints == nil {
		return a.checkEndpoint(ctx, h.URL)
	}
	event := pingEvent{
		ID: db.NewID[domain.EventKind](), Type: pingType, CreatedAt: domain.At(a.db.Now()), Data: PingData{WebhookID: h.ID},
	}
	body, err := json.Marshal(event)
	if err != nil {
		return err
	}

	if _, under := a.testing.LoadOrStore(h.ID, true); under {
		return &domain.Error{
			Code: domain.RateLimited, RetryAfter: retryTest, Message: "a test of this webhook is under way",
		}
	}
	defer a.testing.Delete(h.ID)
	limited, cancel := context.WithTimeout(ctx, domain.WebhookDeadline)
	defer cancel()
	in.try = a.endpoints.Send(limited, h.URL, event.ID.String(), secrets, body)
	return ctx.Err()
}

func (a *API) testWebhook(_ context.Context, in *TestWebhook) (*WebhookTest, error) {
	return &WebhookTest{
		Delivered:  in.try.StatusCode >= 200 && in.try.StatusCode < 300,
		StatusCode: in.try.StatusCode, DurationMS: int(in.try.DurationMS),
	}, nil
}
