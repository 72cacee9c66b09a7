package api

import (
	"time"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// V1Operations are the operations that only version 1 needs. They are not part of version 2's API, and are
// deleted with version 1.
var V1Operations = []op.Declaration{SendToUser, MoveMember, SentEmails, SentResults, OldReports, Reachable}

// The operations that only version 1 needs.
var (
	SendToUser = op.Declare[SendToUserInput, SentToUser](op.Meta{
		ID: "v1.send", Audited: SendPhishing.Meta().ID, Tag: "phishing", Method: "POST", Path: "/sendphishing", Scope: domain.Write, Since: op.V2_0, Status: 200,
		Summary: "Send a simulation to one user",
	})
	MoveMember = op.Declare[MoveMemberInput, op.NoContent](op.Meta{
		ID: "v1.move", Audited: AddMembers.Meta().ID, Tag: "collections", Method: "POST",
		Path: "/clients/:client_id/collections/:collection_id/members", Scope: domain.Write, Since: op.V2_0, Status: 200,
		Summary: "Move a user to a collection",
	})
	SentEmails = op.DeclareList[SentEmailsInput, AddressedEmail](op.Meta{
		ID: "v1.emails", Tag: "users", Method: "POST", Path: "/sentemails", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List emails sent to a user or address",
	})
	SentResults = op.DeclareList[SentResultsInput, PhishingResult](op.Meta{
		ID: "v1.results", Tag: "phishing", Method: "GET", Path: "/users/:user_id/phishing", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List a user's phishing results",
	})
	OldReports = op.DeclareList[OldReportsInput, Report](op.Meta{
		ID: "v1.reports", Tag: "reports", Method: "GET", Path: "/clients/:client_id/reports", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List reports, oldest first",
	})
	Reachable = op.Declare[ReachableInput, Reached](op.Meta{
		ID: "v1.reachable", Tag: "clients", Method: "POST", Path: "/reachable", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List accessible objects",
	})
)

// SendToUserInput asks for a simulated email to one user, of any client.
type SendToUserInput struct {
	Body struct {
		UserIDs    []domain.UserID              `json:"user_ids" validate:"required,min=1,max=1"` // named as in SendPhishingInput
		TemplateID *domain.TemplateID           `json:"template_id" validate:"required"`
		SendAt     domain.Optional[domain.Time] `json:"send_at,omitzero"`
	}

	// Client is the user's client; sending sets it.
	Client domain.ClientID `json:"-"`
}

// SentToUser is a user who will receive a simulated email, and when.
type SentToUser struct {
	ID       domain.UserID   `json:"id"`
	ClientID domain.ClientID `json:"client_id"`
	SendAt   domain.Time     `json:"send_at"`
}

// MoveMemberInput asks to add a user to a collection and to remove the user from the client's other collections.
type MoveMemberInput struct {
	Path CollectionPath
	Body struct {
		UserID *domain.UserID `json:"user_id" validate:"required"`
	}
}

// SentEmailsInput asks for a page of the emails that were sent to a user within 30 days, newest first.
type SentEmailsInput struct {
	Query struct{ op.Paging }
	Body  struct {
		// UserID or, without it, Email selects the emails. Users of several clients may have the same email.
		UserID *domain.UserID `json:"user_id"`
		Email  string         `json:"email"`
		// MessageTypes selects types of emails; empty means all.
		MessageTypes []domain.MessageType `json:"message_types"`
		// Start is the start of the 30 days; nil means the last 30.
		Start *domain.Time `json:"start"`
	}

	// User is the user whose emails are listed, zero for several. Since and Until are the results of Period. Reading
	// sets all three.
	User         domain.UserID `json:"-"`
	Since, Until *domain.Time  `json:"-"`
}

// emailDays is the number of days of a request for emails (decisions 5.13).
const emailDays = 30

// AddressedEmail is the record of an email with its ID and that of its user, as a list may have emails of several users.
type AddressedEmail struct {
	SentEmail
	MessageID domain.MessageID `json:"message_id"`
	UserID    domain.UserID    `json:"user_id"`
}

// Period returns the start and the end of the requested 30 days. Without a requested start these are the last 30 days,
// and until is nil. until is also nil if the end would be after the year 9999.
func (in *SentEmailsInput) Period(now time.Time) (since, until *domain.Time) {
	if in.Body.Start == nil {
		return &domain.Time{Time: now.AddDate(0, 0, -emailDays)}, nil
	}
	end := in.Body.Start.Time.AddDate(0, 0, emailDays)
	if end.Year() > 9999 {
		return in.Body.Start, nil
	}
	return in.Body.Start, &domain.Time{Time: end}
}

// SentResultsInput asks for a page of the simulated emails that were sent to a user, newest first.
type SentResultsInput struct {
	Path  UserPath
	Query struct{ op.Paging }

	// Client is the user's client; reading sets it.
	Client domain.ClientID `json:"-"`
}

// OldReportsInput asks for a page of a client's reports, the oldest first.
type OldReportsInput struct {
	Path  ClientPath
	Query struct{ op.Paging }
}

// MaxReachable is the maximum number of objects in a call of Reachable.
const MaxReachable = 1000

// ReachableInput asks to which of some objects of one kind the caller has access.
type ReachableInput struct {
	Body struct {
		Kind ReachableKind `json:"kind" validate:"required,enum"`
		// IDs are UUIDs; objects with them need not exist.
		IDs [][16]byte `json:"ids" validate:"max=1000"`
	}
}

// ReachableKind is a kind of objects that both versions name, by its noun.
type ReachableKind string

// Values lists the kinds (decisions 11.3).
func (ReachableKind) Values() []string {
	return []string{
		domain.ClientID{}.Noun(), domain.UserID{}.Noun(), domain.AdminID{}.Noun(), domain.CollectionID{}.Noun(),
		domain.PolicyID{}.Noun(), domain.ReportID{}.Noun(), domain.TemplateID{}.Noun(), domain.GroupID{}.Noun(),
	}
}

// Reached are the objects to which the caller has access.
type Reached struct {
	// IDs holds the requested ids to which the caller has access. Objects that do not exist, were archived or are of
	// another kind are missing too.
	IDs map[[16]byte]bool `json:"-"`
}
