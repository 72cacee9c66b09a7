package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Policy is a policy as v2 shows it.
type Policy struct {
	ID                     domain.PolicyID  `json:"id" doc:"Opaque id of the policy."`
	ClientID               domain.ClientID  `json:"client_id" doc:"The client that the policy belongs to."`
	Title                  string           `json:"title" doc:"The policy's title."`
	Description            *string          `json:"description" doc:"What the policy is about. Null where none was given."`
	Version                int              `json:"version" doc:"The current version. A signature of an earlier one does not count."`
	ScopeType              domain.ScopeType `json:"scope_type" doc:"Whose users are the audience: the client's (tenant), a group's (user_container) or a collection's."`
	ScopeID                domain.AnyRef    `json:"scope_id" doc:"Opaque id of the client, the group or the collection. It stays when that is deleted: then the audience is empty."`
	RequiresAcknowledgment bool             `json:"requires_acknowledgment" doc:"Whether the audience is asked to sign."`
	RenewalPeriodDays      int              `json:"renewal_period_days" doc:"How many days a signature stays valid."`
	AudienceUserCount      *int             `json:"audience_user_count" doc:"Number of active users in the audience. Null where no acknowledgment is required."`
	AcknowledgedCount      *int             `json:"acknowledged_count" doc:"Number of users in the audience who signed the current version within the renewal period. Null where no acknowledgment is required."`
	AcknowledgedPercentage *float64         `json:"acknowledged_percentage" doc:"Those who signed, in percent of the audience, 0 to 100; 0 for an empty audience. Null where no acknowledgment is required."`
	CreatedAt              domain.Time      `json:"created_at" doc:"When the policy was created."`
	UpdatedAt              domain.Time      `json:"updated_at" doc:"When the policy or its sign-off last changed."`
}

// PolicyUser is a user of a policy's audience as v2 shows it.
type PolicyUser struct {
	UserID         domain.UserID `json:"user_id" doc:"Opaque id of the user."`
	Email          string        `json:"email" format:"email" doc:"The user's address."`
	Name           string        `json:"name" doc:"The user's full name."`
	Acknowledged   bool          `json:"acknowledged" doc:"Whether the user signed the current version within the renewal period."`
	AcknowledgedAt *domain.Time  `json:"acknowledged_at" doc:"When the user signed. Null where acknowledged is false."`
	UpdatedAt      domain.Time   `json:"updated_at" since:"2.5" doc:"When the user's record or signature last changed: what updated_since goes by. A signature that expires is a change."`
}

// PolicyPath is the path of an operation on one policy.
type PolicyPath struct {
	ClientPath
	PolicyID domain.PolicyID `path:"policy_id" doc:"Opaque id of the policy."`
}

// The operations on policies.
var (
	ListPolicies = op.DeclareList[ListPoliciesInput, Policy](op.Meta{
		ID: "policies.list", Starred: true, Method: "GET", Path: "/clients/:client_id/policies",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the active policies of a client with their sign-off",
		Description: "Returns the active policies of a client, by their creation, with how many of the audience have " +
			"signed.",
		Columns: []string{"id", "title", "version", "audience_user_count", "acknowledged_percentage"},
	})
	ListPolicyUsers = op.DeclareList[ListPolicyUsersInput, PolicyUser](op.Meta{
		ID: "policies.users.list", Starred: true, Method: "GET", Path: "/clients/:client_id/policies/:policy_id/users",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the audience of a policy",
		Description: "Returns the active users of the policy's audience, by their creation, and whether each has " +
			"signed the current version within the renewal period.",
		Columns: []string{"user_id", "email", "name", "acknowledged_at"},
	})
	RemindPolicy = op.Declare[RemindPolicyInput, Reminded](op.Meta{
		ID: "policies.remind", Method: "POST", Path: "/clients/:client_id/policies/:policy_id/reminders",
		Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Remind those who have not signed a policy",
		Description: "Sends the standard reminder to everyone of the audience who has not signed. A policy can be " +
			"reminded of once a day (UTC); more often is 429.",
	})
)

// ListPoliciesInput asks for a page of a client's policies.
type ListPoliciesInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only policies that changed at or after this time. A signature that lapsed is a change."`
	}
}

// ListPolicyUsersInput asks for a page of a policy's audience.
type ListPolicyUsersInput struct {
	Path  PolicyPath
	Query struct {
		op.Paging
		Status       domain.SignFilter `query:"status" validate:"enum" default:"all" doc:"Only users who signed, or only those who have not."`
		UpdatedSince *domain.Time      `query:"updated_since" doc:"Only users whose record or signature changed at or after this time. A signature that lapsed is a change."`
	}
}

// RemindPolicyInput asks for reminders to sign a policy.
type RemindPolicyInput struct{ Path PolicyPath }

// Reminded says how many users are sent a reminder.
type Reminded struct {
	RecipientCount int `json:"recipient_count" doc:"Number of users who are sent the reminder."`
}
