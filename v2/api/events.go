package api

import (
	"errors"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// EventWith is an event with its data, as in the list of events and in the body of a delivery.
type EventWith[Data any] struct {
	ID        domain.EventID   `json:"id" doc:"Opaque ID of the event, identical in the list and in every delivery. Use the ID to skip events that you have already processed."`
	Type      domain.EventType `json:"type" doc:"Type of the event, which determines what data contains. The webhooks section of the API reference describes data for each type."`
	CreatedAt domain.Time      `json:"created_at" doc:"When the change happened."`
	ClientID  domain.ClientID  `json:"client_id" doc:"Opaque ID of the client that the event is about."`
	Data      Data             `json:"data" doc:"The object that the event is about, as the API returned it shortly after the change."`
}

// Event is an event as it was published: an EventWith[Data]. The event's type determines Data.
type Event struct {
	EventWith[EventData]
	// published is the event in JSON, as it was published or received.
	published string
}

// EventData is the data of an event in JSON.
type EventData jsontext.Value

// JSONSchema describes any object: the event's type determines which.
func (EventData) JSONSchema() string { return `{"type":"object","additionalProperties":true}` }

// Into decodes the data into v, a pointer to the Data of the event's type, such as a UserDetail.
func (d EventData) Into(v any) error { return json.Unmarshal(d, v) }

// UnmarshalJSONFrom copies the JSON of the data.
func (d *EventData) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	*d = EventData(text.Clone())
	return err
}

// MarshalJSONTo writes the event as it was published or received.
func (e Event) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(e.published))
}

// UnmarshalJSONFrom decodes an event, and keeps its JSON for MarshalJSONTo.
func (e *Event) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	text, err := dec.ReadValue()
	if err != nil {
		return err
	}
	e.published = string(text)
	return json.Unmarshal(text, &e.EventWith)
}

// Forms returns a form for each type of events, that of a ping last.
func (Event) Forms() (member string, forms []op.Form) { return "type", eventForms }

// eventForms declare the events, domain.EventTypes in their order, and the ping. An event of a release after 2.3 has Since.
var eventForms = []op.Form{
	eventForm[Client](domain.ClientCreated, "A client was created."),
	eventForm[UserDetail](domain.UserCreated, "A user was added by an API request or a directory sync."),
	eventForm[UserDetail](domain.UserUpdated, "A field of the user's record changed: name, email address, department, job "+
		"title, manager, status, role, language, group or source. A new score, course or exposure does not cause this event."),
	eventForm[UserDetail](domain.UserDeactivated, "A user became inactive."),
	eventForm[PhishingResult](domain.ResultUpdated, "A user opened, clicked or reported a simulated email, opened its "+
		"attachment, or submitted credentials. Cancelling a scheduled email also causes this event. If the service "+
		"processes several changes to the same email together, it publishes a single event. Read the latest status from "+
		"`data`. Sent emails, failed emails and email scanner activity do not cause this event."),
	eventForm[ReportedEmail](domain.RealReported, "A user reported an email that is not a simulation."),
	eventForm[UserAssignment](domain.CoursePassed, "A user passed a course."),
	eventForm[UserAssignment](domain.CourseOverdue,
		"A user did not complete a course by its due date. The service publishes the event once, within ten minutes after "+
			"the due date ends (UTC)."),
	eventForm[PolicyAcknowledgment](domain.PolicyAgreed, "A user signed a policy."),
	eventForm[Exposure](domain.DataExposed, "A user's data was found in a breach."),
	eventForm[SyncRun](domain.SyncDone, "A directory sync completed."),
	eventForm[SyncRun](domain.SyncStopped, "A directory sync failed. `error` explains the cause and what to do."),
	eventForm[Report](domain.ReportMade, "A report is ready to download. The event does not contain `download_url`. To get the URL, call `GET /v2/clients/{client_id}/reports/{report_id}`."),
	{
		Value: PingType, About: "A test event, sent by POST /webhooks/{webhook_id}/test. The list of events does not include test events.",
		Type: reflect.TypeFor[PingEvent](),
	},
}

// eventForm returns the form of the events of a type, whose data is a Data. about says when they are published.
func eventForm[Data any](t domain.EventType, about string) op.Form {
	return op.Form{Value: string(t), About: about, Type: reflect.TypeFor[EventWith[Data]]()}
}

// EventsWith returns the types of the events in a release whose data is a Data.
func EventsWith[Data any](release op.Release) (types []domain.EventType) {
	for _, f := range eventForms {
		if f.Type == reflect.TypeFor[EventWith[Data]]() && f.Since <= release {
			types = append(types, domain.EventType(f.Value))
		}
	}
	return types
}

// EventOf returns a published event. Of its exported fields only ID is set; MarshalJSONTo writes it whole.
func EventOf(e domain.PublishedEvent) Event {
	return Event{EventWith: EventWith[EventData]{ID: e.ID}, published: e.Body}
}

// ListEvents is the feed of events.
var ListEvents = op.DeclareFeed[ListEventsInput, Event](op.Meta{
	ID: "events.list", Starred: true, Method: "GET", Path: "/events", Scope: domain.Read, Since: op.V2_3, Status: 200,
	Summary: "List events",
	Description: "Returns events from the last 30 days for all accessible clients, in order of publication; new events never " +
		"appear before a cursor that you have received. By default, the feed never ends: stop reading when " +
		"`page.has_more` is false, keep the last `page.next_cursor`, and continue from it later.",
	Columns: []string{"id", "type", "created_at", "client_id"},
})

// ListEventsInput asks for a page of events of the clients to which the key has access, in order of publication.
type ListEventsInput struct {
	Query struct {
		op.FeedQuery
		Types    EnumList[domain.EventType] `query:"types" doc:"Only events of these types, comma-separated."`
		ClientID string                     `query:"client_id" validate:"max=500" doc:"Only events about this client."`
		Follow   Follow                     `query:"follow" since:"2.5" doc:"Whether to follow the feed. If false, the feed ends like any other list: the last page has no next cursor."`
		Since    *domain.Time               `query:"since" since:"2.5" doc:"Only events whose created_at is at or after this time. If you deduplicate events by id, you can continue from the latest created_at that you have read."`
	}
}

// Follow says whether a feed is followed. The zero value follows it, as does a request without the parameter.
type Follow struct {
	// Ends says that the caller wants the end of the feed.
	Ends bool
}

// UnmarshalText reads true or false.
func (f *Follow) UnmarshalText(text []byte) error {
	switch string(text) {
	case "true", "false":
		f.Ends = string(text) == "false"
		return nil
	}
	return errors.New("must be true or false")
}

// AppendText writes true or false.
func (f Follow) AppendText(b []byte) ([]byte, error) { return strconv.AppendBool(b, !f.Ends), nil }

// MarshalText writes true or false.
func (f Follow) MarshalText() ([]byte, error) { return f.AppendText(nil) }

// JSONSchema describes a boolean, by default true.
func (Follow) JSONSchema() string { return `{"type":"boolean","default":true}` }

// UserAssignment is a user's course with its status, as events show it.
type UserAssignment struct {
	UserID domain.UserID `json:"user_id" doc:"Opaque ID of the user."`
	Assignment
}

// PolicyAcknowledgment is a user's sign-off of a policy, as events show it.
type PolicyAcknowledgment struct {
	PolicyID       domain.PolicyID `json:"policy_id" doc:"Opaque ID of the policy."`
	UserID         domain.UserID   `json:"user_id" doc:"Opaque ID of the user."`
	Version        int             `json:"version" doc:"The version that the user signed."`
	AcknowledgedAt domain.Time     `json:"acknowledged_at" doc:"When the user signed the policy."`
}
