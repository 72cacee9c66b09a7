package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Collection is a collection as v2 shows it.
type Collection struct {
	ID          domain.CollectionID `json:"id" doc:"Opaque ID of the collection."`
	ClientID    domain.ClientID     `json:"client_id" doc:"The client that the collection belongs to."`
	Name        string              `json:"name" doc:"The collection's name, unique within the client."`
	Description *string             `json:"description" doc:"What the collection is for. Null if no description is set."`
	MemberCount int                 `json:"member_count" doc:"Number of members, including inactive users."`
	CreatedBy   domain.Creator      `json:"created_by" doc:"Where the collection was created."`
	CreatedAt   domain.Time         `json:"created_at" doc:"When the collection was created."`
	UpdatedAt   domain.Time         `json:"updated_at" doc:"When the collection or its membership last changed."`
}

// Member is a member of a collection as v2 shows it.
type Member struct {
	UserID    domain.UserID `json:"user_id" doc:"Opaque ID of the user."`
	Name      string        `json:"name" doc:"The user's full name."`
	Email     string        `json:"email" format:"email" doc:"The user's email address."`
	AddedAt   domain.Time   `json:"added_at" doc:"When the user became a member."`
	UpdatedAt domain.Time   `json:"updated_at" since:"2.5" doc:"When the user joined the collection or the user's record last changed, whichever is later. updated_since filters by this time."`
}

// CollectionPath is the path of an operation on one collection.
type CollectionPath struct {
	ClientPath
	CollectionID domain.CollectionID `path:"collection_id" doc:"Opaque ID of the collection."`
}

// The operations on collections and their members.
var (
	ListCollections = op.DeclareList[ListCollectionsInput, Collection](op.Meta{
		ID: "collections.list", Starred: true, Method: "GET", Path: "/clients/:client_id/collections", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List collections",
		Description: "Returns the client's collections in order of creation, each with its member count.",
		Columns:     []string{"id", "name", "member_count"},
	})
	GetCollection = op.Declare[GetCollectionInput, Collection](op.Meta{
		ID: "collections.get", Starred: true, Method: "GET", Path: "/clients/:client_id/collections/:collection_id", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "Get a collection",
		Description: "Returns the collection with its member count.",
	})
	CreateCollection = op.Declare[CreateCollectionInput, Collection](op.Meta{
		ID: "collections.create", Method: "POST", Path: "/clients/:client_id/collections", Scope: domain.Write, Since: op.V2_2, Status: 201,
		Summary:     "Create a collection",
		Description: "Creates an empty collection. The name must be unique within the client.", Fails: []domain.Code{domain.Conflict},
	})
	UpdateCollection = op.Declare[UpdateCollectionInput, Collection](op.Meta{
		ID: "collections.update", Starred: true, Method: "PATCH", Path: "/clients/:client_id/collections/:collection_id", Scope: domain.Write, Since: op.V2_5, Status: 200,
		Summary:     "Update a collection",
		Description: "Changes only the fields that you send; members and assignments stay the same. Send at least one field.", Fails: []domain.Code{domain.Conflict},
	})
	DeleteCollection = op.Declare[DeleteCollectionInput, op.NoContent](op.Meta{
		ID: "collections.delete", Method: "DELETE", Path: "/clients/:client_id/collections/:collection_id", Scope: domain.Write, Since: op.V2_2, Status: 204,
		Summary: "Delete a collection",
		Description: "Deletes the collection but not its users. Framework and policy assignments to the collection remain, with an empty " +
			"audience.",
	})
	ListMembers = op.DeclareList[ListMembersInput, Member](op.Meta{
		ID: "collections.members.list", Starred: true, Method: "GET", Path: "/clients/:client_id/collections/:collection_id/members", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List collection members",
		Description: "Returns the members in the order they were added.",
		Columns:     []string{"user_id", "name", "email"},
	})
	AddMembers = op.Declare[AddMembersInput, AddedMembers](op.Meta{
		ID: "collections.members.add", Method: "POST", Path: "/clients/:client_id/collections/:collection_id/members", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Add collection members",
		Description: "Adds up to 500 of the client's users, ignoring existing members; if any user is unknown, no users are added. New members " +
			"receive the courses of every framework assigned to the collection.",
	})
	RemoveMember = op.Declare[RemoveMemberInput, op.NoContent](op.Meta{
		ID: "collections.members.remove", Method: "DELETE", Path: "/clients/:client_id/collections/:collection_id/members/:user_id", Scope: domain.Write, Since: op.V2_2, Status: 204,
		Summary:     "Remove a collection member",
		Description: "Removes the user from the collection. Courses assigned because of the membership remain assigned.",
	})
)

// ListCollectionsInput asks for a page of a client's collections.
type ListCollectionsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only collections that changed at or after this time."`
	}
}

// GetCollectionInput asks for one collection.
type GetCollectionInput struct{ Path CollectionPath }

// CreateCollectionInput asks for a new collection.
type CreateCollectionInput struct {
	Path ClientPath
	Body struct {
		Name        string  `json:"name" validate:"filled,max=200,name" doc:"The collection's name, unique within the client."`
		Description *string `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the collection is for."`
	}
}

// UpdateCollectionInput asks for changes to a collection.
type UpdateCollectionInput struct {
	Path CollectionPath
	Body struct {
		Name        domain.Optional[string]  `json:"name,omitzero" validate:"omitnil,filled,max=200,name" doc:"The new name, unique within the client."`
		Description domain.Optional[*string] `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the collection is for. Null clears it."`
	}
}

// DeleteCollectionInput asks to delete a collection.
type DeleteCollectionInput struct{ Path CollectionPath }

// ListMembersInput asks for a page of a collection's members.
type ListMembersInput struct {
	Path  CollectionPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only members who joined, or whose user record changed, at or after this time."`
	}
}

// AddMembersInput asks to add users to a collection.
type AddMembersInput struct {
	Path CollectionPath
	Body struct {
		UserIDs []domain.UserID `json:"user_ids" validate:"required,min=1,max=500" doc:"IDs of the users to add. Existing members are ignored."`
	}
}

// AddedMembers says how many users became members.
type AddedMembers struct {
	AddedCount  int `json:"added_count" doc:"Number of users who became members. Existing members are not counted."`
	MemberCount int `json:"member_count" doc:"Current number of members."`
}

// RemoveMemberInput asks to remove a user from a collection.
type RemoveMemberInput struct {
	Path struct {
		CollectionPath
		UserID domain.UserID `path:"user_id" doc:"Opaque ID of the user."`
	}
}
