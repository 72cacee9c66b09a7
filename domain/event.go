package domain

import "time"

// EventLife is how long events are kept (decisions 8.8).
const EventLife = 30 * 24 * time.Hour

// EventType says what happened.
type EventType string

// What this release records. Delivery to webhooks is a later release's.
const (
	ClientCreated   EventType = "client.created"
	UserCreated     EventType = "user.created"
	UserUpdated     EventType = "user.updated"
	UserDeactivated EventType = "user.deactivated"
	CoursePassed    EventType = "training.assignment.completed"
	PolicyAgreed    EventType = "policy.acknowledged"
	DataExposed     EventType = "dark_web.exposure.found"
	ResultUpdated   EventType = "phishing.result.updated"
	RealReported    EventType = "phishing.email.reported"
	SyncDone        EventType = "sync.completed"
	SyncStopped     EventType = "sync.failed"
	ReportMade      EventType = "report.ready"
)

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
