package domain

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
)
