package domain

import (
	"bytes"
	"encoding/json"
	"errors"
)

// This file has a record for each kind of object that a platform brings (decisions
// 10). A field's tags say how it is written: record its name, and with omitzero that
// an export leaves a zero out; rule what holds for it, beside what its type says:
//
//	new      an object that is not there yet needs it, and a signal
//	fixed    it says the same as before of an object that is there
//	filled   it is not blank
//	name     it is a name: without control characters, and without white space around it
//	email    it is an email address
//	past     it is not in the future
//	max=N    it has N characters, or items, at the most
//
// A field whose value is a pointer may be null, which clears it.
//
// The order of the fields is that in which an export writes them. A field has the name
// of the column in the row of package db that it is, but for the ID behind a reference;
// or the tag row has.

// PartnerRecord is a managed-service provider.
type PartnerRecord struct {
	ID        Ref[PartnerKind] `record:"id"`
	Name      Optional[string] `record:"name" rule:"new,filled,name,max=200"`
	CreatedAt Optional[Time]   `record:"created_at" rule:"past"`
}

// CourseRecord is a course of the catalogue, which all clients share.
type CourseRecord struct {
	ID            Ref[CourseKind]  `record:"id"`
	Title         Optional[string] `record:"title" rule:"new,filled,name,max=200"`
	RenewalMonths Optional[int]    `record:"renewal_months" rule:"min=0,max=1200"`
	// Titles are the title in the languages that the course is available in.
	Titles    Optional[map[Language]string] `record:"titles" rule:"filled,name,max=200"`
	CreatedAt Optional[Time]                `record:"created_at" rule:"past"`
}

// ClientRecord is a client. A new one without a program gets the foundational one.
type ClientRecord struct {
	ID                Ref[ClientKind]            `record:"id"`
	Partner           Optional[Ref[PartnerKind]] `record:"partner" rule:"new,fixed"`
	Name              Optional[string]           `record:"name" rule:"new,filled,name,max=200"`
	Industry          Optional[*string]          `record:"industry" rule:"max=500"`
	ExternalID        Optional[*string]          `record:"external_id" rule:"max=500"`
	DarkWebMonitoring Optional[bool]             `record:"dark_web_monitoring"`
	Program           Optional[[]ProgramCourse]  `record:"program" rule:"max=200"`
	Archived          Optional[bool]             `record:"archived,omitzero"`
	CreatedAt         Optional[Time]             `record:"created_at" rule:"past"`
}

// MaxDueDays is how many days after the enrolment a course may be due at the most.
const MaxDueDays = 3650

// ProgramCourse is a course of a client's program, which is a list of them in their
// order.
type ProgramCourse struct {
	Course Ref[CourseKind] `json:"course"`
	// DueAfterDays is how many days after the enrolment it is due; nil for the days
	// of the foundational program: 14, and 30 more for each course before it.
	DueAfterDays *int `json:"due_after_days,omitempty"`
}

// UnmarshalJSON reads the object, or the id of the course alone.
func (p *ProgramCourse) UnmarshalJSON(text []byte) error {
	*p = ProgramCourse{}
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &p.Course)
	}
	type plain ProgramCourse
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode((*plain)(p)); err != nil {
		return errors.New("must be the id of a course, or an object of course and due_after_days")
	}
	switch {
	case p.Course.IsZero():
		return errors.New("course is missing")
	case p.DueAfterDays != nil && (*p.DueAfterDays < 0 || *p.DueAfterDays > MaxDueDays):
		return errors.New("due_after_days must be between 0 and 3650")
	}
	return nil
}

// Days is how many days after the enrolment the course is due at a place, from 0, of
// a program.
func (p ProgramCourse) Days(place int) int {
	if p.DueAfterDays != nil {
		return *p.DueAfterDays
	}
	return 14 + 30*place
}

// AdminRecord is a person who uses the dashboard: an admin of a client or, where it
// names none, of a whole partner.
type AdminRecord struct {
	ID          Ref[AdminKind]             `record:"id"`
	Partner     Optional[Ref[PartnerKind]] `record:"partner" rule:"fixed"`
	Client      Optional[Ref[ClientKind]]  `record:"client" rule:"fixed"`
	Email       Optional[string]           `record:"email" rule:"new,email,max=254"`
	Name        Optional[string]           `record:"name" rule:"new,filled,name,max=200"`
	Role        Optional[AdminRole]        `record:"role" rule:"new"`
	LastLoginAt Optional[*Time]            `record:"last_login_at" rule:"past"`
	CreatedAt   Optional[Time]             `record:"created_at" rule:"past"`
}

// GroupRecord is a group that users are in. Each client has one for those who are
// kept by hand: a record that says manual is that one.
type GroupRecord struct {
	ID        Ref[GroupKind]            `record:"id"`
	Client    Optional[Ref[ClientKind]] `record:"client" rule:"new,fixed"`
	Name      Optional[string]          `record:"name" rule:"new,filled,name,max=200"`
	Manual    Optional[bool]            `record:"manual,omitzero" rule:"fixed"`
	CreatedAt Optional[Time]            `record:"created_at" rule:"past"`
}

// UserRecord is a person that a client trains. Without a role it is classified,
// without a group it is in the client's manual one.
type UserRecord struct {
	ID                Ref[UserKind]                   `record:"id"`
	Client            Optional[Ref[ClientKind]]       `record:"client" rule:"new,fixed"`
	Email             Optional[string]                `record:"email" rule:"new,email,max=254"`
	FirstName         Optional[string]                `record:"first_name" rule:"name,max=200"`
	LastName          Optional[string]                `record:"last_name" rule:"name,max=200"`
	Department        Optional[*string]               `record:"department" rule:"max=500"`
	JobTitle          Optional[*string]               `record:"job_title" rule:"max=500"`
	ManagerEmail      Optional[*string]               `record:"manager_email" rule:"email,max=254"`
	Role              Optional[Role]                  `record:"role"`
	PreferredLanguage Optional[Language]              `record:"preferred_language"`
	CollectionIDs     Optional[[]Ref[CollectionKind]] `record:"collection_ids" rule:"max=500"`
	// SendWelcomeEmail is taken where it is false only: an import sends no mail.
	SendWelcomeEmail Optional[bool]           `record:"send_welcome_email"`
	Status           Optional[UserStatus]     `record:"status"`
	Source           Optional[UserSource]     `record:"source"`
	Group            Optional[Ref[GroupKind]] `record:"group"`
	// Overrides are the fields that were set by hand, in the place of those that the
	// record otherwise makes so.
	Overrides Optional[[]Override] `record:"overrides" rule:"max=8"`
	CreatedAt Optional[Time]       `record:"created_at" rule:"past"`
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

// CollectionRecord is a named set of a client's users. Its members are added to those
// that are in it.
type CollectionRecord struct {
	ID          Ref[CollectionKind]       `record:"id"`
	Client      Optional[Ref[ClientKind]] `record:"client" rule:"new,fixed"`
	Name        Optional[string]          `record:"name" rule:"new,filled,name,max=200"`
	Description Optional[*string]         `record:"description" rule:"max=2000"`
	Members     Optional[[]Ref[UserKind]] `record:"members" rule:"max=10000"`
	CreatedAt   Optional[Time]            `record:"created_at" rule:"past"`
}

// PolicyRecord is a text of a client that an audience of its users is to sign.
type PolicyRecord struct {
	ID          Ref[PolicyKind]           `record:"id"`
	Client      Optional[Ref[ClientKind]] `record:"client" rule:"new,fixed"`
	Title       Optional[string]          `record:"title" rule:"new,filled,name,max=200"`
	Description Optional[*string]         `record:"description" rule:"max=2000"`
	Version     Optional[int]             `record:"version" rule:"min=1,max=2147483647"`
	ScopeType   Optional[ScopeType]       `record:"scope_type"`
	ScopeID     Optional[AnyRef]          `record:"scope_id"`
	// ScopeDeleted says that the collection was deleted: no user is asked any more.
	ScopeDeleted           Optional[bool] `record:"scope_deleted,omitzero"`
	RequiresAcknowledgment Optional[bool] `record:"requires_acknowledgment"`
	RenewalPeriodDays      Optional[int]  `record:"renewal_period_days" rule:"min=1,max=36500"`
	ReviewedAt             Optional[Time] `record:"reviewed_at" rule:"past"`
	Archived               Optional[bool] `record:"archived,omitzero"`
	CreatedAt              Optional[Time] `record:"created_at" rule:"past"`
}

// FrameworkAssignmentRecord is that a client follows a framework for an audience:
// all of its users where it names none.
type FrameworkAssignmentRecord struct {
	ID        Ref[FrameworkAssignmentKind] `record:"id"`
	Client    Optional[Ref[ClientKind]]    `record:"client" rule:"new,fixed"`
	Framework Optional[string]             `record:"framework" rule:"new,fixed,filled,max=200"`
	Audience  Optional[AudienceRecord]     `record:"audience" rule:"fixed"`
	Modules   Optional[ModulesRecord]      `record:"modules"`
	CreatedAt Optional[Time]               `record:"created_at" rule:"past"`
}

// AudienceRecord is whom a framework is assigned to. ID is that of the group or the
// collection; nil for all users.
type AudienceRecord struct {
	Type FrameworkAudienceType `json:"type"`
	ID   *AnyRef               `json:"id,omitempty"`
	// Deleted says that the collection was deleted: no user is in the audience any more.
	Deleted bool `json:"deleted,omitempty"`
}

// ModulesRecord says which modules of a framework are on. Those that it leaves out
// are as they were, or as the API has them by default.
type ModulesRecord struct {
	Training  *bool `json:"training,omitempty"`
	Phishing  *bool `json:"phishing,omitempty"`
	Policies  *bool `json:"policies,omitempty"`
	Reporting *bool `json:"reporting,omitempty"`
}

// ResultRecord is a simulated mail to a user, and what became of it.
type ResultRecord struct {
	ID                     Ref[ResultKind]             `record:"id"`
	User                   Optional[Ref[UserKind]]     `record:"user" rule:"new,fixed"`
	Template               Optional[Ref[TemplateKind]] `record:"template" rule:"fixed"`
	TemplateName           Optional[TemplateName]      `record:"template_name" rule:"fixed"`
	SendAt                 Optional[Time]              `record:"send_at"`
	SentAt                 Optional[Time]              `record:"sent_at" rule:"past"`
	OpenedAt               Optional[*Time]             `record:"opened_at" rule:"past"`
	AttachmentOpenedAt     Optional[*Time]             `record:"attachment_opened_at" rule:"past"`
	ClickedAt              Optional[*Time]             `record:"clicked_at" rule:"past"`
	CredentialsSubmittedAt Optional[*Time]             `record:"credentials_submitted_at" rule:"past"`
	Reported               Optional[bool]              `record:"reported,omitzero"`
	ReportedAt             Optional[*Time]             `record:"reported_at" rule:"past"`
	AutomatedReason        Optional[*AutomatedReason]  `record:"automated_reason"`
	Failure                Optional[*string]           `record:"failure" rule:"max=2000"`
	FailedAt               Optional[*Time]             `record:"failed_at" rule:"past"`
	CreatedAt              Optional[Time]              `record:"created_at" rule:"past"`
}

// TemplateName is what names a template that was imported, in the place of its id,
// which is another one in every database.
type TemplateName struct {
	Name     string   `json:"name"`
	Language Language `json:"language"`
}

// SentEmailRecord is a mail that was sent to a user.
type SentEmailRecord struct {
	ID          Ref[MessageKind]        `record:"id"`
	User        Optional[Ref[UserKind]] `record:"user" rule:"new,fixed"`
	EventTime   Optional[Time]          `record:"event_time" row:"SentAt" rule:"new,past"`
	FromEmail   Optional[string]        `record:"from_email" rule:"new,filled,max=500"`
	Subject     Optional[string]        `record:"subject" rule:"new,max=2000"`
	SendMethod  Optional[SendMethod]    `record:"send_method" rule:"new"`
	MessageType Optional[MessageType]   `record:"message_type" rule:"new"`
}

// ExposureRecord is that a user's data was found in a breach. Its id is that of the
// line; the service names an exposure by its user and breach.
type ExposureRecord struct {
	ID          Ref[ExposureKind]       `record:"id"`
	User        Optional[Ref[UserKind]] `record:"user" rule:"new,fixed"`
	BreachName  Optional[string]        `record:"breach_name" rule:"new,fixed,filled,max=255"`
	FirstSeenAt Optional[Time]          `record:"first_seen_at" rule:"new,past"`
	NotifiedAt  Optional[*Time]         `record:"notified_at" rule:"past"`
	ResolvedAt  Optional[*Time]         `record:"resolved_at" rule:"past"`
	Severity    Optional[Severity]      `record:"severity"`
	DataClasses Optional[[]string]      `record:"data_classes" rule:"filled,max=100"`
}
