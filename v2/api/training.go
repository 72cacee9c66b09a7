package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Assignment is a user's course with its status, as v2 shows it.
type Assignment struct {
	AssignmentFields
	UpdatedAt domain.Time `json:"updated_at" since:"2.5" doc:"When the assignment last changed, including when the course became overdue. updated_since filters by this time."`
}

// AssignmentFields are the fields of a user's course in every list and event of courses.
type AssignmentFields struct {
	CourseID    domain.CourseID         `json:"course_id" doc:"Opaque ID of the course."`
	Title       string                  `json:"title" doc:"The course's title."`
	Order       int                     `json:"order" doc:"Position of the course in the user's list, starting at 1. Courses in the client's program come first."`
	AssignedAt  domain.Time             `json:"assigned_at" doc:"When the course was assigned to the user."`
	DueOn       domain.Date             `json:"due_on" doc:"Last day (UTC) for completing the course."`
	CompletedAt *domain.Time            `json:"completed_at" doc:"When the user completed the course. Null if the course is incomplete or due again."`
	Status      domain.AssignmentStatus `json:"status" doc:"Whether the course is open, completed or overdue today (UTC)."`
}

// ClientAssignment is a course of one of a client's users, with its status.
type ClientAssignment struct {
	UserID domain.UserID `json:"user_id" doc:"The active or inactive user to whom the course is assigned."`
	AssignmentFields
	UpdatedAt domain.Time `json:"updated_at" doc:"When the assignment last changed, including when the course became overdue. Changes to the user do not count."`
}

// Course is a course of the catalog as v2 shows it.
type Course struct {
	ID            domain.CourseID   `json:"id" doc:"Opaque ID of the course."`
	Title         string            `json:"title" doc:"The course's title."`
	RenewalMonths int               `json:"renewal_months" doc:"Number of months for which a completion is valid; 0 means forever."`
	Languages     []domain.Language `json:"languages" doc:"The languages that the course is available in."`
}

// The operations on courses and their assignments.
var (
	ListTraining = op.DeclareList[ListTrainingInput, Assignment](op.Meta{
		ID: "users.training", Tag: "training", Starred: true, Method: "GET", Path: "/users/:user_id/training", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List a user's training",
		Description: "Returns each of the user's courses once, in list order, with due date and status.",
		Columns:     []string{"course_id", "title", "status", "assigned_at", "due_on", "completed_at"},
	})
	ListClientTraining = op.DeclareList[ListClientTrainingInput, ClientAssignment](op.Meta{
		ID: "training.assignments.list", Starred: true, Method: "GET", Path: "/clients/:client_id/training/assignments",
		Scope: domain.Read, Since: op.V2_4, Status: 200,
		Summary: "List training assignments",
		Description: "Returns the courses of all the client's users in one list, ordered by assignment time, user and course. The list " +
			"combines the results of `GET /v2/users/{user_id}/training` for all users.",
		Columns: []string{"user_id", "course_id", "title", "status", "assigned_at", "due_on", "completed_at"},
	})
	ListCourses = op.DeclareList[ListCoursesInput, Course](op.Meta{
		ID: "courses.list", Tag: "training", Starred: true, Method: "GET", Path: "/courses", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List courses",
		Description: "Returns the catalog of courses in order of creation, with the IDs to use as `course_id`. All clients share the catalog.",
		Columns:     []string{"id", "title", "renewal_months"},
	})
	AssignTraining = op.Declare[AssignTrainingInput, TrainingAssigned](op.Meta{
		ID: "training.assign", Method: "POST", Path: "/clients/:client_id/training/assignments", Scope: domain.Write, Since: op.V2_2, Status: 200, ReachesOut: true,
		Summary: "Assign a course",
		Description: "Assigns a course to the active users in an audience and emails them, unless `notify` is false. Repeating " +
			"the request changes nothing: users who already have the course open keep it, and users who completed it within " +
			"its renewal window are listed in `skipped`.",
	})
	RemindTraining = op.Declare[RemindTrainingInput, TrainingReminded](op.Meta{
		ID: "training.remind", Starred: true, Method: "POST", Path: "/clients/:client_id/training/reminders",
		Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Send training reminders",
		Description: "Sends each active user with overdue courses one email that lists them, at most once a day (UTC). Users who were " +
			"already reminded that day are skipped; reminding all of a client's users again on the same day returns 429.",
	})
)

// ListTrainingInput asks for a page of a user's courses, in their order.
type ListTrainingInput struct {
	Path  UserPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only courses that were assigned or completed, became overdue, or moved in the list at or after this time."`
	}
}

// ListClientTrainingInput asks for a page of the courses of a client's users.
type ListClientTrainingInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UserID         string                `query:"user_id" validate:"max=500" doc:"Only this user's courses."`
		UserStatus     domain.UserStatus     `query:"user_status" validate:"omitempty,enum" doc:"Only courses of users who currently have this status."`
		CourseID       string                `query:"course_id" validate:"max=500" doc:"Only assignments of this course."`
		Status         *AssignmentStatuses   `query:"status" doc:"Only courses with one of these comma-separated statuses today (UTC)."`
		CompletedSince *domain.Time          `query:"completed_since" doc:"Only courses completed at or after this time."`
		CompletedUntil *domain.Time          `query:"completed_until" doc:"Only courses completed before this time."`
		UpdatedSince   *domain.Time          `query:"updated_since" doc:"Only courses that were assigned or completed, became overdue, or moved in the user's list at or after this time."`
		Sort           domain.AssignmentSort `query:"sort" since:"2.5" validate:"omitempty,enum" doc:"Order of the list: assigned_at (default), or -assigned_at to list the newest assignments first."`
	}
}

// AssignmentStatuses is a comma-separated list of states.
type AssignmentStatuses = EnumList[domain.AssignmentStatus]

// ListCoursesInput asks for a page of the catalog, in order of creation.
type ListCoursesInput struct {
	Query struct{ op.Paging }
}

// Audience selects users of a client in exactly one way: all, a collection's members, or named ones.
type Audience struct {
	Type         domain.AudienceType                  `json:"type" validate:"required,enum" doc:"The kind of audience: all users of the client, the members of a collection, or listed users."`
	CollectionID domain.Optional[domain.CollectionID] `json:"collection_id,omitzero" doc:"The collection. Required if type is collection; otherwise, omit this field."`
	UserIDs      []domain.UserID                      `json:"user_ids,omitzero" validate:"max=10000" doc:"The users. Required if type is users; otherwise, omit this field."`
}

// AssignTrainingInput requests the assignment of a course to users of a client.
type AssignTrainingInput struct {
	Path ClientPath
	Body struct {
		CourseID domain.CourseID              `json:"course_id" validate:"required" doc:"A course in the catalog."`
		Audience *Audience                    `json:"audience" validate:"required" doc:"The users to assign the course to."`
		DueOn    domain.Optional[domain.Date] `json:"due_on,omitzero" doc:"Last day (UTC) for completing the course. Default: 30 days from today."`
		Notify   domain.Optional[bool]        `json:"notify,omitzero" default:"true" doc:"Whether to email each newly assigned user immediately."`
		DryRun   bool                         `json:"dry_run,omitzero" since:"2.4" default:"false" doc:"Whether to preview the result without changing anything."`
	}
}

// TrainingAssigned is the response to AssignTraining.
type TrainingAssigned struct {
	CourseID         domain.CourseID `json:"course_id" doc:"Opaque ID of the course."`
	AssignedCount    int             `json:"assigned_count" doc:"Number of users to whom the course is assigned. For an audience of more than 10,000 users, the course is assigned shortly after the response."`
	NotifiedCount    int             `json:"notified_count" since:"2.4" doc:"Number of users who receive an email: all users to whom the course is assigned, or none if notify is false."`
	AlreadyOpenCount int             `json:"already_open_count" since:"2.4" doc:"Number of users who already have the course open. These users keep the course with its due date, receive no email and are not listed in skipped."`
	Skipped          []SkippedUser   `json:"skipped" doc:"Users in the audience to whom the course was not assigned."`
}

// SkippedUser is a user of the audience to whom the course was not assigned.
type SkippedUser struct {
	UserID domain.UserID     `json:"user_id" doc:"Opaque ID of the user."`
	Reason domain.SkipReason `json:"reason" doc:"Why the user was skipped: the course was completed within its renewal window, or the user is inactive."`
}

// RemindTrainingInput asks for reminders of overdue courses.
type RemindTrainingInput struct {
	Path ClientPath
	Body struct {
		UserIDs []domain.UserID `json:"user_ids,omitzero" validate:"omitempty,min=1,max=500" doc:"The users to remind. Default: all active users of the client with overdue courses."`
		DryRun  bool            `json:"dry_run,omitzero" since:"2.4" default:"false" doc:"Whether to preview the result. A preview sends no reminders and does not use up the daily limit."`
	} `optional:"true"`
}

// TrainingReminded is the response to RemindTraining.
type TrainingReminded struct {
	RecipientCount int              `json:"recipient_count" doc:"Number of users who receive a reminder."`
	Skipped        []UnremindedUser `json:"skipped" doc:"Users who receive no reminder."`
}

// UnremindedUser is a user who receives no reminder.
type UnremindedUser struct {
	UserID domain.UserID       `json:"user_id" doc:"Opaque ID of the user."`
	Reason domain.ReminderSkip `json:"reason" doc:"Why the user was skipped: no course is overdue, the user is inactive, or the user was already reminded today (UTC)."`
}
