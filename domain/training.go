package domain

import "time"

// Course is a course of the catalogue, which all clients share.
type Course struct {
	ID    CourseID
	Title string
	// RenewalMonths is how many months a completion stays valid; 0 is for good.
	RenewalMonths int
	Languages     []Language
	CreatedAt     time.Time
}

// Assignment is the state of a user's course: its latest round.
type Assignment struct {
	Course CourseID
	Title  string
	// Position and then the course sort the user's list: the program's courses come
	// first. Place is the place in that order, from 1.
	Position, Place int
	AssignedAt      time.Time
	DueOn           Date
	// CompletedAt is nil while the round is open, also for a course that is due
	// again.
	CompletedAt *time.Time
}

// ClientAssignment is an assignment in the list of all of a client's.
type ClientAssignment struct {
	Assignment
	User UserID
	// ChangedAt is when the assignment last changed, but for becoming overdue.
	ChangedAt time.Time
}

// UpdatedAt returns when the assignment, as it is shown on a day, last changed.
func (a *ClientAssignment) UpdatedAt(today Date) time.Time {
	if a.Status(today) == TrainingOverdue {
		return Later(a.ChangedAt, a.DueOn.AddDays(1).Time())
	}
	return a.ChangedAt
}

// AssignmentFilter says which of a client's assignments are wanted; the zero value, all.
type AssignmentFilter struct {
	User       *UserID
	UserStatus UserStatus // empty for any
	Course     *CourseID
	Statuses   []AssignmentStatus // none for any
	// Completed bounds the time of completion; without bounds, open ones match too.
	Completed    Period
	UpdatedSince *time.Time
}

// Status says where the assignment stands on a day. It is overdue from the day
// after the one on which it is due (decisions 7.1).
func (a *Assignment) Status(today Date) AssignmentStatus {
	switch {
	case a.CompletedAt != nil:
		return TrainingCompleted
	case a.DueOn.Before(today):
		return TrainingOverdue
	}
	return TrainingAssigned
}

// AssignmentStatus says where an assignment stands.
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

// AudienceType says how an audience is chosen.
type AudienceType string

// The ways to choose an audience.
const (
	AllUsers     AudienceType = "all"
	OfCollection AudienceType = "collection"
	NamedUsers   AudienceType = "users"
)

// Values lists the ways.
func (AudienceType) Values() []string { return texts(AllUsers, OfCollection, NamedUsers) }

// Audience is some of a client's users.
type Audience struct {
	Type       AudienceType
	Collection CollectionID // of the type OfCollection
	Users      []UserID     // of the type NamedUsers
}

// AssignAtOnce is how many users a request assigns a course to itself. It only counts
// a larger audience, to which the background work assigns the course.
const AssignAtOnce = 10_000

// MaxAudience is the largest number of users that a course is assigned to at once.
const MaxAudience = 200_000

// DueDays is how many days users have for a course when nothing else is said.
const DueDays = 30

// CourseFor asks for a course to be given to users of a client.
type CourseFor struct {
	Course Course
	Users  []UserID
	DueOn  Date
	// Notify asks for a mail to each user who is given the course.
	Notify bool
}

// SkipReason says why a user of an audience was not given a course.
type SkipReason string

// Values lists the reasons. A user has already completed a course while its renewal window lasts.
func (SkipReason) Values() []string { return []string{"already_completed", "inactive"} }

// ReminderSkip says why a user was not reminded of overdue courses.
type ReminderSkip string

// Values lists the reasons: a user is reminded once a day (UTC).
func (ReminderSkip) Values() []string {
	return []string{"nothing_overdue", "inactive", "reminded_today"}
}

// Reminded is the outcome for one of the users to be reminded.
type Reminded struct {
	User UserID
	// Mail is the requested mail; nil if Skip says why there is none.
	Mail *MessageID
	Skip ReminderSkip
}

// OverdueCourse is a course that a reminder names.
type OverdueCourse struct {
	Title string
	DueOn Date
}

// Skipped is a user who was not given a course.
type Skipped struct {
	User   UserID
	Reason SkipReason
}

// Assigned is the outcome of a CourseFor. Each user of the audience is in one of Count,
// Open and Skipped.
type Assigned struct {
	Count   int
	Open    int       // users who have the course open already, and keep it
	Skipped []Skipped // by the users' ids
	// Mails are those to the users who were given the course.
	Mails []MessageID
}
