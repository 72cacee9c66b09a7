package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Framework is a framework of the catalogue as v2 shows it.
type Framework struct {
	ID       string             `json:"id" doc:"Key of the framework in the catalogue, such as hipaa."`
	Name     string             `json:"name" doc:"The framework's name."`
	Category string             `json:"category" doc:"What kind of framework it is."`
	Measures []FrameworkMeasure `json:"measures" doc:"What the framework measures."`
	Courses  []FrameworkCourse  `json:"courses" doc:"The courses that the framework requires of its audience."`
}

// FrameworkMeasure is a measure of a framework.
type FrameworkMeasure struct {
	Key    domain.Measure `json:"key" doc:"Key of the measure: T for training, P for phishing, A for policies, R for reports."`
	Name   string         `json:"name" doc:"What is measured."`
	Module domain.Module  `json:"module" doc:"The module that must be on for the measure to be evaluated."`
	Target float64        `json:"target" doc:"The target: a percentage, for R1 a number of reports. P2 must not exceed it, the others must reach it."`
}

// FrameworkCourse is a course that a framework requires.
type FrameworkCourse struct {
	CourseID domain.CourseID `json:"course_id" doc:"Opaque id of the course."`
	Title    string          `json:"title" doc:"The course's title."`
	Role     *domain.Role    `json:"role" doc:"The risk role whose users need the course. Null for everybody in the audience."`
}

// FrameworkAssignment is the assignment of a framework to users of a client, as v2 shows it.
type FrameworkAssignment struct {
	ID         domain.FrameworkAssignmentID `json:"id" doc:"Opaque id of the assignment."`
	Framework  FrameworkRef                 `json:"framework" doc:"The framework that is assigned."`
	Audience   FrameworkAudience            `json:"audience" doc:"Whom the framework is assigned to."`
	Modules    FrameworkModules             `json:"modules" doc:"Which modules of the framework are on."`
	Evaluation FrameworkEvaluation          `json:"evaluation" doc:"How far the framework is met. At most 5 minutes old."`
	CreatedAt  domain.Time                  `json:"created_at" doc:"When the framework was assigned."`
	UpdatedAt  domain.Time                  `json:"updated_at" since:"2.5" doc:"When the assignment was made, or more of it than evaluated_at last changed: what updated_since goes by."`
}

// FrameworkRef names a framework.
type FrameworkRef struct {
	ID       string `json:"id" doc:"Key of the framework in the catalogue."`
	Name     string `json:"name" doc:"The framework's name."`
	Category string `json:"category" doc:"What kind of framework it is."`
}

// FrameworkAudience is the audience of a framework assignment.
type FrameworkAudience struct {
	Type domain.FrameworkAudienceType `json:"type" doc:"Whose users the audience is: all of the client's, a group's or a collection's."`
	ID   *string                      `json:"id" doc:"Opaque id of the group or collection. Null for all users."`
	Name *string                      `json:"name" doc:"Name of the group or collection. Null for all users, and for a collection that was deleted: nobody is in that audience."`
}

// FrameworkModules says which modules of a framework are on.
type FrameworkModules struct {
	Training  bool `json:"training" doc:"Whether training is measured, and its courses given."`
	Phishing  bool `json:"phishing" doc:"Whether phishing is measured."`
	Policies  bool `json:"policies" doc:"Whether policies are measured."`
	Reporting bool `json:"reporting" doc:"Whether reports are measured."`
}

// FrameworkEvaluation says which requirements of a framework are met.
type FrameworkEvaluation struct {
	Met          int                    `json:"met" doc:"Number of requirements that are met."`
	Total        int                    `json:"total" doc:"Number of requirements."`
	Percentage   int                    `json:"percentage" doc:"Requirements met, in percent, rounded; 0 without requirements."`
	Requirements []FrameworkRequirement `json:"requirements" doc:"Each requirement with what was measured."`
	EvaluatedAt  domain.Time            `json:"evaluated_at" doc:"When the requirements were evaluated."`
}

// FrameworkRequirement is one measure of an evaluation.
type FrameworkRequirement struct {
	Key    domain.Measure `json:"key" doc:"Key of the measure."`
	Name   string         `json:"name" doc:"What is measured."`
	Met    bool           `json:"met" doc:"Whether the target is reached; for P2, not exceeded."`
	Value  *float64       `json:"value" doc:"What was measured, in the unit of the target. Null where there is nothing to measure."`
	Target *float64       `json:"target" doc:"The target: a percentage, for R1 a number of reports. Null where there is none."`
	Detail string         `json:"detail" doc:"The numerator and the denominator, in words."`
}

// The operations on frameworks and their assignments.
var (
	ListFrameworks = op.DeclareList[ListFrameworksInput, Framework](op.Meta{
		ID: "frameworks.list", Starred: true, Method: "GET", Path: "/frameworks", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the catalogue of frameworks",
		Description: "Returns the frameworks that can be assigned, by their id, with what each measures and which " +
			"courses it requires.",
		Columns: []string{"id", "name", "category"},
	})
	ListClientFrameworks = op.DeclareList[ListClientFrameworksInput, FrameworkAssignment](op.Meta{
		ID: "clients.frameworks", Tag: "frameworks", Method: "GET", Path: "/clients/:client_id/frameworks", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the frameworks assigned to a client",
		Description: "Returns the assignments by their creation, each with its audience and how far the framework is " +
			"met. Evaluations may be 5 minutes old.",
		Columns: []string{"id", "framework.name", "audience.type", "audience.name", "evaluation.percentage"},
	})
	GetFramework = op.Declare[GetFrameworkInput, FrameworkAssignment](op.Meta{
		ID: "frameworks.get", Starred: true, Method: "GET", Path: "/clients/:client_id/frameworks/:assignment_id", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "Get a framework assigned to a client",
		Description: "Returns the assignment, as the list does. Its evaluation may be 5 minutes old.",
	})
	AssignFramework = op.Declare[AssignFrameworkInput, FrameworkAssigned](op.Meta{
		ID: "frameworks.assign", Method: "POST", Path: "/clients/:client_id/frameworks", Scope: domain.Write, Since: op.V2_2, Status: 201,
		Summary: "Assign a framework to users of a client",
		Description: "Assigns the framework to an audience and gives its users, also those who enter it later, the courses " +
			"that it requires, due in 30 days. With `dry_run` nothing changes, and the answer says what would be " +
			"scheduled; the same framework for the same audience is a conflict.", Fails: []domain.Code{domain.Conflict},
	})
	RemoveFramework = op.Declare[RemoveFrameworkInput, op.NoContent](op.Meta{
		ID: "frameworks.remove", Method: "DELETE", Path: "/clients/:client_id/frameworks/:assignment_id", Scope: domain.Write, Since: op.V2_2, Status: 204,
		Summary: "Remove a framework from a client",
		Description: "Ends the assignment and withdraws its courses that were not started and that nothing else asks " +
			"for. Completed courses stay on the users' records.",
	})
)

// ListFrameworksInput asks for a page of the catalogue, by id.
type ListFrameworksInput struct {
	Query struct{ op.Paging }
}

// ListClientFrameworksInput asks for a page of a client's framework assignments, by creation.
type ListClientFrameworksInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only assignments that were made, or of which more than evaluated_at changed, at or after this time."`
	}
}

// FrameworkPath names an assignment of a client.
type FrameworkPath struct {
	ClientPath
	AssignmentID domain.FrameworkAssignmentID `path:"assignment_id" doc:"Opaque id of the assignment, from the client's list of frameworks."`
}

// GetFrameworkInput asks for one framework assignment of a client.
type GetFrameworkInput struct{ Path FrameworkPath }

// AssignFrameworkInput asks for a framework to be assigned to users of a client.
type AssignFrameworkInput struct {
	Path ClientPath
	Body struct {
		FrameworkID FrameworkID                    `json:"framework_id" validate:"required,enum" doc:"Key of a framework of the catalogue."`
		Audience    domain.Optional[Audience]      `json:"audience,omitzero" doc:"Whom to assign the framework to; all users when left out. Named users become a collection, which is the assignment's audience then."`
		Modules     domain.Optional[AssignModules] `json:"modules,omitzero" doc:"Which modules are to be on."`
		DryRun      bool                           `json:"dry_run,omitzero" default:"false" doc:"Answer as if the framework were assigned, and change nothing."`
	}
}

// FrameworkID is the id of a framework of the catalogue.
type FrameworkID string

// Values lists the frameworks.
func (FrameworkID) Values() []string {
	ids := make([]string, len(domain.Frameworks))
	for i, f := range domain.Frameworks {
		ids[i] = f.ID
	}
	return ids
}

// AssignModules selects the modules of a framework assignment; those that are not given get their default.
type AssignModules struct {
	Training  domain.Optional[bool] `json:"training,omitzero" default:"true" doc:"Whether to measure training, and give the framework's courses to its audience."`
	Phishing  domain.Optional[bool] `json:"phishing,omitzero" default:"true" doc:"Whether to measure phishing."`
	Policies  domain.Optional[bool] `json:"policies,omitzero" default:"false" doc:"Whether to measure policies."`
	Reporting domain.Optional[bool] `json:"reporting,omitzero" default:"true" doc:"Whether to measure reports."`
}

// FrameworkAssigned is the answer to AssignFramework.
type FrameworkAssigned struct {
	DryRun            bool                `json:"dry_run" doc:"Whether nothing was changed."`
	Assignment        FrameworkAssignment `json:"assignment" doc:"The new assignment; of a dry run, one that does not exist."`
	CoursesToSchedule []CourseToSchedule  `json:"courses_to_schedule" doc:"How many users are given each course. Courses that nobody is given are left out. Beyond an audience of 10,000 users they are given shortly after the answer."`
}

// CourseToSchedule says how many users are given a course.
type CourseToSchedule struct {
	CourseID  domain.CourseID `json:"course_id" doc:"Opaque id of the course."`
	Title     string          `json:"title" doc:"The course's title."`
	UserCount int             `json:"user_count" doc:"Number of active users of the audience who neither have the course open nor completed it within its renewal window."`
}

// RemoveFrameworkInput asks to remove a framework assignment.
type RemoveFrameworkInput struct{ Path FrameworkPath }
