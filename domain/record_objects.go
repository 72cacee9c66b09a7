package domain

import "slices"

// This file has a record for each kind of object that can be imported (decisions 10). The tags of a field are json, its
// name (omitzero makes an export leave out a zero column); validate, its rules (package rule); and rule:
//
//	new      required for an object that does not exist yet, and in a signal
//	fixed    must not be changed for an existing object
//
// A field whose value is a pointer may be null, which clears it.
//
// An export writes the fields in this order. The column of a field, in the row type of package db, has the name in the
// tag row, the name of the field or, for a reference, that name followed by ID.

// PartnerRecord is a partner, a managed-service provider.
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
	// Titles are the titles by language. The course is available in these languages.
	Titles    Optional[map[Language]string] `json:"titles" validate:"omitnil,min=1,dive,keys,enum,endkeys,filled,name,max=200"`
	CreatedAt Optional[Time]                `json:"created_at" validate:"omitnil,epoch,past"`
}

// ClientRecord is a client. A new client without a program gets the default program.
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

// ProgramCourse is a course of a client's program, which is an ordered list of courses. In JSON it is an object, or
// only the id of the course.
type ProgramCourse struct {
	Course Ref[CourseKind] `json:"course" validate:"required"`
	// DueAfterDays is the number of days from the enrolment until the course is due; nil means the default of Days.
	DueAfterDays *int `json:"due_after_days,omitempty" validate:"omitnil,between=0 3650"`
}

// Noun returns the noun of the object to which an id refers.
func (p ProgramCourse) Noun() string { return p.Course.Noun() }

// UnmarshalText parses the id of the course.
func (p *ProgramCourse) UnmarshalText(text []byte) error { return p.Course.UnmarshalText(text) }

// Days returns the number of days from the enrolment until the course is due. place is its index in the program. The
// default is 14 days, and 30 more for each course before it.
func (p ProgramCourse) Days(place int) int {
	if p.DueAfterDays != nil {
		return *p.DueAfterDays
	}
	return 14 + 30*place
}

// AdminRecord is an admin in the dashboard: of a client or, if the record names none, of a partner.
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

// BrandRecord is the brand of a partner or, if it names one, of a client. It has no id: there is one for each. The
// service's own brand has the zero partner, which no line can name.
type BrandRecord struct {
	Partner        Optional[Ref[PartnerKind]] `json:"partner"`
	Client         Optional[Ref[ClientKind]]  `json:"client"`
	DisplayName    Optional[*string]          `json:"display_name,omitzero" validate:"omitnil,name,max=200"`
	Logo           Optional[*Logo]            `json:"logo,omitzero"`
	AccentColor    Optional[*AccentColor]     `json:"accent_color,omitzero"`
	SenderName     Optional[*string]          `json:"sender_name,omitzero" validate:"omitnil,name,max=200"`
	SenderEmail    Optional[*string]          `json:"sender_email,omitzero" validate:"omitnil,email,max=254"`
	ReplyTo        Optional[*string]          `json:"reply_to,omitzero" validate:"omitnil,email,max=254"`
	SupportContact Optional[*Contact]         `json:"support_contact,omitzero"`
	PostalLine     Optional[*string]          `json:"postal_line,omitzero" validate:"omitnil,name,max=200"`
}

// Owner returns whose brand it is: the client or, if the record names none, the partner.
func (r *BrandRecord) Owner() BrandOwner {
	if r.Client.Given {
		return BrandOwner{Client: r.Client.Value.ID}
	}
	return BrandOwner{Partner: r.Partner.Value.ID}
}

// Bytes returns the UUID of the owner.
func (r *BrandRecord) Bytes() [16]byte {
	if owner := r.Owner(); owner.Partner.IsZero() {
		return owner.Client
	}
	return r.Owner().Partner
}

// GroupRecord is a group of users. Each client has one Manual group, for users who belong to no directory; its record
// has manual set.
type GroupRecord struct {
	ID        Ref[GroupKind]            `json:"id" validate:"required"`
	Client    Optional[Ref[ClientKind]] `json:"client" rule:"new,fixed"`
	Name      Optional[string]          `json:"name" rule:"new" validate:"omitnil,filled,name,max=200"`
	Manual    Optional[bool]            `json:"manual,omitzero" rule:"fixed"`
	CreatedAt Optional[Time]            `json:"created_at" validate:"omitnil,epoch,past"`
}

// UserRecord is a user of a client. Without a role, a new user's role is classified. Without a group, a new user is in
// the client's Manual group.
type UserRecord struct {
	ID                Ref[UserKind]                   `json:"id" validate:"required"`
	Client            Optional[Ref[ClientKind]]       `json:"client" rule:"new,fixed"`
	Email             Optional[string]                `json:"email" rule:"new" validate:"omitnil,email,max=254"`
	FirstName         Optional[string]                `json:"first_name" validate:"omitnil,name,max=200"`
	LastName          Optional[string]                `json:"last_name" validate:"omitnil,name,max=200"`
	Department        Optional[*string]               `json:"department" validate:"omitnil,max=500,trim"`
	JobTitle          Optional[*string]               `json:"job_title" validate:"omitnil,max=500,trim"`
	ManagerEmail      Optional[*string]               `json:"manager_email" validate:"omitnil,email,max=254"`
	Role              Optional[Role]                  `json:"role"`
	PreferredLanguage Optional[Language]              `json:"preferred_language" row:"Language"`
	CollectionIDs     Optional[[]Ref[CollectionKind]] `json:"collection_ids" validate:"omitnil,max=500"`
	// SendWelcomeEmail must be false: an import sends no email.
	SendWelcomeEmail Optional[bool]           `json:"send_welcome_email"`
	Status           Optional[UserStatus]     `json:"status"`
	Source           Optional[UserSource]     `json:"source"`
	Group            Optional[Ref[GroupKind]] `json:"group"`
	// Overrides are the fields that were set by hand. If it is given, the record marks no others.
	Overrides Optional[[]Override] `json:"overrides" validate:"omitnil,max=8"`
	CreatedAt Optional[Time]       `json:"created_at" validate:"omitnil,epoch,past"`
}

// Override is the v2 name of a field of a user that was set by hand. A directory sync does not change it.
type Override string

// Values lists the fields that may be set by hand.
func (Override) Values() []string {
	return []string{
		"first_name", "last_name", "department", "job_title", "manager_email", "status", "role", "preferred_language",
	}
}

// OrderedOverrides returns the overrides of a user in the order of the fields (Override), each once.
func OrderedOverrides(overrides []string) []Override {
	ordered := []Override{}
	for _, field := range (Override("")).Values() {
		if slices.Contains(overrides, field) {
			ordered = append(ordered, Override(field))
		}
	}
	return ordered
}

// MaxMembers is the maximum number of members in a record of a collection. Further records of the same collection may
// add more.
const MaxMembers = 10_000

// CollectionRecord is a named set of a client's users. Its members are added to the existing members.
type CollectionRecord struct {
	ID          Ref[CollectionKind]       `json:"id" validate:"required"`
	Client      Optional[Ref[ClientKind]] `json:"client" rule:"new,fixed"`
	Name        Optional[string]          `json:"name" rule:"new" validate:"omitnil,filled,name,max=200"`
	Description Optional[*string]         `json:"description" validate:"omitnil,max=2000"`
	Members     Optional[[]MemberRecord]  `json:"members" validate:"omitnil,max=10000,dive"`
	CreatedBy   Optional[Creator]         `json:"created_by"`
	CreatedAt   Optional[Time]            `json:"created_at" validate:"omitnil,epoch,past"`
}

// MemberRecord is a user who joins a collection. In JSON it is an object, or only the id of the user if AddedAt is nil.
type MemberRecord struct {
	User Ref[UserKind] `json:"user" validate:"required"`
	// AddedAt is when the user joined; nil means the default: for a new collection, when it and the user existed.
	AddedAt *Time `json:"added_at,omitempty" validate:"omitnil,epoch,past"`
}

// UnmarshalText parses the id of the user.
func (m *MemberRecord) UnmarshalText(text []byte) error { return m.User.UnmarshalText(text) }

// MarshalJSON returns the id of the user, or an object if the record has a time.
func (m MemberRecord) MarshalJSON() ([]byte, error) {
	text := []byte(`"` + m.User.String() + `"`)
	if m.AddedAt == nil {
		return text, nil
	}
	text = append(append([]byte(`{"user":`), text...), `,"added_at":"`...)
	text, err := m.AddedAt.AppendText(text)
	return append(text, `"}`...), err
}

// PolicyRecord is a text of a client that an audience of its users has to sign.
type PolicyRecord struct {
	ID          Ref[PolicyKind]           `json:"id" validate:"required"`
	Client      Optional[Ref[ClientKind]] `json:"client" rule:"new,fixed"`
	Title       Optional[string]          `json:"title" rule:"new" validate:"omitnil,filled,name,max=200"`
	Description Optional[*string]         `json:"description" validate:"omitnil,max=2000"`
	Version     Optional[int]             `json:"version" validate:"omitnil,between=1 2147483647"`
	ScopeType   Optional[ScopeType]       `json:"scope_type"`
	ScopeID     Optional[AnyRef]          `json:"scope_id"`
	// ScopeDeleted is true if the collection was deleted, so that no user has to sign.
	ScopeDeleted           Optional[bool] `json:"scope_deleted,omitzero"`
	RequiresAcknowledgment Optional[bool] `json:"requires_acknowledgment" row:"MustSign"`
	RenewalPeriodDays      Optional[int]  `json:"renewal_period_days" row:"RenewalDays" validate:"omitnil,between=1 36500"`
	ReviewedAt             Optional[Time] `json:"reviewed_at" validate:"omitnil,epoch,past"`
	Archived               Optional[bool] `json:"archived,omitzero"`
	CreatedAt              Optional[Time] `json:"created_at" validate:"omitnil,epoch,past"`
}

// FrameworkAssignmentRecord is the assignment of a framework to an audience of a client or, if it names none, to all
// users.
type FrameworkAssignmentRecord struct {
	ID        Ref[FrameworkAssignmentKind] `json:"id" validate:"required"`
	Client    Optional[Ref[ClientKind]]    `json:"client" rule:"new,fixed"`
	Framework Optional[string]             `json:"framework" rule:"new,fixed" validate:"omitnil,filled,max=200"`
	Audience  Optional[AudienceRecord]     `json:"audience" rule:"fixed"`
	Modules   Optional[ModulesRecord]      `json:"modules"`
	CreatedAt Optional[Time]               `json:"created_at" validate:"omitnil,epoch,past"`
}

// AudienceRecord is the audience to which a framework is assigned. ID is the id of the group or collection; nil for all
// users.
type AudienceRecord struct {
	Type FrameworkAudienceType `json:"type" validate:"required"`
	ID   *AnyRef               `json:"id,omitempty"`
	// Deleted is true if the collection was deleted, so that the audience is empty.
	Deleted bool `json:"deleted,omitempty"`
}

// ModulesRecord reports which modules of a framework assignment are on. A module that is omitted keeps its state or,
// in a new assignment, gets the default of the API.
type ModulesRecord struct {
	Training  *bool `json:"training,omitempty"`
	Phishing  *bool `json:"phishing,omitempty"`
	Policies  *bool `json:"policies,omitempty"`
	Reporting *bool `json:"reporting,omitempty"`
}

// TrainingRecord is a round of a course that a user was assigned. Its id only identifies the line: the service
// identifies a round by its user, course and number.
type TrainingRecord struct {
	ID     Ref[TrainingKind]         `json:"id" validate:"required"`
	User   Optional[Ref[UserKind]]   `json:"user" rule:"new,fixed"`
	Course Optional[Ref[CourseKind]] `json:"course" rule:"new,fixed"`
	// Round is 1 for the first time that the course was assigned; each renewal is another round.
	Round    Optional[int] `json:"round" rule:"fixed" validate:"omitnil,between=1 1000"`
	Position Optional[int] `json:"position" validate:"omitnil,between=1 2000000"`
	// Reasons are all reasons of the assignment. A new one without reasons is direct.
	Reasons     Optional[[]TrainingReason] `json:"reasons" validate:"omitnil,max=200"`
	AssignedAt  Optional[Time]             `json:"assigned_at" rule:"new" validate:"omitnil,epoch,past"`
	DueOn       Optional[Date]             `json:"due_on" rule:"new"`
	StartedAt   Optional[Time]             `json:"started_at" validate:"omitnil,epoch,past"`
	CompletedAt Optional[Time]             `json:"completed_at" validate:"omitnil,epoch,past"`
}

// TrainingReason is a reason why a course is assigned: the client's program, a request (direct), or a framework
// assignment. In JSON it is program, direct, or the id of the framework assignment.
type TrainingReason struct {
	Program, Direct bool
	Framework       Ref[FrameworkAssignmentKind]
}

const (
	programReason = "program"
	directReason  = "direct"
)

// UnmarshalText parses program, direct, or the ID of a framework assignment.
func (r *TrainingReason) UnmarshalText(text []byte) error {
	switch string(text) {
	case programReason:
		r.Program = true
	case directReason:
		r.Direct = true
	default:
		if r.Framework.UnmarshalText(text) != nil {
			return Fault("must be program, direct, or the ID of a framework assignment")
		}
	}
	return nil
}

// MarshalText returns the text that UnmarshalText parses. It never fails.
func (r TrainingReason) MarshalText() ([]byte, error) {
	switch {
	case r.Program:
		return []byte(programReason), nil
	case r.Direct:
		return []byte(directReason), nil
	}
	return r.Framework.MarshalText()
}

// ResultRecord is a simulated email to a user, with its result.
type ResultRecord struct {
	ID                     Ref[ResultKind]             `json:"id" validate:"required"`
	User                   Optional[Ref[UserKind]]     `json:"user" rule:"new,fixed"`
	Template               Optional[Ref[TemplateKind]] `json:"template" rule:"fixed"`
	TemplateName           Optional[TemplateName]      `json:"template_name" rule:"fixed"`
	Label                  Optional[string]            `json:"label,omitzero" validate:"omitnil,filled,max=100,name"`
	SendAt                 Optional[Time]              `json:"send_at" validate:"omitnil,epoch"`
	SentAt                 Optional[Time]              `json:"sent_at" validate:"omitnil,epoch,past"`
	OpenedAt               Optional[*Time]             `json:"opened_at" validate:"omitnil,epoch,past"`
	AttachmentOpenedAt     Optional[*Time]             `json:"attachment_opened_at" validate:"omitnil,epoch,past"`
	ClickedAt              Optional[*Time]             `json:"clicked_at" validate:"omitnil,epoch,past"`
	CredentialsSubmittedAt Optional[*Time]             `json:"credentials_submitted_at" validate:"omitnil,epoch,past"`
	Reported               Optional[bool]              `json:"reported,omitzero"`
	ReportedAt             Optional[*Time]             `json:"reported_at" validate:"omitnil,epoch,past"`
	AutomatedReason        Optional[*AutomatedReason]  `json:"automated_reason,omitzero"`
	Failure                Optional[*string]           `json:"failure,omitzero" validate:"omitnil,max=2000"`
	FailedAt               Optional[*Time]             `json:"failed_at" validate:"omitnil,epoch,past"`
	CreatedAt              Optional[Time]              `json:"created_at" validate:"omitnil,epoch,past"`
}

// TemplateName identifies an imported template. Its id cannot, because it differs between databases.
type TemplateName struct {
	Name     string   `json:"name"`
	Language Language `json:"language"`
}

// SentEmailRecord is an email that was sent to a user.
type SentEmailRecord struct {
	ID          Ref[MessageKind]        `json:"id" validate:"required"`
	User        Optional[Ref[UserKind]] `json:"user" rule:"new,fixed"`
	EventTime   Optional[Time]          `json:"event_time" row:"SentAt" rule:"new" validate:"omitnil,epoch,past"`
	FromEmail   Optional[string]        `json:"from_email" row:"From" rule:"new" validate:"omitnil,filled,max=500"`
	Subject     Optional[string]        `json:"subject" rule:"new" validate:"omitnil,max=2000"`
	SendMethod  Optional[SendMethod]    `json:"send_method" row:"Method" rule:"new"`
	MessageType Optional[MessageType]   `json:"message_type" row:"Type" rule:"new"`
}

// ExposureRecord is an exposure of a user's data in a breach. Its id only identifies the line: the service identifies
// an exposure by its user and breach.
type ExposureRecord struct {
	ID          Ref[ExposureKind]       `json:"id" validate:"required"`
	User        Optional[Ref[UserKind]] `json:"user" rule:"new,fixed"`
	BreachName  Optional[string]        `json:"breach_name" row:"Breach" rule:"new,fixed" validate:"omitnil,filled,max=255"`
	FirstSeenAt Optional[Time]          `json:"first_seen_at" rule:"new" validate:"omitnil,epoch,past"`
	NotifiedAt  Optional[*Time]         `json:"notified_at" validate:"omitnil,epoch,past"`
	ResolvedAt  Optional[*Time]         `json:"resolved_at" validate:"omitnil,epoch,past"`
	Severity    Optional[Severity]      `json:"severity"`
	DataClasses Optional[[]string]      `json:"data_classes" validate:"omitnil,min=1,max=100,dive,filled,max=255"`
}
