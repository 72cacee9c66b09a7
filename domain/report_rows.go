package domain

import "time"

// Within is the period from the start of its first day (UTC) up to, and without,
// the start of the day after its last.
func (p ReportPeriod) Within() (since, until time.Time) {
	return p.Start.Time(), p.End.AddDays(1).Time()
}

// Months are the first days of the months that the period touches.
func (p ReportPeriod) Months() (months []Date) {
	for m := monthOf(p.Start); !m.After(p.End); m = monthOf(m.AddDays(31)) {
		months = append(months, m)
	}
	return months
}

// monthOf is the first day of the month that a day is in.
func monthOf(day Date) Date { return day.AddDays(1 - day.Time().Day()) }

// YearTo returns the 365 days that end with a day: the period over which a report about
// a moment counts events (decisions 8.9).
func YearTo(day Date) ReportPeriod { return ReportPeriod{Start: day.AddDays(-364), End: day} }

// Person is the user whom a row of a report is about.
type Person struct {
	FirstName, LastName string
	Email               string
	Department          *string
}

// Name is the user's full name.
func (p *Person) Name() string { return FullName(p.FirstName, p.LastName) }

// PhishedUser counts the simulated mails that a user was sent in a period.
type PhishedUser struct {
	Person
	PhishingCounts
}

// PhishedMonth counts the simulated mails that were sent in a month.
type PhishedMonth struct {
	Month Date // its first day
	PhishingCounts
}

// PhishedCategory counts the simulated mails of a category of templates.
type PhishedCategory struct {
	Category string
	PhishingCounts
}

// RepeatClicker is a user who fell for two or more simulated mails of a period.
type RepeatClicker struct {
	Person
	Status        UserStatus
	Sent, Clicked int
	LastClickedAt time.Time
}

// CourseProgress is where a client's active users stand with a course.
type CourseProgress struct {
	Title string
	// Users are those who were given it: its latest round is Completed, Open, or
	// Overdue.
	Users, Completed, Open, Overdue int
	// CompletedWithin are the rounds that were completed within a period.
	CompletedWithin int
}

// TrainingMonth counts the courses that active users were given, and completed, in
// a month.
type TrainingMonth struct {
	Month               Date // its first day
	Assigned, Completed int
}

// TrainedUser is where a user stands with the training.
type TrainedUser struct {
	Person
	// Completed are the courses that were completed within a period. Open ones
	// include those that are Overdue.
	Completed, Open, Overdue int
	// NextTitle and NextDueOn are of the open course that is due first; nil and
	// zero for none.
	NextTitle *string
	NextDueOn Date
}

// UserCourse is where a user stands with a course.
type UserCourse struct {
	Person
	Assignment
}

// TeamTraining is the training status of the active users who share a manager or a
// department.
type TeamTraining struct {
	// Name is the manager's address or the department's name; nil for the users
	// who have none.
	Name *string
	// Manager is the full name of the manager's own user; empty if the client has
	// none, and for a department.
	Manager string
	// OnTrack are the users with nothing overdue.
	Users, OnTrack int
	// Completed are the courses completed within a period; Open ones include those
	// that are Overdue.
	Completed, Open, Overdue int
}

// HistoryKind says what a HistoryEvent is.
type HistoryKind string

// What a user's history consists of.
const (
	HistoryAssigned    HistoryKind = "course_assigned"
	HistoryCompleted   HistoryKind = "course_completed"
	HistorySent        HistoryKind = "simulation_sent"
	HistoryOpened      HistoryKind = "simulation_opened"
	HistoryAttachment  HistoryKind = "attachment_opened"
	HistoryClicked     HistoryKind = "simulation_clicked"
	HistoryCredentials HistoryKind = "credentials_submitted"
	HistoryReported    HistoryKind = "simulation_reported"
	HistoryRealMail    HistoryKind = "email_reported"
	HistorySigned      HistoryKind = "policy_signed"
	HistoryExposed     HistoryKind = "exposure_found"
	HistoryResolved    HistoryKind = "exposure_resolved"
)

// HistoryEvent is something that a user did or that happened to the user.
type HistoryEvent struct {
	Person
	At   time.Time
	Kind HistoryKind
	// Subject is the title of the course, the template, the policy or the breach,
	// or the subject of the mail.
	Subject string
	// Version is that of a policy; 0 for the rest.
	Version int
}

// AskedUser is an active user whom a policy asks for a signature.
type AskedUser struct {
	Person
	Title       string // of the policy
	Version     int
	RenewalDays int
	// SignedAt is when the current version was signed; nil where it was not, or
	// where that has lapsed.
	SignedAt *time.Time
}

// ExposureTally counts exposures of active users: those found and resolved within
// a period, and where all of them stand.
type ExposureTally struct {
	Found, ResolvedWithin int
	Unresolved, Resolved  int
}

// SeverityExposures counts the exposures of a severity.
type SeverityExposures struct {
	Severity Severity
	ExposureTally
}

// BreachExposures counts the exposures in a breach.
type BreachExposures struct {
	Title       string
	Domain      *string
	BreachOn    Date // zero for unknown
	Severity    Severity
	DataClasses []string `bun:",array"`
	ExposureTally
}

// UserExposures counts the exposures of a user.
type UserExposures struct {
	Person
	// Highest is the highest severity of the unresolved ones; nil for none.
	Highest *Severity
	ExposureTally
}

// ExposureMonth counts the exposures of active users that were found, and
// resolved, in a month.
type ExposureMonth struct {
	Month           Date // its first day
	Found, Resolved int
}
