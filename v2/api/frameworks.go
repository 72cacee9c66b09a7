package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Framework is a framework of the catalog as v2 shows it.
type Framework struct {
	ID       string             `json:"id" doc:"ID of the framework in the catalog, such as hipaa."`
	Name     string             `json:"name" doc:"The framework's name."`
	Category string             `json:"category" doc:"Category of the framework."`
	Measures []FrameworkMeasure `json:"measures" doc:"The measures of the framework."`
	Courses  []FrameworkCourse  `json:"courses" doc:"The courses that the framework requires its audience to complete."`
}

// FrameworkMeasure is a measure of a framework.
type FrameworkMeasure struct {
	Key    domain.Measure `json:"key" doc:"Key of the measure, which begins with T for training, P for phishing, A for policies or R for reports."`
	Name   string         `json:"name" doc:"What is measured."`
	Module domain.Module  `json:"module" doc:"The module that must be enabled for the measure to be evaluated."`
	Target float64        `json:"target" doc:"The target: a percentage or, for R1, a number of reports. P2 must not exceed the target; all other measures must reach it."`
}

// FrameworkCourse is a course that a framework requires.
type FrameworkCourse struct {
	CourseID domain.CourseID `json:"course_id" doc:"Opaque ID of the course."`
	Title    string          `json:"title" doc:"The course's title."`
	Role     *domain.Role    `json:"role" doc:"The risk role whose users must complete the course. Null if the whole audience must complete the course."`
}

// FrameworkAssignment is the assignment of a framework to users of a client, as v2 shows it.
type FrameworkAssignment struct {
	ID         domain.FrameworkAssignmentID `json:"id" doc:"Opaque ID of the assignment."`
	Framework  FrameworkRef                 `json:"framework" doc:"The assigned framework."`
	Audience   FrameworkAudience            `json:"audience" doc:"The audience that the framework is assigned to."`
	Modules    FrameworkModules             `json:"modules" doc:"The framework's modules, and whether each is enabled."`
	Evaluation FrameworkEvaluation          `json:"evaluation" doc:"Evaluation of the framework's requirements, at most 5 minutes old."`
	CreatedAt  domain.Time                  `json:"created_at" doc:"When the framework was assigned."`
	UpdatedAt  domain.Time                  `json:"updated_at" since:"2.5" doc:"When the assignment was created or last changed; a new evaluated_at alone does not count as a change. updated_since filters by this time."`
}

// FrameworkRef names a framework.
type FrameworkRef struct {
	ID       string `json:"id" doc:"ID of the framework in the catalog."`
	Name     string `json:"name" doc:"The framework's name."`
	Category string `json:"category" doc:"Category of the framework."`
}

// FrameworkAudience is the audience of a framework assignment.
type FrameworkAudience struct {
	Type domain.FrameworkAudienceType `json:"type" doc:"The users in the audience: all users of the client, or the users of a group or collection."`
	ID   *string                      `json:"id" doc:"Opaque ID of the group or collection. Null for all users."`
	Name *string                      `json:"name" doc:"Name of the group or collection. Null for all users or a deleted collection. The audience of a deleted collection is empty."`
}

// FrameworkModules says which modules of a framework are on.
type FrameworkModules struct {
	Training  bool `json:"training" doc:"Whether training is measured and the framework's courses are assigned."`
	Phishing  bool `json:"phishing" doc:"Whether phishing is measured."`
	Policies  bool `json:"policies" doc:"Whether policies are measured."`
	Reporting bool `json:"reporting" doc:"Whether compliance reporting is measured."`
}

// FrameworkEvaluation says which requirements of a framework are met.
type FrameworkEvaluation struct {
	Met          int                    `json:"met" doc:"Number of requirements met."`
	Total        int                    `json:"total" doc:"Number of requirements."`
	Percentage   int                    `json:"percentage" doc:"Percentage of requirements met, rounded; 0 if there are no requirements."`
	Requirements []FrameworkRequirement `json:"requirements" doc:"The requirements with their measured values."`
	EvaluatedAt  domain.Time            `json:"evaluated_at" doc:"When the requirements were evaluated."`
}

// FrameworkRequirement is one measure of an evaluation.
type FrameworkRequirement struct {
	Key    domain.Measure `json:"key" doc:"Key of the measure."`
	Name   string         `json:"name" doc:"What is measured."`
	Met    bool           `json:"met" doc:"Whether the target is reached or, for P2, not exceeded."`
	Value  *float64       `json:"value" doc:"The measured value, in the unit of the target. Null if there is nothing to measure."`
	Target *float64       `json:"target" doc:"The target: a percentage or, for R1, a number of reports. Null if there is none."`
	Detail string         `json:"detail" doc:"The value in words, with its numerator and denominator."`
}

// The operations on frameworks and their assignments.
var (
	ListFrameworks = op.DeclareList[ListFrameworksInput, Framework](op.Meta{
		ID: "frameworks.list", Starred: true, Method: "GET", Path: "/frameworks", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List frameworks",
		Description: "Returns the catalog of frameworks that you can assign, ordered by ID, each with its measures and required courses.",
		Columns:     []string{"id", "name", "category"},
	})
	ListClientFrameworks = op.DeclareList[ListClientFrameworksInput, FrameworkAssignment](op.Meta{
		ID: "clients.frameworks", Tag: "frameworks", Method: "GET", Path: "/clients/:client_id/frameworks", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List framework assignments",
		Description: "Returns the client's framework assignments in order of creation, each with its audience and evaluation. " +
			"Evaluations can be up to 5 minutes old.",
		Columns: []string{"id", "framework.name", "audience.type", "audience.name", "evaluation.percentage"},
	})
	GetFramework = op.Declare[GetFrameworkInput, FrameworkAssignment](op.Meta{
		ID: "frameworks.get", Starred: true, Method: "GET", Path: "/clients/:client_id/frameworks/:assignment_id", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "Get a framework assignment",
		Description: "Returns the assignment with its audience and evaluation. The evaluation can be up to 5 minutes old.",
	})
	AssignFramework = op.Declare[AssignFrameworkInput, FrameworkAssigned](op.Meta{
		ID: "frameworks.assign", Method: "POST", Path: "/clients/:client_id/frameworks", Scope: domain.Write, Since: op.V2_2, Status: 201,
		Summary: "Assign a framework",
		Description: "Assigns a framework and its required courses, due in 30 days, to all current and future users in an audience. " +
			"Returns 409 if the framework is already assigned to the audience.", Fails: []domain.Code{domain.Conflict},
	})
	RemoveFramework = op.Declare[RemoveFrameworkInput, op.NoContent](op.Meta{
		ID: "frameworks.remove", Method: "DELETE", Path: "/clients/:client_id/frameworks/:assignment_id", Scope: domain.Write, Since: op.V2_2, Status: 204,
		Summary: "Remove a framework assignment",
		Description: "Removes the assignment and withdraws its courses from users who have not started them, unless the courses are also " +
			"assigned for another reason. Completed courses remain in the users' records.",
	})
)

// ListFrameworksInput asks for a page of the catalog, by id.
type ListFrameworksInput struct {
	Query struct{ op.Paging }
}

// ListClientFrameworksInput asks for a page of a client's framework assignments, in order of creation.
type ListClientFrameworksInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only assignments that were created or changed at or after this time. A new evaluated_at alone does not count as a change."`
	}
}

// FrameworkPath names an assignment of a client.
type FrameworkPath struct {
	ClientPath
	AssignmentID domain.FrameworkAssignmentID `path:"assignment_id" doc:"Opaque ID of the assignment, from the client's list of framework assignments."`
}

// GetFrameworkInput asks for one framework assignment of a client.
type GetFrameworkInput struct{ Path FrameworkPath }

// AssignFrameworkInput asks for a framework to be assigned to users of a client.
type AssignFrameworkInput struct {
	Path ClientPath
	Body struct {
		FrameworkID FrameworkID                    `json:"framework_id" validate:"required,enum" doc:"ID of a framework in the catalog."`
		Audience    domain.Optional[Audience]      `json:"audience,omitzero" doc:"The users to assign the framework to. Default: all users of the client. If you list users, the service creates a collection of these users as the audience."`
		Modules     domain.Optional[AssignModules] `json:"modules,omitzero" doc:"The modules to enable."`
		DryRun      bool                           `json:"dry_run,omitzero" default:"false" doc:"Whether to preview the result without changing anything."`
	}
}

// FrameworkID is the id of a framework of the catalog.
type FrameworkID string

// Values lists the frameworks.
func (FrameworkID) Values() []string {
	ids := make([]string, len(domain.Frameworks))
	for i, f := range domain.Frameworks {
		ids[i] = f.ID
	}
	return ids
}

// AssignModules selects the modules of a framework assignment; omitted ones have their default.
type AssignModules struct {
	Training  domain.Optional[bool] `json:"training,omitzero" default:"true" doc:"Whether to measure training and assign the framework's courses."`
	Phishing  domain.Optional[bool] `json:"phishing,omitzero" default:"true" doc:"Whether to measure phishing."`
	Policies  domain.Optional[bool] `json:"policies,omitzero" default:"false" doc:"Whether to measure policies."`
	Reporting domain.Optional[bool] `json:"reporting,omitzero" default:"true" doc:"Whether to measure compliance reporting."`
}

// FrameworkAssigned is the response to AssignFramework.
type FrameworkAssigned struct {
	DryRun            bool                `json:"dry_run" doc:"Whether this response is only a preview. If true, nothing was changed."`
	Assignment        FrameworkAssignment `json:"assignment" doc:"The new assignment, which a dry run does not create."`
	CoursesToSchedule []CourseToSchedule  `json:"courses_to_schedule" doc:"The courses to assign, with the number of users for each course. Courses that no user needs are omitted. For an audience of more than 10,000 users, courses are assigned shortly after the response."`
}

// CourseToSchedule says to how many users a course is assigned.
type CourseToSchedule struct {
	CourseID  domain.CourseID `json:"course_id" doc:"Opaque ID of the course."`
	Title     string          `json:"title" doc:"The course's title."`
	UserCount int             `json:"user_count" doc:"Number of active users in the audience who have no open assignment for the course and have not completed it within its renewal window."`
}

// RemoveFrameworkInput asks to remove a framework assignment.
type RemoveFrameworkInput struct{ Path FrameworkPath }
