package domain

// This file has a record for each kind of object that a platform imports (decisions
// 10). The tags of a field are json, its name, where omitzero makes an export omit a
// zero; validate, its rules (package rule); and rule:
//
//	new      required for an object that does not exist yet, and in a signal
//	fixed    must not change for an object that exists
//
// A field whose value is a pointer may be null, which clears it.
//
// An export writes the fields in this order. A field has the name of its column in the
// row of package db, but for the ID at the end of a reference's column; or the tag row
// has that name.

// PartnerRecord is a managed-service provider.
type PartnerRecord struct {
	ID        Ref[PartnerKind] `json:"id" validate:"required"`
	Name      Optional[string] `json:"name" rule:"new" validate:"omitnil,filled,name,max=200"`
	CreatedAt Optional[Time]   `json:"created_at" validate:"omitnil,epoch,past"`
}

// CourseRecord is a course of the catalogue, which all clients share.
type CourseRecord struct {
	ID            Ref[CourseKind]  `json:"id" validate:"required"`
	Title         Optional[string] `json:"title" rule:"new" validate:"omitnil,filled,name,max=200"`
	RenewalMonths Optional[int]    `json:"renewal_months" validate:"omitnil,between=0 1200"`
	// Titles are the title in the languages that the course is available in.
	Titles    Optional[map[Language]string] `json:"titles" validate:"omitnil,min=1,dive,keys,enum,endkeys,filled,name,max=200"`
	CreatedAt Optional[Time]                `json:"created_at" validate:"omitnil,epoch,past"`
}

// ClientRecord is a client. A new one without a program gets the foundational one.
type ClientRecord struct {
	ID                Ref[ClientKind]            `json:"id" validate:"required"`
	Partner           Optional[Ref[PartnerKind]] `json:"partner" rule:"new,fixed"`
	Name              Optional[string]           `json:"name" rule:"new" validate:"omitnil,filled,name,max=200"`
	Industry          Optional[*string]          `json:"industry" validate:"omitnil,max=500"`
	ExternalID        Optional[*string]          `json:"external_id" validate:"omitnil,max=500"`
	DarkWebMonitoring Optional[bool]             `json:"dark_web_monitoring"`
	Program           Optional[[]ProgramCourse]  `json:"program" validate:"omitnil,max=200,dive"`
	Archived          Optional[bool]             `json:"archived,omitzero"`
	CreatedAt         Optional[Time]             `json:"created_at" validate:"omitnil,epoch,past"`
}

// ProgramCourse is a course of a client's program, which is a list of them in their
// order: an object, or the id of the course alone.
type ProgramCourse struct {
	Course Ref[CourseKind] `json:"course" validate:"required"`
	// DueAfterDays is how many days after the enrolment it is due; nil for the days
	// of the foundational program: 14, and 30 more for each course before it.
	DueAfterDays *int `json:"due_after_days,omitempty" validate:"omitnil,between=0 3650"`
}

// Noun returns the noun of the object that a lone id refers to.
func (p ProgramCourse) Noun() string { return p.Course.Noun() }

// UnmarshalText reads the id of the course.
func (p *ProgramCourse) UnmarshalText(text []byte) error { return p.Course.UnmarshalText(text) }

// Days returns how many days after the enrolment the course is due. place is its place
// in the program, from 0.
func (p ProgramCourse) Days(place int) int {
	if p.DueAfterDays != nil {
		return *p.DueAfterDays
	}
	return 14 + 30*place
}

// AdminRecord is a person who uses the dashboard: an admin of a client or, where it
// names none, of a whole partner.
type AdminRecord struct {
	ID          Ref[AdminKind]             `json:"id" validate:"required"`
	Partner     Optional[Ref[PartnerKind]] `json:"partner" rule:"fixed"`
	Client      Optional[Ref[ClientKind]]  `json:"client" rule:"fixed"`
	Email       Optional[string]           `json:"email" rule:"new" validate:"omitnil,email,max=254"`
	Name        Optional[string]           `json:"name" rule:"new" validate:"omitnil,filled,name,max=200"`
	Role        Optional[AdminRole]        `json:"role" rule:"new"`
	LastLoginAt Optional[*Time]            `json:"last_login_at" validate:"omitnil,epoch,past"`
	CreatedAt   Optional[Time]             `json:"created_at" validate:"omitnil,epoch,past"`
}

// GroupRecord is a group that users are in. Each client has one for users kept by
// hand: its record says manual.
type GroupRecord struct {
	ID        Ref[GroupKind]            `json:"id" validate:"required"`
	Client    Optional[Ref[ClientKind]] `json:"client" rule:"new,fixed"`
	Name      Optional[string]          `json:"name" rule:"new" validate:"omitnil,filled,name,max=200"`
	Manual    Optional[bool]            `json:"manual,omitzero" rule:"fixed"`
	CreatedAt Optional[Time]            `json:"created_at" validate:"omitnil,epoch,past"`
}

// UserRecord is a person that a client trains. Without a role it is classified,
// without a group it is in the client's manual one.
type UserRecord struct {
	ID                Ref[UserKind]                   `json:"id" validate:"required"`
	Client            Optional[Ref[ClientKind]]       `json:"client" rule:"new,fixed"`
	Email             Optional[string]                `json:"email" rule:"new" validate:"omitnil,email,max=254"`
	FirstName         Optional[string]                `json:"first_name" validate:"omitnil,name,max=200"`
	LastName          Optional[string]                `json:"last_name" validate:"omitnil,name,max=200"`
	Department        Optional[*string]               `json:"department" validate:"omitnil,max=500"`
	JobTitle          Optional[*string]               `json:"job_title" validate:"omitnil,max=500"`
	ManagerEmail      Optional[*string]               `json:"manager_email" validate:"omitnil,email,max=254"`
	Role              Optional[Role]                  `json:"role"`
	PreferredLanguage Optional[Language]              `json:"preferred_language"`
	CollectionIDs     Optional[[]Ref[CollectionKind]] `json:"collection_ids" validate:"omitnil,max=500"`
	// SendWelcomeEmail must be false: an import sends no mail.
	SendWelcomeEmail Optional[bool]           `json:"send_welcome_email"`
	Status           Optional[UserStatus]     `json:"status"`
	Source           Optional[UserSource]     `json:"source"`
	Group            Optional[Ref[GroupKind]] `json:"group"`
	// Overrides names the fields that were set by hand. It replaces those that the
	// record would otherwise mark.
	Overrides Optional[[]Override] `json:"overrides" validate:"omitnil,max=8"`
	CreatedAt Optional[Time]       `json:"created_at" validate:"omitnil,epoch,past"`
}

// Override is a field of a user that was set by hand, by its v2 name: a directory sync
// leaves it alone.
type Override string

// Values lists the fields that may be set by hand.
func (Override) Values() []string {
	return []string{
		"first_name", "last_name", "department", "job_title", "manager_email", "status", "role", "preferred_language",
	}
}

// MaxMembers is how many users a record of a collection may name. Further records of
// the collection may name more.
const MaxMembers = 10_000

// CollectionRecord is a named set of a client's users. Its members are added to the
// existing ones.
type CollectionRecord struct {
	ID          Ref[CollectionKind]       `json:"id" validate:"required"`
	Client      Optional[Ref[ClientKind]] `json:"client" rule:"new,fixed"`
	Name        Optional[string]          `json:"name" rule:"new" validate:"omitnil,filled,name,max=200"`
	Description Optional[*string]         `json:"description" validate:"omitnil,max=2000"`
	Members     Optional[[]Ref[UserKind]] `json:"members" validate:"omitnil,max=10000"`
	CreatedAt   Optional[Time]            `json:"created_at" validate:"omitnil,epoch,past"`
}

// PolicyRecord is a text of a client that an audience of its users is to sign.
type PolicyRecord struct {
	ID          Ref[PolicyKind]           `json:"id" validate:"required"`
	Client      Optional[Ref[ClientKind]] `json:"client" rule:"new,fixed"`
	Title       Optional[string]          `json:"title" rule:"new" validate:"omitnil,filled,name,max=200"`
	Description Optional[*string]         `json:"description" validate:"omitnil,max=2000"`
	Version     Optional[int]             `json:"version" validate:"omitnil,between=1 2147483647"`
	ScopeType   Optional[ScopeType]       `json:"scope_type"`
	ScopeID     Optional[AnyRef]          `json:"scope_id"`
	// ScopeDeleted says that the collection was deleted: no user has to sign any more.
	ScopeDeleted           Optional[bool] `json:"scope_deleted,omitzero"`
	RequiresAcknowledgment Optional[bool] `json:"requires_acknowledgment"`
	RenewalPeriodDays      Optional[int]  `json:"renewal_period_days" validate:"omitnil,between=1 36500"`
	ReviewedAt             Optional[Time] `json:"reviewed_at" validate:"omitnil,epoch,past"`
	Archived               Optional[bool] `json:"archived,omitzero"`
	CreatedAt              Optional[Time] `json:"created_at" validate:"omitnil,epoch,past"`
}

// FrameworkAssignmentRecord records that a client follows a framework for an audience,
// or for all of its users if it names none.
type FrameworkAssignmentRecord struct {
	ID        Ref[FrameworkAssignmentKind] `json:"id" validate:"required"`
	Client    Optional[Ref[ClientKind]]    `json:"client" rule:"new,fixed"`
	Framework Optional[string]             `json:"framework" rule:"new,fixed" validate:"omitnil,filled,max=200"`
	Audience  Optional[AudienceRecord]     `json:"audience" rule:"fixed"`
	Modules   Optional[ModulesRecord]      `json:"modules"`
	CreatedAt Optional[Time]               `json:"created_at" validate:"omitnil,epoch,past"`
}

// AudienceRecord is whom a framework is assigned to. ID is that of the group or the
// collection; nil for all users.
type AudienceRecord struct {
	Type FrameworkAudienceType `json:"type" validate:"required"`
	ID   *AnyRef               `json:"id,omitempty"`
	// Deleted says that the collection was deleted: no user is in the audience any more.
	Deleted bool `json:"deleted,omitempty"`
}

// ModulesRecord says which modules of a framework are on. A module that is left out
// keeps its state, or gets the API's default.
type ModulesRecord struct {
	Training  *bool `json:"training,omitempty"`
	Phishing  *bool `json:"phishing,omitempty"`
	Policies  *bool `json:"policies,omitempty"`
	Reporting *bool `json:"reporting,omitempty"`
}

// ResultRecord is a simulated mail to a user, and what became of it.
type ResultRecord struct {
	ID                     Ref[ResultKind]             `json:"id" validate:"required"`
	User                   Optional[Ref[UserKind]]     `json:"user" rule:"new,fixed"`
	Template               Optional[Ref[TemplateKind]] `json:"template" rule:"fixed"`
	TemplateName           Optional[TemplateName]      `json:"template_name" rule:"fixed"`
	SendAt                 Optional[Time]              `json:"send_at" validate:"omitnil,epoch"`
	SentAt                 Optional[Time]              `json:"sent_at" validate:"omitnil,epoch,past"`
	OpenedAt               Optional[*Time]             `json:"opened_at" validate:"omitnil,epoch,past"`
	AttachmentOpenedAt     Optional[*Time]             `json:"attachment_opened_at" validate:"omitnil,epoch,past"`
	ClickedAt              Optional[*Time]             `json:"clicked_at" validate:"omitnil,epoch,past"`
	CredentialsSubmittedAt Optional[*Time]             `json:"credentials_submitted_at" validate:"omitnil,epoch,past"`
	Reported               Optional[bool]              `json:"reported,omitzero"`
	ReportedAt             Optional[*Time]             `json:"reported_at" validate:"omitnil,epoch,past"`
	AutomatedReason        Optional[*AutomatedReason]  `json:"automated_reason"`
	Failure                Optional[*string]           `json:"failure" validate:"omitnil,max=2000"`
	FailedAt               Optional[*Time]             `json:"failed_at" validate:"omitnil,epoch,past"`
	CreatedAt              Optional[Time]              `json:"created_at" validate:"omitnil,epoch,past"`
}

// TemplateName identifies an imported template instead of its id, which differs
// between databases.
type TemplateName struct {
	Name     string   `json:"name"`
	Language Language `json:"language"`
}

// SentEmailRecord is a mail that was sent to a user.
type SentEmailRecord struct {
	ID          Ref[MessageKind]        `json:"id" validate:"required"`
	User        Optional[Ref[UserKind]] `json:"user" rule:"new,fixed"`
	EventTime   Optional[Time]          `json:"event_time" row:"SentAt" rule:"new" validate:"omitnil,epoch,past"`
	FromEmail   Optional[string]        `json:"from_email" rule:"new" validate:"omitnil,filled,max=500"`
	Subject     Optional[string]        `json:"subject" rule:"new" validate:"omitnil,max=2000"`
	SendMethod  Optional[SendMethod]    `json:"send_method" rule:"new"`
	MessageType Optional[MessageType]   `json:"message_type" rule:"new"`
}

// ExposureRecord records that a user's data was found in a breach. Its id is that of
// the line; the service identifies an exposure by its user and breach.
type ExposureRecord struct {
	ID          Ref[ExposureKind]       `json:"id" validate:"required"`
	User        Optional[Ref[UserKind]] `json:"user" rule:"new,fixed"`
	BreachName  Optional[string]        `json:"breach_name" rule:"new,fixed" validate:"omitnil,filled,max=255"`
	FirstSeenAt Optional[Time]          `json:"first_seen_at" rule:"new" validate:"omitnil,epoch,past"`
	NotifiedAt  Optional[*Time]         `json:"notified_at" validate:"omitnil,epoch,past"`
	ResolvedAt  Optional[*Time]         `json:"resolved_at" validate:"omitnil,epoch,past"`
	Severity    Optional[Severity]      `json:"severity"`
	DataClasses Optional[[]string]      `json:"data_classes" validate:"omitnil,min=1,max=100,dive,filled,max=255"`
}
