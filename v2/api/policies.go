package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Policy is a policy as v2 shows it.
type Policy struct {
	ID                     domain.PolicyID  `json:"id" doc:"Opaque ID of the policy."`
	ClientID               domain.ClientID  `json:"client_id" doc:"The client that the policy belongs to."`
	Title                  string           `json:"title" doc:"The policy's title."`
	Description            *string          `json:"description" doc:"What the policy is about. Null if no description is set."`
	Version                int              `json:"version" doc:"The current version. Signatures of earlier versions do not count."`
	ScopeType              domain.ScopeType `json:"scope_type" doc:"The users in the audience: all users of the client (tenant), or the users of a group (user_container) or collection."`
	ScopeID                domain.AnyRef    `json:"scope_id" doc:"Opaque ID of the client, group or collection. If the group or collection is deleted, the ID remains and the audience is empty."`
	RequiresAcknowledgment bool             `json:"requires_acknowledgment" doc:"Whether users in the audience must sign the policy."`
	RenewalPeriodDays      int              `json:"renewal_period_days" doc:"Number of days for which a signature is valid."`
	AudienceUserCount      *int             `json:"audience_user_count" doc:"Number of active users in the audience. Null if requires_acknowledgment is false."`
	AcknowledgedCount      *int             `json:"acknowledged_count" doc:"Number of users in the audience who have signed the current version within the renewal period. Null if requires_acknowledgment is false."`
	AcknowledgedPercentage *float64         `json:"acknowledged_percentage" doc:"Percentage of the audience that has signed, from 0 to 100; 0 if the audience is empty. Null if requires_acknowledgment is false."`
	CreatedAt              domain.Time      `json:"created_at" doc:"When the policy was created."`
	UpdatedAt              domain.Time      `json:"updated_at" doc:"When the policy or its signatures last changed."`
}

// PolicyUser is a user of a policy's audience as v2 shows it.
type PolicyUser struct {
	UserID         domain.UserID `json:"user_id" doc:"Opaque ID of the user."`
	Email          string        `json:"email" format:"email" doc:"The user's email address."`
	Name           string        `json:"name" doc:"The user's full name."`
	Acknowledged   bool          `json:"acknowledged" doc:"Whether the user has signed the current version within the renewal period."`
	AcknowledgedAt *domain.Time  `json:"acknowledged_at" doc:"When the user signed the policy. Null if acknowledged is false."`
	UpdatedAt      domain.Time   `json:"updated_at" since:"2.5" doc:"When the user's record or signature last changed, including when the signature expired or a new policy version was published. updated_since filters by this time."`
}

// PolicyPath is the path of an operation on one policy.
type PolicyPath struct {
	ClientPath
	PolicyID domain.PolicyID `path:"policy_id" doc:"Opaque ID of the policy."`
}

// The operations on policies.
var (
	ListPolicies = op.DeclareList[ListPoliciesInput, Policy](op.Meta{
		ID: "policies.list", Starred: true, Method: "GET", Path: "/clients/:client_id/policies",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List policies",
		Description: "Returns the client's active policies in order of creation, each with the number of users who have signed it.",
		Columns:     []string{"id", "title", "version", "audience_user_count", "acknowledged_percentage"},
	})
	ListPolicyUsers = op.DeclareList[ListPolicyUsersInput, PolicyUser](op.Meta{
		ID: "policies.users.list", Starred: true, Method: "GET", Path: "/clients/:client_id/policies/:policy_id/users",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List a policy's users",
		Description: "Returns the active users in the policy's audience, in order of creation, and whether each has signed the current " +
			"version within the renewal period.",
		Columns: []string{"user_id", "email", "name", "acknowledged_at"},
	})
	RemindPolicy = op.Declare[RemindPolicyInput, Reminded](op.Meta{
		ID: "policies.remind", Method: "POST", Path: "/clients/:client_id/policies/:policy_id/reminders",
		Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Send policy reminders",
		Description: "Emails the standard reminder to every user in the audience who has not signed, at most once a day (UTC) per " +
			"policy. More frequent calls return 429.",
	})
)

// ListPoliciesInput asks for a page of a client's policies.
type ListPoliciesInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only policies that changed at or after this time. An expired signature counts as a change."`
	}
}

// ListPolicyUsersInput asks for a page of a policy's audience.
type ListPolicyUsersInput struct {
	Path  PolicyPath
	Query struct {
		op.Paging
		Status       domain.SignFilter `query:"status" validate:"enum" default:"all" doc:"Whether to return all users, only users who have signed or only users who have not."`
		UpdatedSince *domain.Time      `query:"updated_since" doc:"Only users whose record or signature changed at or after this time. Expired signatures and, for the whole audience, new policy versions count as changes."`
	}
}

// RemindPolicyInput asks for reminders to sign a policy.
type RemindPolicyInput struct{ Path PolicyPath }

// Reminded says how many users receive a reminder.
type Reminded struct {
	RecipientCount int `json:"recipient_count" doc:"Number of users who receive the reminder."`
}
