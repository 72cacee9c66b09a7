package v1compat

import (
	"net/http"
	"strings"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// Collection is v1's form of a collection.
type Collection struct {
	ID          idmap.Ref[domain.CollectionKind] `json:"id" doc:"Number of the collection."`
	Name        string                           `json:"name" doc:"The collection's name, unique within the client."`
	Description string                           `json:"description,omitempty" doc:"What the collection is for. Left out where it is empty."`
	MemberCount int                              `json:"member_count" doc:"Number of members."`
	CreatedDate Time                             `json:"created_date" doc:"When the collection was created."`
}

// CollectionMember is v1's form of a member of a collection.
type CollectionMember struct {
	UserInfimaID UUID[domain.UserKind] `json:"user_infima_id" doc:"UUID of the user."`
	Name         string                `json:"name" doc:"The user's full name."`
	Email        string                `json:"email" doc:"The user's address."`
}

// collectionPath is the path of a route on one collection.
type collectionPath struct {
	clientPath
	CollectionID idmap.Ref[domain.CollectionKind] `path:"collection_id" doc:"Number of the collection."`
}

type listCollections struct {
	Path  clientPath
	Query struct{ upTo1000 }
}

type createCollection struct {
	Path clientPath
	Body struct {
		Name        string `json:"name" validate:"filled,max=200,name" doc:"The collection's name, unique within the client."`
		Description string `json:"description,omitzero" validate:"max=2000" doc:"What the collection is for."`
	}
}

type listMembers struct {
	Path  collectionPath
	Query struct{ upTo1000 }
}

type addMember struct {
	Path collectionPath
	Body struct {
		UserInfimaID string `json:"user_infima_id" validate:"filled" doc:"UUID of a user of the same client."`
	}
}

type removeMember struct {
	Path struct {
		collectionPath
		UserID UUID[domain.UserKind] `path:"user_id" doc:"UUID of the user, in any case."`
	}
}

// collectionRoutes adds the routes of collections and their members.
func (f *Facade) collectionRoutes() {
	const collections = "/clients/:client_id/collections"
	list(f, Meta{
		ID: "collections", Method: "GET", Path: collections, Status: http.StatusOK, Summary: "Get Collections",
		Description: "Returns the collections of a client, by their creation.",
	}, api.ListCollections, fromListCollections, toCollection)

	call(f, Meta{
		ID: "create-collection", Method: "POST", Path: collections, Status: http.StatusCreated,
		Summary:     "Create Collection",
		Description: "Creates an empty collection. Names are unique within the client.",
		Fails:       []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
	}, api.CreateCollection, fromCreateCollection, toCreatedCollection)

	list(f, Meta{
		ID: "collection-members", Method: "GET", Path: collections + "/:collection_id/members", Status: http.StatusOK,
		Summary:     "Get Collection Members",
		Description: "Returns the members of a collection, by when they were added.",
		Fails:       []int{http.StatusNotFound},
	}, api.ListMembers, fromListMembers, toMember)

	callNext(f, Meta{
		ID: "add-collection-member", Method: "POST", Path: collections + "/:collection_id/members", Status: http.StatusOK,
		Summary: "Add Collection Member",
		Description: "Makes the user a member of the collection. The user leaves every other collection of the " +
			"client.",
		Fails:  []int{http.StatusNotFound, http.StatusRequestEntityTooLarge},
		Fields: map[string]string{"user_id": "user_infima_id"}, Successor: api.AddMembers,
	}, api.MoveMember, fromAddMember, toAdded, nextAddMember)

	call(f, Meta{
		ID: "remove-collection-member", Method: "DELETE", Path: collections + "/:collection_id/members/:user_id",
		Status:      http.StatusOK,
		Summary:     "Remove Collection Member",
		Description: "Removes the user from the collection.",
		Fails:       []int{http.StatusNotFound},
	}, api.RemoveMember, fromRemoveMember, toRemoved)
}

// v2 returns the ids for v2.
func (p collectionPath) v2() (domain.ClientID, domain.CollectionID) {
	return p.ClientID.ID, p.CollectionID.ID
}

func fromListCollections(in *listCollections) (*api.ListCollectionsInput, *op.Paging) {
	out := &api.ListCollectionsInput{}
	out.Path.ClientID = in.Path.ClientID.ID
	return out, &out.Query.Paging
}

func toCollection(c api.Collection) Collection {
	return Collection{
		ID: idmap.RefTo(c.ID), Name: c.Name, Description: domain.OrZero(c.Description), MemberCount: c.MemberCount,
		CreatedDate: at(c.CreatedAt),
	}
}

func toCreatedCollection(c *api.Collection) *Collection {
	out := toCollection(*c)
	return &out
}

func toAdded(*op.NoContent) *Done { return &Done{Status: "added"} }

func toRemoved(*op.NoContent) *Done { return &Done{Status: "removed"} }

func fromCreateCollection(in *createCollection) *api.CreateCollectionInput {
	out := &api.CreateCollectionInput{}
	out.Path.ClientID = in.Path.ClientID.ID
	out.Body.Name = in.Body.Name
	out.Body.Description = text(in.Body.Description)
	return out
}

func fromListMembers(in *listMembers) (*api.ListMembersInput, *op.Paging) {
	out := &api.ListMembersInput{}
	out.Path.ClientID, out.Path.CollectionID = in.Path.v2()
	return out, &out.Query.Paging
}

func toMember(m api.Member) CollectionMember {
	return CollectionMember{UserInfimaID: uuidOf(m.UserID), Name: m.Name, Email: m.Email}
}

// fromAddMember moves the user, as in v1 a user is in at most one collection. A text that is no UUID becomes the zero
// id, which no user has; a blank text stays nil, which v2 refuses.
func fromAddMember(in *addMember) *api.MoveMemberInput {
	out := &api.MoveMemberInput{}
	out.Path.ClientID, out.Path.CollectionID = in.Path.v2()
	if strings.TrimSpace(in.Body.UserInfimaID) != "" {
		var user UUID[domain.UserKind]
		_ = user.UnmarshalText([]byte(in.Body.UserInfimaID))
		out.Body.UserID = &user.ID
	}
	return out
}

// nextAddMember returns the path only: v2 has the users in the body.
func nextAddMember(in *api.MoveMemberInput) any {
	out := &api.AddMembersInput{}
	out.Path.ClientID, out.Path.CollectionID = in.Path.ClientID, in.Path.CollectionID
	return out
}

func fromRemoveMember(in *removeMember) *api.RemoveMemberInput {
	out := &api.RemoveMemberInput{}
	out.Path.ClientID, out.Path.CollectionID = in.Path.v2()
	out.Path.UserID = in.Path.UserID.ID
	return out
}
