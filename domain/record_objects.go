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
//	new      an object that is not there yet needs it
//	fixed    it says the same as before of an object that is there
//	null     it may be null, which clears it
//	filled   it is not blank
//	name     it is a name: without control characters, and without white space around it
//	email    it is an email address
//	past     it is not in the future
//	max=N    it has N characters, or items, at the most
//
// The order of the fields is that in which an export writes them. A field has the name
// of the column in the row of package db that it is, but for the ID behind a reference;
// or the tag row has.

// Needs is part of each record. Missing names the first field that a new object
// needs and the record has not; it is empty where there is none.
type Needs struct{ Missing string }

// PartnerRecord is a managed-service provider.
type PartnerRecord struct {
	Needs
	ID        Ref[PartnerKind] `record:"id"`
	Name      Field[string]    `record:"name" rule:"new,filled,name,max=200"`
	CreatedAt Field[Time]      `record:"created_at" rule:"past"`
}

// CourseRecord is a course of the catalogue, which all clients share.
type CourseRecord struct {
	Needs
	ID            Ref[CourseKind] `record:"id"`
	Title         Field[string]   `record:"title" rule:"new,filled,name,max=200"`
	RenewalMonths Field[int]      `record:"renewal_months" rule:"min=0,max=1200"`
	// Titles are the title in the languages that the course is available in.
	Titles    Field[map[Language]string] `record:"titles" rule:"filled,name,max=200"`
	CreatedAt Field[Time]                `record:"created_at" rule:"past"`
}

// ClientRecord is a client. A new one without a program gets the foundational one.
type ClientRecord struct {
	Needs
	ID                Ref[ClientKind]         `record:"id"`
	Partner           Field[Ref[PartnerKind]] `record:"partner" rule:"new,fixed"`
	Name              Field[string]           `record:"name" rule:"new,filled,name,max=200"`
	Industry          Field[string]           `record:"industry" rule:"null,max=500"`
	ExternalID        Field[string]           `record:"external_id" rule:"null,max=500"`
	DarkWebMonitoring Field[bool]             `record:"dark_web_monitoring"`
	Program           Field[[]ProgramCourse]  `record:"program" rule:"max=200"`
	Archived          Field[bool]             `record:"archived,omitzero"`
	CreatedAt         Field[Time]             `record:"created_at" rule:"past"`
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
	Needs
	ID          Ref[AdminKind]          `record:"id"`
	Partner     Field[Ref[PartnerKind]] `record:"partner" rule:"fixed"`
	Client      Field[Ref[ClientKind]]  `record:"client" rule:"fixed"`
	Email       Field[string]           `record:"email" rule:"new,email,max=254"`
	Name        Field[string]           `record:"name" rule:"new,filled,name,max=200"`
	Role        Field[AdminRole]        `record:"role" rule:"new"`
	LastLoginAt Field[Time]             `record:"last_login_at" rule:"null,past"`
	CreatedAt   Field[Time]             `record:"created_at" rule:"past"`
}

// GroupRecord is a group that users are in. Each client has one for those who are
// kept by hand: a record that says manual is that one.
type GroupRecord struct {
	Needs
	ID        Ref[GroupKind]         `record:"id"`
	Client    Field[Ref[ClientKind]] `record:"client" rule:"new,fixed"`
	Name      Field[string]          `record:"name" rule:"new,filled,name,max=200"`
	Manual    Field[bool]            `record:"manual,omitzero" rule:"fixed"`
	CreatedAt Field[Time]            `record:"created_at" rule:"past"`
}

// UserRecord is a person that a client trains. Without a role it is classified,
// without a group it is in the client's manual one.
type UserRecord struct {
	Needs
	ID                Ref[UserKind]                `record:"id"`
	Client            Field[Ref[ClientKind]]       `record:"client" rule:"new,fixed"`
	Email             Field[string]                `record:"email" rule:"new,email,max=254"`
	FirstName         Field[string]                `record:"first_name" rule:"name,max=200"`
	LastName          Field[string]                `record:"last_name" rule:"name,max=200"`
	Department        Field[string]                `record:"department" rule:"null,max=500"`
	JobTitle          Field[string]                `record:"job_title" rule:"null,max=500"`
	ManagerEmail      Field[string]                `record:"manager_email" rule:"null,email,max=254"`
	Role              Field[Role]                  `record:"role"`
	PreferredLanguage Field[Language]              `record:"preferred_language"`
	CollectionIDs     Field[[]Ref[CollectionKind]] `record:"collection_ids" rule:"max=500"`
	// SendWelcomeEmail is taken where it is false only: an import sends no mail.
	SendWelcomeEmail Field[bool]           `record:"send_welcome_email"`
	Status           Field[UserStatus]     `record:"status"`
	Source           Field[UserSource]     `record:"source"`
	Group            Field[Ref[GroupKind]] `record:"group"`
	// Overrides are the fields that were set by hand, in the place of those that the
	// record otherwise makes so.
	Overrides Field[[]Override] `record:"overrides" rule:"max=8"`
	CreatedAt Field[Time]       `record:"created_at" rule:"past"`
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
	Needs
	ID          Ref[CollectionKind]    `record:"id"`
	Client      Field[Ref[ClientKind]] `record:"client" rule:"new,fixed"`
	Name        Field[string]          `record:"name" rule:"new,filled,name,max=200"`
	Description Field[string]          `record:"description" rule:"null,max=2000"`
	Members     Field[[]Ref[UserKind]] `record:"members" rule:"max=10000"`
	CreatedAt   Field[Time]            `record:"created_at" rule:"past"`
}

// PolicyRecord is a text of a client that an audience of its users is to sign.
type PolicyRecord struct {
	Needs
	ID          Ref[PolicyKind]        `record:"id"`
	Client      Field[Ref[ClientKind]] `record:"client" rule:"new,fixed"`
	Title       Field[string]          `record:"title" rule:"new,filled,name,max=200"`
	Description Field[string]          `record:"description" rule:"null,max=2000"`
	Version     Field[int]             `record:"version" rule:"min=1,max=2147483647"`
	ScopeType   Field[ScopeType]       `record:"scope_type"`
	ScopeID     Field[AnyRef]          `record:"scope_id"`
	// ScopeDeleted says that the collection was deleted: no user is asked any more.
	ScopeDeleted           Field[bool] `record:"scope_deleted,omitzero"`
	RequiresAcknowledgment Field[bool] `record:"requires_acknowledgment"`
	RenewalPeriodDays      Field[int]  `record:"renewal_period_days" rule:"min=1,max=36500"`
	ReviewedAt             Field[Time] `record:"reviewed_at" rule:"past"`
	Archived               Field[bool] `record:"archived,omitzero"`
	CreatedAt              Field[Time] `record:"created_at" rule:"past"`
}

// FrameworkAssignmentRecord is that a client follows a framework for an audience:
// all of its users where it names none.
type FrameworkAssignmentRecord struct {
	Needs
	ID        Ref[FrameworkAssignmentKind] `record:"id"`
	Client    Field[Ref[ClientKind]]       `record:"client" rule:"new,fixed"`
	Framework Field[string]                `record:"framework" rule:"new,fixed,filled,max=200"`
	Audience  Field[AudienceRecord]        `record:"audience" rule:"fixed"`
	Modules   Field[ModulesRecord]         `record:"modules"`
	CreatedAt Field[Time]                  `record:"created_at" rule:"past"`
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
	Needs
	ID                     Ref[ResultKind]          `record:"id"`
	User                   Field[Ref[UserKind]]     `record:"user" rule:"new,fixed"`
	Template               Field[Ref[TemplateKind]] `record:"template" rule:"fixed"`
	TemplateName           Field[TemplateName]      `record:"template_name" rule:"fixed"`
	SendAt                 Field[Time]              `record:"send_at"`
	SentAt                 Field[Time]              `record:"sent_at" rule:"past"`
	OpenedAt               Field[Time]              `record:"opened_at" rule:"null,past"`
	AttachmentOpenedAt     Field[Time]              `record:"attachment_opened_at" rule:"null,past"`
	ClickedAt              Field[Time]              `record:"clicked_at" rule:"null,past"`
	CredentialsSubmittedAt Field[Time]              `record:"credentials_submitted_at" rule:"null,past"`
	Reported               Field[bool]              `record:"reported,omitzero"`
	ReportedAt             Field[Time]              `record:"reported_at" rule:"null,past"`
	AutomatedReason        Field[AutomatedReason]   `record:"automated_reason" rule:"null"`
	Failure                Field[string]            `record:"failure" rule:"null,max=2000"`
	FailedAt               Field[Time]              `record:"failed_at" rule:"null,past"`
	CreatedAt              Field[Time]              `record:"created_at" rule:"past"`
}

// TemplateName is what names a template that was imported, in the place of its id,
// which is another one in every database.
type TemplateName struct {
	Name     string   `json:"name"`
	Language Language `json:"language"`
}

// SentEmailRecord is a mail that was sent to a user.
type SentEmailRecord struct {
	Needs
	ID          Ref[MessageKind]     `record:"id"`
	User        Field[Ref[UserKind]] `record:"user" rule:"new,fixed"`
	EventTime   Field[Time]          `record:"event_time" row:"SentAt" rule:"new,past"`
	FromEmail   Field[string]        `record:"from_email" rule:"new,filled,max=500"`
	Subject     Field[string]        `record:"subject" rule:"new,max=2000"`
	SendMethod  Field[SendMethod]    `record:"send_method" rule:"new"`
	MessageType Field[MessageType]   `record:"message_type" rule:"new"`
}

// ExposureRecord is that a user's data was found in a breach. Its id is that of the
// line; the service names an exposure by its user and breach.
type ExposureRecord struct {
	Needs
	ID          Ref[ExposureKind]    `record:"id"`
	User        Field[Ref[UserKind]] `record:"user" rule:"new,fixed"`
	BreachName  Field[string]        `record:"breach_name" rule:"new,fixed,filled,max=255"`
	FirstSeenAt Field[Time]          `record:"first_seen_at" rule:"new,past"`
	NotifiedAt  Field[Time]          `record:"notified_at" rule:"null,past"`
	ResolvedAt  Field[Time]          `record:"resolved_at" rule:"null,past"`
	Severity    Field[Severity]      `record:"severity"`
	DataClasses Field[[]string]      `record:"data_classes" rule:"filled,max=100"`
}
