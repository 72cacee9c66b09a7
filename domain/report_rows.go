package domain

import (
	"cmp"
	"time"
)

// Within returns the start of the period's first day (UTC), and the start of the day after its last, which is outside
// the period.
func (p ReportPeriod) Within() (since, until time.Time) {
	return p.Start.Time(), p.End.AddDays(1).Time()
}

// Months returns the first day of each month that has a day in the period, oldest first.
func (p ReportPeriod) Months() (months []Date) {
	for m := monthOf(p.Start); !m.After(p.End); m = monthOf(m.AddDays(31)) {
		months = append(months, m)
	}
	return months
}

// monthOf returns the first day of the month that contains a day.
func monthOf(day Date) Date { return day.AddDays(1 - day.Time().Day()) }

// YearTo returns the 365 days that end with a day. A report about the state at a moment counts events in the year that
// ends with its day (decisions 8.9).
func YearTo(day Date) ReportPeriod { return ReportPeriod{Start: day.AddDays(-364), End: day} }

// Person is the user whom a row of a report is about.
type Person struct {
	FirstName, LastName string
	Email               string
	Department          *string
}

// Name returns the user's full name.
func (p *Person) Name() string { return FullName(p.FirstName, p.LastName) }

// PhishedUser counts the simulated emails that were sent to a user in a period.
type PhishedUser struct {
	Person
	PhishingCounts
}

// PhishedMonth counts the simulated emails that were sent in a month.
type PhishedMonth struct {
	Month Date // its first day
	PhishingCounts
}

// PhishedCategory counts the simulated emails of the templates of a category.
type PhishedCategory struct {
	Category string
	PhishingCounts
}

// RepeatClicker is a user who fell for two or more simulated emails sent in a period.
type RepeatClicker struct {
	Person
	Status        UserStatus
	Sent, Clicked int
	LastClickedAt time.Time
}

// CourseProgress counts a client's active users by the state of a course.
type CourseProgress struct {
	Title string
	// Users is the number of users with an assignment of the course. The latest round of each is Completed, Open (and
	// not overdue) or Overdue.
	Users, Completed, Open, Overdue int
	// CompletedWithin is the number of rounds that were completed within a period.
	CompletedWithin int
}

// TrainingMonth counts the courses that were assigned to active users, and that they completed, in a month.
type TrainingMonth struct {
	Month               Date // its first day
	Assigned, Completed int
}

// TrainedUser counts a user's courses by state.
type TrainedUser struct {
	Person
	// Completed counts the courses that were completed within a period. Open counts the Overdue courses too.
	Completed, Open, Overdue int
	// NextTitle and NextDueOn describe the open course that is due first; they are nil and zero if no course is open.
	NextTitle *string
	NextDueOn Date
}

// UserCourse is a user with the state of one of the user's courses.
type UserCourse struct {
	Person
	Assignment
}

// TeamTraining is the training status of the active users who share a manager or a department.
type TeamTraining struct {
	// Name is the manager's address or the department's name; nil for the users without a manager or a department.
	Name *string
	// Manager is the full name of the client's user who has the manager's address; empty without such a user, and for a
	// department.
	Manager string
	// OnTrack is the number of users without an overdue course.
	Users, OnTrack int
	// Completed counts the courses completed within a period; Open counts the Overdue courses too.
	Completed, Open, Overdue int
}

// Add adds the users and courses of another row of the same team.
func (t *TeamTraining) Add(other TeamTraining) {
	t.Users, t.OnTrack = t.Users+other.Users, t.OnTrack+other.OnTrack
	t.Completed, t.Open, t.Overdue = t.Completed+other.Completed, t.Open+other.Open, t.Overdue+other.Overdue
	t.Manager = cmp.Or(t.Manager, other.Manager)
}

// HistoryKind is the kind of a HistoryEvent.
type HistoryKind string

// The kinds of events of a user's history.
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
	// Subject is the title of the course, the template, the policy or the breach, or the subject of the email.
	Subject string
	// Version is the version of the policy; 0 for events without a policy.
	Version int
}

// AskedUser is an active user who has to sign a policy.
type AskedUser struct {
	Person
	Title       string // of the policy
	Version     int
	RenewalDays int
	// SignedAt is when the user signed the current version; nil if the user did not, or if the signature has lapsed.
	SignedAt *time.Time
}

// ExposureTally counts exposures of active users: Found and ResolvedWithin a period, and all of them by state.
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
	// Highest is the highest severity of the unresolved exposures; nil for none.
	Highest *Severity
	ExposureTally
}

// ExposureMonth counts the exposures of active users that were found, and resolved, in a month.
type ExposureMonth struct {
	Month           Date // its first day
	Found, Resolved int
}

// UserInNeed is an active user who needs attention, and why: the score, the overdue courses, the simulated emails of a
// period that the user fell for if they are two or more, and the unresolved critical exposures.
type UserInNeed struct {
	Person
	Score, Overdue, Clicked, Critical int
	NeedCounts
}

// NeedCounts counts all users who need attention, those with each reason, and their critical exposures.
type NeedCounts struct {
	Users, HighRisk, WithOverdue, RepeatClickers, WithCritical int
	// AllCritical is the number of unresolved critical exposures; nil if no user in need has any.
	AllCritical *int
}

// OverdueUser is an active user with overdue courses, whose titles are in the order of their due dates.
type OverdueUser struct {
	Person
	Overdue     int
	OldestDueOn Date
	Titles      []string `bun:",array"`
}
