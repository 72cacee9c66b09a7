package v2

import (
	"context"
	"reflect"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// event is an event with its data, as callers get it: in the list of events, and as the
// body of a delivery.
type event[Data any] struct {
	ID        domain.EventID   `json:"id" doc:"The same in the list and in every delivery of the event. Use it to skip events that you have handled."`
	Type      domain.EventType `json:"type" doc:"What happened; it says what data is."`
	CreatedAt domain.Time      `json:"created_at" doc:"When the change took place."`
	ClientID  domain.ClientID  `json:"client_id" doc:"Opaque id of the client that the event is about."`
	Data      Data             `json:"data" doc:"What the event is about, as the interface showed it soon after the change."`
}

// Event is an event as it was published: an event[Data], whose type says which Data.
type Event struct {
	event[EventData]
	// published is the event in JSON.
	published string
}

// EventData is the data of an event that was read, in JSON.
type EventData jsontext.Value

// Into decodes the data into a pointer to what the event's type says, such as a UserDetail.
func (d EventData) Into(shown any) error { return json.Unmarshal(d, shown) }

// UnmarshalJSONFrom reads the data as it is.
func (d *EventData) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	*d = EventData(text.Clone())
	return err
}

// MarshalJSONTo writes the event.
func (e Event) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(e.published))
}

// UnmarshalJSONFrom reads an event, which is then written as it was read.
func (e *Event) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	e.published = string(text)
	return json.Unmarshal(text, &e.event)
}

// Forms returns the forms of events by their types, that of a ping last.
func (Event) Forms() (member string, forms []op.Form) {
	for _, t := range domain.EventTypes {
		for _, r := range eventRenderers {
			if r.renders(t) {
				forms = append(forms, op.Form{Value: string(t), About: eventTexts[t], Type: r.form})
			}
		}
	}
	return "type", append(forms, op.Form{
		Value: pingType, About: "A test of a webhook, by POST /webhooks/{webhook_id}/test. It is not in the list of events.",
		Type: reflect.TypeFor[pingEvent](),
	})
}

// eventTexts say when there is an event of a type.
var eventTexts = map[domain.EventType]string{
	domain.ClientCreated: "A client was created.",
	domain.UserCreated:   "A user was added, by a request or a directory sync.",
	domain.UserUpdated: "A field of the user's own changed: name, address, department, title, manager, status, role, language, group or source. " +
		"A new score, course or exposure is no such change.",
	domain.UserDeactivated: "A user became inactive.",
	domain.ResultUpdated: "A person opened, clicked or reported a simulated mail, opened its attachment, or submitted credentials. " +
		"Several of these that the service takes at once are one event: read from `data` how far it came. " +
		"That a mail was sent or could not be, and what a mail scanner did, is no event.",
	domain.RealReported:  "A user reported a real mail.",
	domain.CoursePassed:  "A user passed a course.",
	domain.CourseOverdue: "A course was not completed on its day. It is sent once, within ten minutes after the day (UTC) ended.",
	domain.PolicyAgreed:  "A user signed a policy.",
	domain.DataExposed:   "Data of a user was found in a breach.",
	domain.SyncDone:      "A directory sync ended well.",
	domain.SyncStopped:   "A directory sync failed. `error` says why, and what to do.",
	domain.ReportMade:    "A report can be downloaded. Its `download_url` is not in the event: read the report for it.",
}

func eventOf(e domain.PublishedEvent) Event {
	return Event{event: event[EventData]{ID: e.ID}, published: e.Body}
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
