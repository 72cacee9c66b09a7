package domain

import "time"

// User is a person that a client trains.
type User struct {
	ID         UserID
	Client     ClientID
	Email      string // lower case, unique within the client
	FirstName  string
	LastName   string
	Department *string
	JobTitle   *string
	// ManagerEmail is the manager's address, if known.
	ManagerEmail *string
	Status       UserStatus
	Role         Role
	Language     Language
	Source       UserSource
	Group        *Group
	// Overrides names the fields that were set by hand, by their v2 names; a
	// directory sync leaves them alone.
	Overrides []string
	Score     int
	Training  UserTraining
	Phishing  UserPhishing
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Name is the user's full name.
func (u *User) Name() string { return FullName(u.FirstName, u.LastName) }

// Key returns the ids of the client and the user.
func (u *User) Key() UserKey { return UserKey{Client: u.Client, User: u.ID} }

// SameShown reports whether two states of a user's own fields look the same to
// callers.
func (u *User) SameShown(o *User) bool {
	return u.Status == o.Status && u.FirstName == o.FirstName && u.LastName == o.LastName &&
		u.Role == o.Role && u.Language == o.Language && Same(u.Department, o.Department) &&
		Same(u.JobTitle, o.JobTitle) && Same(u.ManagerEmail, o.ManagerEmail)
}

// SameGroup reports whether two states of a user have one group, or both none.
func (u *User) SameGroup(o *User) bool {
	return u.Group == o.Group || u.Group != nil && o.Group != nil && u.Group.ID == o.Group.ID
}

// Same reports whether two nullable values are equal: both nil, or pointers to equal
// values.
func Same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// FullName joins the parts of a name that are there.
func FullName(first, last string) string {
	if first == "" || last == "" {
		return first + last
	}
	return first + " " + last
}

// UserTraining is where a user stands with the courses.
type UserTraining struct {
	// Overdue counts the incomplete courses that are past their due date.
	Overdue int
	// Next is the incomplete course that is due first, overdue ones included;
	// nil where nothing is left to do.
	Next *NextCourse
}

// OnTrack reports whether nothing is overdue.
func (t UserTraining) OnTrack() bool { return t.Overdue == 0 }

// NextCourse is a course that a user is to complete.
type NextCourse struct {
	Course CourseID
	Title  string
	DueOn  Date
}

// UserPhishing counts the simulated mails that a user was sent and fell for,
// ever and within the last 365 days.
type UserPhishing struct {
	Sent, Clicked         int
	SentYear, ClickedYear int
}

// UserStatus says whether a user takes part.
type UserStatus string

// The states of a user.
const (
	Active   UserStatus = "active"
	Inactive UserStatus = "inactive"
)

// Values lists the states.
func (UserStatus) Values() []string { return texts(Active, Inactive) }

// UserStatusFilter selects users by state.
type UserStatusFilter string

// AllStatuses selects users in every state.
const AllStatuses UserStatusFilter = "all"

// Values lists the selections.
func (UserStatusFilter) Values() []string {
	return []string{string(Active), string(Inactive), string(AllStatuses)}
}

// Language is the language in which the service writes to a user.
type Language string

// The languages.
const (
	English Language = "en"
	Spanish Language = "es"
	French  Language = "fr-ca"
)

// Values lists the languages.
func (Language) Values() []string { return texts(English, Spanish, French) }

// Tag is the language as mail headers and HTML write it (BCP 47).
func (l Language) Tag() string {
	if l == French {
		return "fr-CA"
	}
	return string(l)
}

// UserSource is where the record of a user came from.
type UserSource string

// The sources of users. API is that of users made through either version of
// the interface.
const (
	FromMicrosoft UserSource = "microsoft"
	FromGoogle    UserSource = "google"
	FromHand      UserSource = "manual"
	FromAPI       UserSource = "api"
)

// Values lists the sources.
func (UserSource) Values() []string { return texts(FromMicrosoft, FromGoogle, FromHand, FromAPI) }

// Group is where a user is kept: the client's manual group, or one of its
// directory.
type Group struct {
	ID   GroupID
	Name string
}

// ManualGroup is the name of the group of users who are kept by hand.
const ManualGroup = "Manual"

// UserSort is an order of a list of users.
type UserSort string

// Values lists the orders.
func (UserSort) Values() []string {
	return []string{"created_at", "-created_at", "email", "-email", "risk_score", "-risk_score"}
}

// UserFilter says which users of a client are wanted, and in which order.
type UserFilter struct {
	// Status is empty for every state.
	Status UserStatus
	// Query is what the name or the email contains, in any case.
	Query      string
	Role       Role
	Collection *CollectionID
	// Overdue selects users with or without an overdue course; nil selects both.
	Overdue      *bool
	UpdatedSince *time.Time
	Sort         Sort
}

// UserDetail is a user with the fields that only a read of one user shows.
type UserDetail struct {
	User
	Collections []CollectionRef
	// DarkWeb is nil where the client has no Dark Web Monitoring.
	DarkWeb *UserDarkWeb
	Risk    UserRisk
}

// CollectionRef names a collection.
type CollectionRef struct {
	ID   CollectionID
	Name string
}

// UserDarkWeb sums up a user's exposures.
type UserDarkWeb struct {
	Unresolved int
	Resolved   int
	// Highest is the highest severity of the unresolved ones; nil for none.
	Highest *Severity
}

// UserRisk is a user's score with what it is made of.
type UserRisk struct {
	Assessment
	ComputedAt time.Time
}
