package v1compat

import (
	"net/http"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
)

// Policy is v1's form of a policy.
type Policy struct {
	ID                     idmap.Ref[domain.PolicyKind] `json:"id" doc:"Numeric ID of the policy."`
	Title                  string                       `json:"title" doc:"The policy's title."`
	Description            string                       `json:"description,omitempty" doc:"What the policy is about. Omitted if empty."`
	Version                int                          `json:"version" doc:"The current version. Signatures of earlier versions do not count."`
	ScopeType              domain.ScopeType             `json:"scope_type" doc:"The users in the audience: all users of the client (tenant), or the users of a group (user_container) or collection."`
	ScopeID                scopeRef                     `json:"scope_id" doc:"Numeric ID of the client, group or collection."`
	RequiresAcknowledgment bool                         `json:"requires_acknowledgment" doc:"Whether users in the audience must sign the policy."`
	RenewalPeriodDays      int                          `json:"renewal_period_days" doc:"Number of days for which a signature is valid."`
	CreatedDate            Time                         `json:"created_date" doc:"When the policy was created."`
	AudienceUserCount      *int                         `json:"audience_user_count,omitempty" doc:"Number of active users in the audience. Omitted if requires_acknowledgment is false."`
	AcknowledgedCount      *int                         `json:"acknowledged_count,omitempty" doc:"Number of users in the audience who have signed the current version within the renewal period. Omitted if requires_acknowledgment is false."`
	AcknowledgedPercentage *float64                     `json:"acknowledged_percentage,omitempty" doc:"Percentage of the audience that has signed, from 0 to 100. Omitted if requires_acknowledgment is false."`
}

// scopeRef is the number of a client, a group or a collection: the one of its three Refs that is not zero.
type scopeRef struct {
	Client     idmap.Ref[domain.ClientKind]
	Group      idmap.Ref[domain.GroupKind]
	Collection idmap.Ref[domain.CollectionKind]
}

// MarshalJSON writes the number of the group or the collection, if there is one, otherwise of the client.
func (s scopeRef) MarshalJSON() ([]byte, error) {
	switch {
	case !s.Group.ID.IsZero():
		return s.Group.MarshalJSON()
	case !s.Collection.ID.IsZero():
		return s.Collection.MarshalJSON()
	}
	return s.Client.MarshalJSON()
}

// JSONSchema implements openapi.Described.
func (s scopeRef) JSONSchema() string { return s.Client.JSONSchema() }

// PolicyUser is v1's form of a user in a policy's audience.
type PolicyUser struct {
	ID             UUID[domain.UserKind] `json:"id" doc:"UUID of the user."`
	Email          string                `json:"email" doc:"The user's email address."`
	Name           string                `json:"name" doc:"The user's full name."`
	Acknowledged   bool                  `json:"acknowledged" doc:"Whether the user has signed the current version within the renewal period."`
	AcknowledgedAt *Time                 `json:"acknowledged_at,omitempty" doc:"When the user signed the policy. Omitted if acknowledged is false."`
}

type listPolicies struct {
	Path  clientPath
	Query struct{ upTo1000 }
}

type listPolicyUsers struct {
	Path struct {
		clientPath
		PolicyID idmap.Ref[domain.PolicyKind] `path:"policy_id" doc:"Numeric ID of the policy."`
	}
	Query struct {
		upTo1000
		Status domain.SignFilter `query:"status" validate:"enum" default:"all" doc:"Whether to return all users, only users who have signed or only users who have not."`
	}
}

// addPolicyRoutes adds the routes of policies and their users.
func (f *Facade) addPolicyRoutes() {
	addList[listPolicies](f, Meta{
		ID: "policies", Method: "GET", Path: "/clients/:client_id/policies", Status: http.StatusOK,
		Summary:     "Get Policies",
		Description: "Returns the client's active policies in order of creation, each with the number of users who have signed it.",
	}, api.ListPolicies, nil, toPolicy, nil)
	addList(f, Meta{
		ID: "policy-users", Method: "GET", Path: "/clients/:client_id/policies/:policy_id/users", Status: http.StatusOK,
		Summary:     "Get Policy Users",
		Description: "Returns the users in the policy's audience in order of creation and indicates whether each user has signed.",
		Fails:       []int{http.StatusNotFound},
	}, api.ListPolicyUsers, fillListPolicyUsers, toPolicyUser, nil)
}

// toPolicy gives the policy the scope of one of the three kinds: RefAs returns the zero id for the other two.
func toPolicy(p api.Policy) Policy {
	client, _ := domain.RefAs[domain.ClientKind](p.ScopeID)
	group, _ := domain.RefAs[domain.GroupKind](p.ScopeID)
	collection, _ := domain.RefAs[domain.CollectionKind](p.ScopeID)
	return Policy{
		ID: idmap.RefTo(p.ID), Title: p.Title, Description: domain.OrZero(p.Description), Version: p.Version,
		ScopeType: p.ScopeType, ScopeID: scopeRef{idmap.RefTo(client), idmap.RefTo(group), idmap.RefTo(collection)},
		RequiresAcknowledgment: p.RequiresAcknowledgment, RenewalPeriodDays: p.RenewalPeriodDays,
		CreatedDate:       at(p.CreatedAt),
		AudienceUserCount: p.AudienceUserCount, AcknowledgedCount: p.AcknowledgedCount,
		AcknowledgedPercentage: p.AcknowledgedPercentage,
	}
}

func fillListPolicyUsers(in *listPolicyUsers, out *api.ListPolicyUsersInput) {
	out.Query.Status = in.Query.Status
}

func toPolicyUser(u api.PolicyUser) PolicyUser {
	out := PolicyUser{ID: uuidOf(u.UserID), Email: u.Email, Name: u.Name, Acknowledged: u.Acknowledged}
	if u.AcknowledgedAt != nil {
		signed := at(*u.AcknowledgedAt)
		out.AcknowledgedAt = &signed
	}
	return out
}
