package domain

import "time"

// EventLife is how long events are kept (decisions 8.8).
const EventLife = 30 * 24 * time.Hour

// EventType is the type of an event.
type EventType string

// The types of events (decisions 8.1).
const (
	ClientCreated   EventType = "client.created"
	UserCreated     EventType = "user.created"
	UserUpdated     EventType = "user.updated"
	UserDeactivated EventType = "user.deactivated"
	ResultUpdated   EventType = "phishing.result.updated"
	RealReported    EventType = "phishing.email.reported"
	CoursePassed    EventType = "training.assignment.completed"
	CourseOverdue   EventType = "training.assignment.overdue"
	PolicyAgreed    EventType = "policy.acknowledged"
	DataExposed     EventType = "dark_web.exposure.found"
	SyncDone        EventType = "sync.completed"
	SyncStopped     EventType = "sync.failed"
	ReportMade      EventType = "report.ready"
)

// EventTypes lists the types of events in the order of the documentation.
var EventTypes = []EventType{
	ClientCreated, UserCreated, UserUpdated, UserDeactivated, ResultUpdated, RealReported, CoursePassed, CourseOverdue,
	PolicyAgreed, DataExposed, SyncDone, SyncStopped, ReportMade,
}

// Values lists the types of events.
func (EventType) Values() []string { return texts(EventTypes...) }

// Event is the event of a change. It is written in the transaction of the change, and published later.
type Event struct {
	ID     EventID
	Type   EventType
	Client ClientID
	// User is the user that the event is about; zero if it is about the client.
	User UserID
	At   time.Time
}

// PublishedEvent is a published event.
type PublishedEvent struct {
	// Position increases in the order in which a partner's events were published.
	Position int64
	ID       EventID
	Type     EventType
	Client   ClientID
	At       time.Time
	// Body is the whole event in JSON. All readers and deliveries get the same bytes.
	Body string
}

// EventFilter selects events.
type EventFilter struct {
	// Types are the types, without duplicates; empty for all.
	Types []EventType
	// Client is the client; nil for all.
	Client *ClientID
	// Since selects events of changes at or after this time; nil for all.
	Since *time.Time
	// Ends says that the caller reads the feed to its end, and does not follow it.
	Ends bool
}

// ByTime reports whether the feed ends at a horizon: the caller may keep the greatest time of an event as the position.
func (f *EventFilter) ByTime() bool { return f.Ends || f.Since != nil }
