package domain

import (
	"slices"
	"strings"
	"time"
)

// User is a person whom a client trains.
type User struct {
	ID         UserID   `bun:",pk"`
	Client     ClientID `bun:"client_id,pk"`
	Email      string   // lower case, unique within the client
	FirstName  string
	LastName   string
	Department *string
	JobTitle   *string
	// ManagerEmail is the manager's address, if known.
	ManagerEmail *string
	Status       UserStatus
	Role         Role
	Language     Language `bun:"preferred_language"`
	Source       UserSource
	Group        *Group `bun:"-"`
	// Overrides lists the fields, by their v2 names, that were set by hand; a directory sync does not change them.
	Overrides []string `bun:",array"`
	Score     int
	Training  UserTraining `bun:"-"`
	Phishing  UserPhishing `bun:"embed:phished_"`
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Name returns the user's full name.
func (u *User) Name() string { return FullName(u.FirstName, u.LastName) }

// Key returns the ids of the client and the user.
func (u *User) Key() UserKey { return UserKey{Client: u.Client, User: u.ID} }

// SameShown reports whether two states of a user have the same status, names, role, language, department, job title and
// manager.
func (u *User) SameShown(o *User) bool {
	return u.Status == o.Status && u.FirstName == o.FirstName && u.LastName == o.LastName &&
		u.Role == o.Role && u.Language == o.Language && Same(u.Department, o.Department) &&
		Same(u.JobTitle, o.JobTitle) && Same(u.ManagerEmail, o.ManagerEmail)
}

// SameOverrides reports whether two states of a user have the same overrides, in any order.
func (u *User) SameOverrides(o *User) bool {
	return slices.Equal(OrderedOverrides(u.Overrides), OrderedOverrides(o.Overrides))
}

// SameGroup reports whether two states of a user have the same group, or both none.
func (u *User) SameGroup(o *User) bool {
	return u.Group == o.Group || u.Group != nil && o.Group != nil && u.Group.ID == o.Group.ID
}

// Same reports whether two nullable values are equal: both nil, or pointers to equal values.
func Same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// FullName joins the first and the last name with a space; without a space if one of them is empty.
func FullName(first, last string) string {
	if first == "" || last == "" {
		return first + last
	}
	return first + " " + last
}

// UserTraining is the state of a user's courses.
type UserTraining struct {
	// Overdue counts the incomplete courses that are past their due date.
	Overdue int
	// Next is the incomplete course with the earliest due date, which may be overdue; nil if no course is incomplete.
	Next *NextCourse
}

// OnTrack reports whether the user has no overdue course.
func (t UserTraining) OnTrack() bool { return t.Overdue == 0 }

// NextCourse is the course that a user should complete next.
type NextCourse struct {
	Course CourseID
	Title  string
	DueOn  Date
}

// UserPhishing counts the simulated emails that were sent to a user, and that the user fell for, in all and within the
// last 365 days.
type UserPhishing struct {
	Sent, Clicked         int
	SentYear, ClickedYear int
}

// UserStatus is the state of a user. Only active users get courses and emails.
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

// Tag returns the language tag for email headers and HTML (BCP 47).
func (l Language) Tag() string {
	if l == French {
		return "fr-CA"
	}
	return string(l)
}

// UserSource is the source of a user's record.
type UserSource string

// The sources of users. FromAPI is the source of users created through v1 or v2.
const (
	FromMicrosoft UserSource = "microsoft"
	FromGoogle    UserSource = "google"
	FromHand      UserSource = "manual"
	FromAPI       UserSource = "api"
)

// Values lists the sources.
func (UserSource) Values() []string { return texts(FromMicrosoft, FromGoogle, FromHand, FromAPI) }

// Group is the group of a user: the client's manual group, or a group of its directory.
type Group struct {
	ID   GroupID
	Name string
}

// ManualGroup is the name of the group of users who are in no directory.
const ManualGroup = "Manual"

// UserSort is an order of a list of users.
type UserSort string

// Values lists the sort orders.
func (UserSort) Values() []string {
	return []string{
		"created_at", "-created_at", "email", "-email", "risk_score", "-risk_score", "last_name", "-last_name",
	}
}

// Since returns the first release of v2 that accepts an order; empty if all releases do.
func (UserSort) Since(order string) string {
	if strings.TrimPrefix(order, "-") == "last_name" {
		return "2.5"
	}
	return ""
}

// UserFilter selects and sorts users of a client.
type UserFilter struct {
	// Status is empty for all states.
	Status UserStatus
	// Query is a text that the name or the email contains, in upper or lower case.
	Query      string
	Role       Role
	Collection *CollectionID
	// Overdue selects users with or without an overdue course; nil selects both.
	Overdue *bool
	// Department and ManagerEmail are compared by their keys (decisions 2.8). NoDepartment selects users without a
	// department.
	Department   string
	NoDepartment bool
	ManagerEmail string
	Grade        Grade
	Group        *GroupID
	UpdatedSince *time.Time
	Sort         Sort
}

// Department sums up the users of a client's department, or those without one, whose Name is nil. All but Users is about
// the active ones.
type Department struct {
	Name                  *string
	Users, Active, Scores int
	Overdue               int
	// Sent and Clicked count the simulated emails of the last 90 days.
	Sent, Clicked int
}

// UserDetail is a user with the fields that only a request for a single user returns.
type UserDetail struct {
	User
	Collections []CollectionRef
	// DarkWeb is nil if the client has no Dark Web Monitoring.
	DarkWeb *UserDarkWeb
	Risk    UserRisk
}

// CollectionRef is the id and the name of a collection.
type CollectionRef struct {
	ID   CollectionID
	Name string
}

// UserDarkWeb counts a user's exposures.
type UserDarkWeb struct {
	Unresolved int
	Resolved   int
	// Highest is the highest severity of the unresolved exposures; nil for none.
	Highest *Severity
}

// UserRisk is a user's assessment, and when it was computed.
type UserRisk struct {
	Assessment
	ComputedAt time.Time
}
