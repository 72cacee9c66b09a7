package domain

import "time"

// EventLife is how long events are kept (decisions 8.8).
const EventLife = 30 * 24 * time.Hour

// EventType says what happened.
type EventType string

// The kinds of events, each with what its data is as v2 shows it (decisions 8.1).
const (
	ClientCreated   EventType = "client.created"                // the client
	UserCreated     EventType = "user.created"                  // the user
	UserUpdated     EventType = "user.updated"                  // the user
	UserDeactivated EventType = "user.deactivated"              // the user
	ResultUpdated   EventType = "phishing.result.updated"       // the item of the results
	RealReported    EventType = "phishing.email.reported"       // the reported email
	CoursePassed    EventType = "training.assignment.completed" // the training item, with its user
	CourseOverdue   EventType = "training.assignment.overdue"   // the training item, with its user
	PolicyAgreed    EventType = "policy.acknowledged"           // policy, user, version, time
	DataExposed     EventType = "dark_web.exposure.found"       // the exposure
	SyncDone        EventType = "sync.completed"                // the run
	SyncStopped     EventType = "sync.failed"                   // the run
	ReportMade      EventType = "report.ready"                  // the report
)

// EventTypes lists the kinds of events in the order of the documents.
var EventTypes = []EventType{
	ClientCreated, UserCreated, UserUpdated, UserDeactivated, ResultUpdated, RealReported, CoursePassed, CourseOverdue,
	PolicyAgreed, DataExposed, SyncDone, SyncStopped, ReportMade,
}

// Values lists the kinds of events.
func (EventType) Values() []string { return texts(EventTypes...) }

// Event is a change that others may want to hear of. It is written in the
// transaction of the change.
type Event struct {
	ID     EventID
	Type   EventType
	Client ClientID
	// User is whom it concerns; zero where it concerns the client.
	User UserID
	At   time.Time
}

// PublishedEvent is an event as callers get it.
type PublishedEvent struct {
	// Position is its place in the order in which a partner's events were published.
	Position int64
	ID       EventID
	Type     EventType
	Client   ClientID
	At       time.Time
	// Body is the whole event in JSON: the same bytes for every reader and try.
	Body string
}

// EventFilter says which events are wanted.
type EventFilter struct {
	// Types is empty for every type, and holds no type twice.
	Types []EventType
	// Client is nil for every client.
	Client *ClientID
}
