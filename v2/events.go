package v2

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Event is an event as callers get it: in the list of events, and as the body of a
// delivery.
type Event struct {
	ID        domain.EventID   `json:"id" doc:"The same in the list and in every try to deliver the event: tell by it what was handled already."`
	Type      domain.EventType `json:"type" doc:"What happened; it says what data holds."`
	CreatedAt domain.Time      `json:"created_at" doc:"When the change took place."`
	ClientID  domain.ClientID  `json:"client_id" doc:"Opaque id of the client that the event is about."`
	Data      EventData        `json:"data" doc:"What changed, as the interface showed it soon after the change. client.created: the Client. user.created, user.updated, user.deactivated: the UserDetail. phishing.result.updated: the PhishingResult. phishing.email.reported: the ReportedEmail. training.assignment.completed, training.assignment.overdue: the Assignment, with its user_id. policy.acknowledged: policy_id, user_id, version, acknowledged_at. dark_web.exposure.found: the Exposure. sync.completed, sync.failed: the SyncRun. report.ready: the Report, without download_url."`

	// published is the event in JSON as it was published, where it was.
	published string
}

// MarshalJSONTo writes the event as it was published.
func (e Event) MarshalJSONTo(enc *jsontext.Encoder) error {
	if e.published != "" {
		return enc.WriteValue(jsontext.Value(e.published))
	}
	type fields Event // without this method
	return json.MarshalEncode(enc, fields(e))
}

// EventData is the data of an event, whose form its type says.
type EventData struct{ shown any }

// MarshalJSONTo writes the data.
func (d EventData) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, d.shown)
}

// JSONSchema says what the data looks like, for the document.
func (EventData) JSONSchema() string { return `{"type":"object","additionalProperties":true}` }

func eventOf(e domain.PublishedEvent) Event {
	return Event{ID: e.ID, Type: e.Type, CreatedAt: domain.At(e.At), ClientID: e.Client, published: e.Body}
}

func (a *API) declareEvents() {
	a.ListEvents = op.AddFeed(&a.Set, op.Meta{
		ID: "events.list", Starred: true, Method: "GET", Path: "/events", Scope: domain.Read, Since: op.V2_3, Status: 200,
		Summary: "Follow events",
		Description: "Returns what happened in the last 30 days to the clients that the key reaches, in the order in which " +
			"it was published. Nothing is ever added before a cursor that was handed out: keep the last one, and " +
			"ask again with it.",
		Columns: []string{"id", "type", "created_at", "client_id"},
	}, a.listEvents, eventOf)
}

// ListEvents asks for a page of the events of the clients that the key reaches, in the
// order in which they were published.
type ListEvents struct {
	Query struct {
		op.FeedQuery
		Types    EnumList[domain.EventType] `query:"types" doc:"Only events of these types, comma-separated."`
		ClientID string                     `query:"client_id" validate:"max=500" doc:"Only events of this client."`
	}
}

func (a *API) listEvents(
	ctx context.Context, in *ListEvents, w domain.Window,
) (domain.Slice[domain.PublishedEvent], error) {
	filter := domain.EventFilter{Types: in.Query.Types}
	if in.Query.ClientID != "" {
		// A text that is no id is the id of no client: it has no events.
		id, _ := domain.ParseID[domain.ClientKind](in.Query.ClientID)
		filter.Client = &id
	}
	return outbox.Events(ctx, a.db, filter, w)
}
