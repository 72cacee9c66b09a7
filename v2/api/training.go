package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Assignment is a user's course with its status, as v2 shows it.
type Assignment struct {
	AssignmentFields
	UpdatedAt domain.Time `json:"updated_at" since:"2.5" doc:"When what is shown here last changed, also by becoming overdue: what updated_since goes by."`
}

// AssignmentFields are the fields of a user's course in every list and event of courses.
type AssignmentFields struct {
	CourseID    domain.CourseID         `json:"course_id" doc:"Opaque id of the course."`
	Title       string                  `json:"title" doc:"The course's title."`
	Order       int                     `json:"order" doc:"The course's place in the user's list, from 1: the client's program first."`
	AssignedAt  domain.Time             `json:"assigned_at" doc:"When the course was given to the user."`
	DueOn       domain.Date             `json:"due_on" doc:"The day (UTC) by whose end the course is to be completed."`
	CompletedAt *domain.Time            `json:"completed_at" doc:"When the user completed the course. Null for not yet, and where the course is due again."`
	Status      domain.AssignmentStatus `json:"status" doc:"Whether the course is open, completed or overdue today (UTC)."`
}

// ClientAssignment is a course of one of a client's users, with its status.
type ClientAssignment struct {
	UserID domain.UserID `json:"user_id" doc:"The user, active or inactive, who was given the course."`
	AssignmentFields
	UpdatedAt domain.Time `json:"updated_at" doc:"When what is shown here last changed, also by becoming overdue. Changes of the user do not move it."`
}

// Course is a course of the catalogue as v2 shows it.
type Course struct {
	ID            domain.CourseID   `json:"id" doc:"Opaque id of the course."`
	Title         string            `json:"title" doc:"The course's title."`
	RenewalMonths int               `json:"renewal_months" doc:"How many months having completed the course counts; 0 for good."`
	Languages     []domain.Language `json:"languages" doc:"The languages that the course is available in."`
}

// The operations on courses and their assignments.
var (
	ListTraining = op.DeclareList[ListTrainingInput, Assignment](op.Meta{
		ID: "users.training", Tag: "training", Starred: true, Method: "GET", Path: "/users/:user_id/training", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the courses that a user was given",
		Description: "Returns each course that the user was given, once, in the order of the user's list, with its " +
			"due date and whether it is completed.",
		Columns: []string{"course_id", "title", "status", "assigned_at", "due_on", "completed_at"},
	})
	ListClientTraining = op.DeclareList[ListClientTrainingInput, ClientAssignment](op.Meta{
		ID: "training.assignments.list", Starred: true, Method: "GET", Path: "/clients/:client_id/training/assignments",
		Scope: domain.Read, Since: op.V2_4, Status: 200,
		Summary: "List the courses that the users of a client were given",
		Description: "Returns what `GET /v2/users/{user_id}/training` has of every user of a client, in one list: by when the " +
			"courses were assigned, then by user and course.",
		Columns: []string{"user_id", "course_id", "title", "status", "assigned_at", "due_on", "completed_at"},
	})
	ListCourses = op.DeclareList[ListCoursesInput, Course](op.Meta{
		ID: "courses.list", Tag: "training", Starred: true, Method: "GET", Path: "/courses", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List the catalogue of courses",
		Description: "Returns the courses that `course_id` stands for, by their creation. All clients share them.",
		Columns:     []string{"id", "title", "renewal_months"},
	})
	AssignTraining = op.Declare[AssignTrainingInput, TrainingAssigned](op.Meta{
		ID: "training.assign", Method: "POST", Path: "/clients/:client_id/training/assignments", Scope: domain.Write, Since: op.V2_2, Status: 200, ReachesOut: true,
		Summary: "Give a course to users of a client",
		Description: "Gives a course to the active users of an audience. Users who completed it within its renewal window " +
			"are skipped and listed; those who have it open keep it, so asking again changes nothing.",
	})
	RemindTraining = op.Declare[RemindTrainingInput, TrainingReminded](op.Meta{
		ID: "training.remind", Starred: true, Method: "POST", Path: "/clients/:client_id/training/reminders",
		Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Remind users of their overdue courses",
		Description: "Sends one mail that names all overdue courses to each of the users who is active and has some. " +
			"A user is reminded once a day (UTC), and a client as a whole once a day; more often is 429.",
	})
)

// ListTrainingInput asks for a page of a user's courses, in their order.
type ListTrainingInput struct {
	Path  UserPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only courses that were assigned, completed or became overdue, or whose place in the list changed, at or after this time."`
	}
}

// ListClientTrainingInput asks for a page of the courses of a client's users.
type ListClientTrainingInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UserID         string              `query:"user_id" validate:"max=500" doc:"Only courses of this user."`
		UserStatus     domain.UserStatus   `query:"user_status" validate:"omitempty,enum" doc:"Only courses of users who are in this state now."`
		CourseID       string              `query:"course_id" validate:"max=500" doc:"Only this course."`
		Status         *AssignmentStatuses `query:"status" doc:"Only courses in one of these states today (UTC), comma-separated."`
		CompletedSince *domain.Time        `query:"completed_since" doc:"Only courses completed at or after this time."`
		CompletedUntil *domain.Time        `query:"completed_until" doc:"Only courses completed before this time."`
		UpdatedSince   *domain.Time        `query:"updated_since" doc:"Only courses that were assigned, completed or became overdue, or whose place in the user's list changed, at or after this time."`
	}
}

// AssignmentStatuses is a comma-separated list of states.
type AssignmentStatuses = EnumList[domain.AssignmentStatus]

// ListCoursesInput asks for a page of the catalogue, by creation.
type ListCoursesInput struct {
	Query struct{ op.Paging }
}

// Audience selects users of a client in exactly one way: all, a collection's members, or named ones.
type Audience struct {
	Type         domain.AudienceType                  `json:"type" validate:"required,enum" doc:"Which users: all of the client's, the members of a collection, or those named."`
	CollectionID domain.Optional[domain.CollectionID] `json:"collection_id,omitzero" doc:"The collection. Required when type is collection, and else left out."`
	UserIDs      []domain.UserID                      `json:"user_ids,omitzero" validate:"max=10000" doc:"The users. Required when type is users, and else left out."`
}

// AssignTrainingInput asks for a course to be given to users of a client.
type AssignTrainingInput struct {
	Path ClientPath
	Body struct {
		CourseID domain.CourseID              `json:"course_id" validate:"required" doc:"A course of the catalogue."`
		Audience *Audience                    `json:"audience" validate:"required" doc:"Whom to give the course to."`
		DueOn    domain.Optional[domain.Date] `json:"due_on,omitzero" doc:"The day (UTC) by whose end the course is to be completed. Left out, 30 days from today."`
		Notify   domain.Optional[bool]        `json:"notify,omitzero" default:"true" doc:"Whether to send each user who is given the course a mail now."`
		DryRun   bool                         `json:"dry_run,omitzero" since:"2.4" default:"false" doc:"Answer as if the course were given, and change nothing."`
	}
}

// TrainingAssigned is the answer to AssignTraining.
type TrainingAssigned struct {
	CourseID         domain.CourseID `json:"course_id" doc:"Opaque id of the course."`
	AssignedCount    int             `json:"assigned_count" doc:"Number of users who are given the course; beyond an audience of 10,000 users, shortly after the answer."`
	NotifiedCount    int             `json:"notified_count" since:"2.4" doc:"Number of users who are sent a mail about it: those who are given the course, or none where notify is false."`
	AlreadyOpenCount int             `json:"already_open_count" since:"2.4" doc:"Number of users who have the course open already. They keep it, with its due date, get no mail, and are not listed in skipped."`
	Skipped          []SkippedUser   `json:"skipped" doc:"Users of the audience who are not given the course."`
}

// SkippedUser is a user of the audience who was not given the course.
type SkippedUser struct {
	UserID domain.UserID     `json:"user_id" doc:"Opaque id of the user."`
	Reason domain.SkipReason `json:"reason" doc:"Why: the course was completed within its renewal window, or the user is inactive."`
}

// RemindTrainingInput asks for reminders of overdue courses.
type RemindTrainingInput struct {
	Path ClientPath
	Body struct {
		UserIDs []domain.UserID `json:"user_ids,omitzero" validate:"omitempty,min=1,max=500" doc:"Whom to remind. Left out, every active user of the client with overdue courses."`
		DryRun  bool            `json:"dry_run,omitzero" since:"2.4" default:"false" doc:"Answer as if the users were reminded, and send and count nothing."`
	} `optional:"true"`
}

// TrainingReminded is the answer to RemindTraining.
type TrainingReminded struct {
	RecipientCount int              `json:"recipient_count" doc:"Number of users who are sent a reminder."`
	Skipped        []UnremindedUser `json:"skipped" doc:"Users who are not sent one."`
}

// UnremindedUser is a user who is not sent a reminder.
type UnremindedUser struct {
	UserID domain.UserID       `json:"user_id" doc:"Opaque id of the user."`
	Reason domain.ReminderSkip `json:"reason" doc:"Why: nothing is overdue, the user is inactive, or was reminded on this day (UTC)."`
}
