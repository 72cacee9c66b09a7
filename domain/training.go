package domain

import "time"

// Course is a course of the catalogue, which all clients share.
type Course struct {
	ID    CourseID
	Title string
	// RenewalMonths is how many months a completion stays valid; 0 means forever.
	RenewalMonths int
	Languages     []Language
	CreatedAt     time.Time
}

// Assignment is the latest round of a user's course. A renewal begins another round.
type Assignment struct {
	Course CourseID
	Title  string
	// The user's list is sorted by Position and Course: the program's courses come first. Place is the place in this
	// list, from 1.
	Position, Place int
	AssignedAt      time.Time
	DueOn           Date
	// CompletedAt is nil while the round is open, even if the user completed an earlier round.
	CompletedAt *time.Time
	// ChangedAt is when the assignment or its place last changed; becoming overdue does not count.
	ChangedAt time.Time
}

// ClientAssignment is an assignment in the list of all assignments of a client.
type ClientAssignment struct {
	Assignment
	User UserID
}

// UpdatedAt returns when the assignment, as it is shown on a day, last changed: ChangedAt, or, if it is later and the
// assignment is overdue, the start of its first overdue day.
func (a *Assignment) UpdatedAt(today Date) time.Time {
	if a.Status(today) == TrainingOverdue {
		return Later(a.ChangedAt, a.DueOn.AddDays(1).Time())
	}
	return a.ChangedAt
}

// AssignmentFilter selects assignments of a client. The zero value selects all.
type AssignmentFilter struct {
	User       *UserID
	UserStatus UserStatus // empty for any
	Course     *CourseID
	Statuses   []AssignmentStatus // none for any
	// Completed limits the time of completion; only without limits open assignments match.
	Completed    Period
	UpdatedSince *time.Time
	Sort         Sort // by assigned_at; empty is ascending
}

// Status returns the state of the assignment on a day. It is overdue from the day after DueOn (decisions 7.1).
func (a *Assignment) Status(today Date) AssignmentStatus {
	switch {
	case a.CompletedAt != nil:
		return TrainingCompleted
	case a.DueOn.Before(today):
		return TrainingOverdue
	}
	return TrainingAssigned
}

// AssignmentStatus is the state of an assignment.
type AssignmentStatus string

// The states of an assignment.
const (
	TrainingAssigned  AssignmentStatus = "assigned"
	TrainingCompleted AssignmentStatus = "completed"
	TrainingOverdue   AssignmentStatus = "overdue"
)

// Values lists the states.
func (AssignmentStatus) Values() []string {
	return texts(TrainingAssigned, TrainingCompleted, TrainingOverdue)
}

// AudienceType is the way in which an audience is chosen.
type AudienceType string

// The types of audiences.
const (
	AllUsers     AudienceType = "all"
	OfCollection AudienceType = "collection"
	NamedUsers   AudienceType = "users"
)

// Values lists the types.
func (AudienceType) Values() []string { return texts(AllUsers, OfCollection, NamedUsers) }

// Audience is a set of users of a client.
type Audience struct {
	Type       AudienceType
	Collection CollectionID // of the type OfCollection
	Users      []UserID     // of the type NamedUsers
}

// AssignAtOnce is the size of the largest audience to which a request itself assigns a course. To a larger audience,
// which the request only counts, a background job assigns it.
const AssignAtOnce = 10_000

// MaxAudience is the greatest size of an audience.
const MaxAudience = 200_000

// DueDays is the default number of days that users have for a course.
const DueDays = 30

// CourseFor is a request to assign a course to users of a client.
type CourseFor struct {
	Course Course
	Users  []UserID
	DueOn  Date
	// Notify requests an email to each user to whom the course is assigned.
	Notify bool
}

// SkipReason is the reason why a course was not assigned to a user of an audience.
type SkipReason string

// Values lists the reasons. A completion counts as already_completed until its renewal.
func (SkipReason) Values() []string { return []string{"already_completed", "inactive"} }

// ReminderSkip is the reason why a user was not reminded of overdue courses.
type ReminderSkip string

// Values lists the reasons. A user is reminded at most once a day (UTC).
func (ReminderSkip) Values() []string {
	return []string{"nothing_overdue", "inactive", "reminded_today"}
}

// Reminded is the outcome of a reminder for one user.
type Reminded struct {
	User UserID
	// Mail is the id of the email; nil if the user was skipped for the reason Skip.
	Mail *MessageID
	Skip ReminderSkip
}

// OverdueCourse is a course in the email of a reminder.
type OverdueCourse struct {
	Title string
	DueOn Date
}

// Skipped is a user to whom a course was not assigned.
type Skipped struct {
	User   UserID
	Reason SkipReason
}

// Assigned is the outcome of a CourseFor. Each user of the audience is counted once, in Count, Open or Skipped.
type Assigned struct {
	Count   int       // users to whom the course was assigned
	Open    int       // users who already had an open round of the course
	Skipped []Skipped // sorted by user id
}
