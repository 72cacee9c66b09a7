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
	ID          idmap.Ref[domain.CollectionKind] `json:"id" doc:"Numeric ID of the collection."`
	Name        string                           `json:"name" doc:"The collection's name, unique within the client."`
	Description string                           `json:"description,omitempty" doc:"What the collection is for. Omitted if empty."`
	MemberCount int                              `json:"member_count" doc:"Number of members."`
	CreatedDate Time                             `json:"created_date" doc:"When the collection was created."`
}

// CollectionMember is v1's form of a member of a collection.
type CollectionMember struct {
	UserInfimaID UUID[domain.UserKind] `json:"user_infima_id" doc:"UUID of the user."`
	Name         string                `json:"name" doc:"The user's full name."`
	Email        string                `json:"email" doc:"The user's email address."`
}

// collectionPath is the path of a route on one collection.
type collectionPath struct {
	clientPath
	CollectionID idmap.Ref[domain.CollectionKind] `path:"collection_id" doc:"Numeric ID of the collection."`
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
		UserInfimaID string `json:"user_infima_id" validate:"filled" doc:"UUID of one of the client's users."`
	}
}

type removeMember struct {
	Path struct {
		collectionPath
		UserID UUID[domain.UserKind] `path:"user_id" doc:"UUID of the user, in uppercase or lowercase."`
	}
}

// addCollectionRoutes adds the routes of collections and their members.
func (f *Facade) addCollectionRoutes() {
	const collections = "/clients/:client_id/collections"
	addList[listCollections](f, Meta{
		ID: "collections", Method: "GET", Path: collections, Status: http.StatusOK, Summary: "Get Collections",
		Description: "Returns the client's collections in order of creation.",
	}, api.ListCollections, nil, toCollection, nil)

	addCall(f, Meta{
		ID: "create-collection", Method: "POST", Path: collections, Status: http.StatusCreated,
		Summary:     "Create Collection",
		Description: "Creates an empty collection. The name must be unique within the client.",
		Fails:       []int{http.StatusConflict, http.StatusRequestEntityTooLarge},
	}, api.CreateCollection, fillCreateCollection, toCreatedCollection, nil)

	addList[listMembers](f, Meta{
		ID: "collection-members", Method: "GET", Path: collections + "/:collection_id/members", Status: http.StatusOK,
		Summary:     "Get Collection Members",
		Description: "Returns the members in the order they were added.",
		Fails:       []int{http.StatusNotFound},
	}, api.ListMembers, nil, toMember, nil)

	addCall(f, Meta{
		ID: "add-collection-member", Method: "POST", Path: collections + "/:collection_id/members", Status: http.StatusOK,
		Summary:     "Add Collection Member",
		Description: "Adds the user to the collection and removes the user from every other collection of the client.",
		Fails:       []int{http.StatusNotFound, http.StatusRequestEntityTooLarge},
		Fields:      map[string]string{"user_id": "user_infima_id"}, Successor: api.AddMembers,
	}, api.MoveMember, fillAddMember, toAdded, nil)

	addCall[removeMember](f, Meta{
		ID: "remove-collection-member", Method: "DELETE", Path: collections + "/:collection_id/members/:user_id",
		Status:      http.StatusOK,
		Summary:     "Remove Collection Member",
		Description: "Removes the user from the collection.",
		Fails:       []int{http.StatusNotFound},
	}, api.RemoveMember, nil, toRemoved, nil)
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

func fillCreateCollection(in *createCollection, out *api.CreateCollectionInput) {
	out.Body.Name = in.Body.Name
	out.Body.Description = text(in.Body.Description)
}

func toMember(m api.Member) CollectionMember {
	return CollectionMember{UserInfimaID: uuidOf(m.UserID), Name: m.Name, Email: m.Email}
}

// fillAddMember sets the user to move, as in v1 a user is in at most one collection. A text that is no UUID becomes the
// zero id, which no user has; a blank text stays nil, which v2 refuses.
func fillAddMember(in *addMember, out *api.MoveMemberInput) {
	if strings.TrimSpace(in.Body.UserInfimaID) != "" {
		var user UUID[domain.UserKind]
		_ = user.UnmarshalText([]byte(in.Body.UserInfimaID))
		out.Body.UserID = &user.ID
	}
}
