package v2

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Collection is a collection as v2 shows it.
type Collection struct {
	ID          domain.CollectionID `json:"id" doc:"Opaque id of the collection."`
	ClientID    domain.ClientID     `json:"client_id" doc:"The client that the collection belongs to."`
	Name        string              `json:"name" doc:"The collection's name, unique within the client."`
	Description *string             `json:"description" doc:"What the collection is for. Null where none was given."`
	MemberCount int                 `json:"member_count" doc:"Number of members, inactive users included."`
	CreatedBy   domain.Creator      `json:"created_by" doc:"Where the collection was made."`
	CreatedAt   domain.Time         `json:"created_at" doc:"When the collection was created."`
	UpdatedAt   domain.Time         `json:"updated_at" doc:"When the collection or its membership last changed."`
}

// Member is a member of a collection as v2 shows it.
type Member struct {
	UserID  domain.UserID `json:"user_id" doc:"Opaque id of the user."`
	Name    string        `json:"name" doc:"The user's full name."`
	Email   string        `json:"email" format:"email" doc:"The user's address."`
	AddedAt domain.Time   `json:"added_at" doc:"When the user became a member."`
}

func collectionOf(c domain.Collection) Collection {
	return Collection{
		ID: c.ID, ClientID: c.Client, Name: c.Name, Description: c.Description, MemberCount: c.Members,
		CreatedBy: c.CreatedBy, CreatedAt: domain.At(c.CreatedAt), UpdatedAt: domain.At(c.UpdatedAt),
	}
}

func memberOf(m domain.Member) Member {
	return Member{UserID: m.User, Name: m.Name, Email: m.Email, AddedAt: domain.At(m.AddedAt)}
}

// collectionPath is the path of an operation on one collection.
type collectionPath struct {
	clientPath
	CollectionID domain.CollectionID `path:"collection_id" doc:"Opaque id of the collection."`
}

func (a *API) declareCollections() {
	a.ListCollections = op.AddList(&a.Set, op.Meta{
		ID: "collections.list", Starred: true, Method: "GET", Path: "/clients/:client_id/collections", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List the collections of a client",
		Description: "Returns the collections of a client, by their creation, with their numbers of members.",
		Columns:     []string{"id", "name", "member_count"},
	}, a.listCollections, collectionOf)

	a.GetCollection = op.Add(&a.Set, op.Meta{
		ID: "collections.get", Starred: true, Method: "GET", Path: "/clients/:client_id/collections/:collection_id", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "Read a collection",
		Description: "Returns one collection with its number of members.",
	}, a.getCollection)

	a.CreateCollection = op.Add(&a.Set, op.Meta{
		ID: "collections.create", Method: "POST", Path: "/clients/:client_id/collections", Scope: domain.Write, Since: op.V2_2, Status: 201,
		Summary:     "Create a collection",
		Description: "Creates an empty collection. Names are unique within the client.", Fails: []domain.Code{domain.Conflict},
	}, a.createCollection)

	a.DeleteCollection = op.Add(&a.Set, op.Meta{
		ID: "collections.delete", Method: "DELETE", Path: "/clients/:client_id/collections/:collection_id", Scope: domain.Write, Since: op.V2_2, Status: 204,
		Summary: "Delete a collection",
		Description: "Deletes the collection; its users stay. Framework and policy assignments to it stay listed, and " +
			"nobody is in their audience any more.",
	}, a.deleteCollection)

	a.ListMembers = op.AddList(&a.Set, op.Meta{
		ID: "collections.members.list", Starred: true, Method: "GET", Path: "/clients/:client_id/collections/:collection_id/members", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "List the members of a collection",
		Description: "Returns the members of a collection, by when they were added.",
		Columns:     []string{"user_id", "name", "email"},
	}, a.listMembers, memberOf)

	a.AddMembers = op.Add(&a.Set, op.Meta{
		ID: "collections.members.add", Method: "POST", Path: "/clients/:client_id/collections/:collection_id/members", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Add users to a collection",
		Description: "Adds up to 500 users of the client, all of them or none; those who are members already are ignored. " +
			"New members are given the courses of the frameworks that are assigned to the collection.",
	}, a.addMembers)

	a.RemoveMember = op.Add(&a.Set, op.Meta{
		ID: "collections.members.remove", Method: "DELETE", Path: "/clients/:client_id/collections/:collection_id/members/:user_id", Scope: domain.Write, Since: op.V2_2, Status: 204,
		Summary:     "Remove a user from a collection",
		Description: "Removes the user from the collection. Courses that the user was given as a member stay.",
	}, a.removeMember)
}

// ListCollections asks for a page of a client's collections.
type ListCollections struct {
	Path  clientPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only collections that changed at or after this time."`
	}
}

func (a *API) listCollections(
	ctx context.Context, in *ListCollections, w domain.Window,
) (domain.Slice[domain.Collection], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Collection]{}, err
	}
	return t.Collections(ctx, bound(in.Query.UpdatedSince), w)
}

// GetCollection asks for one collection.
type GetCollection struct {
	Path collectionPath
}

func (a *API) getCollection(ctx context.Context, in *GetCollection) (*Collection, error) {
	_, k, err := a.collection(ctx, in.Path)
	if err != nil {
		return nil, err
	}
	return new(collectionOf(k)), nil
}

// collection finds a collection and its client.
func (a *API) collection(ctx context.Context, path collectionPath) (*db.Tenant, domain.Collection, error) {
	t, err := a.db.Tenant(ctx, path.ClientID)
	if err != nil {
		return nil, domain.Collection{}, err
	}
	k, err := t.Collection(ctx, path.CollectionID)
	return t, k, err
}

// CreateCollection asks for a new collection.
type CreateCollection struct {
	Path clientPath
	Body struct {
		Name        string  `json:"name" validate:"filled,max=200,name" doc:"The collection's name, unique within the client."`
		Description *string `json:"description,omitzero" validate:"omitnil,max=2000" doc:"What the collection is for."`
	}
}

func (a *API) createCollection(ctx context.Context, req *CreateCollection) (*Collection, error) {
	k := domain.Collection{
		ID: db.NewID[domain.CollectionKind](), Client: req.Path.ClientID, Name: req.Body.Name,
		Description: req.Body.Description, CreatedBy: domain.ByAPI,
	}
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, req.Path.ClientID)
		if err != nil {
			return err
		}
		k.CreatedAt, k.UpdatedAt = c.At, c.At
		return t.InsertCollection(ctx, c, k)
	})
	if err != nil {
		return nil, err
	}
	return new(collectionOf(k)), nil
}

// DeleteCollection asks for the end of a collection.
type DeleteCollection struct {
	Path collectionPath
}

func (a *API) deleteCollection(ctx context.Context, in *DeleteCollection) (*op.NoContent, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, in.Path.ClientID)
		if err != nil {
			return err
		}
		return t.DeleteCollection(ctx, c, in.Path.CollectionID)
	})
	return &op.NoContent{}, err
}

// ListMembers asks for a page of a collection's members.
type ListMembers struct {
	Path  collectionPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only members who joined, or whose record changed, at or after this time."`
	}
}

func (a *API) listMembers(ctx context.Context, in *ListMembers, w domain.Window) (domain.Slice[domain.Member], error) {
	t, k, err := a.collection(ctx, in.Path)
	if err != nil {
		return domain.Slice[domain.Member]{}, err
	}
	return t.Members(ctx, k, bound(in.Query.UpdatedSince), w)
}

// AddMembers asks for users to become members of a collection.
type AddMembers struct {
	Path collectionPath
	Body struct {
		UserIDs []domain.UserID `json:"user_ids" validate:"required,min=1,max=500" doc:"Users of the client. Those who are members already are ignored."`
	}
}

// AddedMembers says how many users became members.
type AddedMembers struct {
	AddedCount  int `json:"added_count" doc:"Number of users who became members. Those who were members already are not counted."`
	MemberCount int `json:"member_count" doc:"Number of members now."`
}

func (a *API) addMembers(ctx context.Context, req *AddMembers) (out *AddedMembers, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, k, err := a.collection(ctx, req.Path)
		if err != nil {
			return err
		}
		if err := c.ShareAudiences(ctx, t.ID); err != nil {
			return err
		}
		ids := req.Body.UserIDs
		found, err := t.LockUsers(ctx, c, ids)
		if err != nil {
			return err
		}
		if err := unknownItems("user_ids", ids, found, "is not a user of this client"); err != nil {
			return err
		}

		if k, err = t.LockCollection(ctx, c, k.ID); err != nil {
			return err
		}
		added, err := t.AddMembers(ctx, c, k.ID, ids)
		out = &AddedMembers{AddedCount: added, MemberCount: k.Members + added}
		return err
	})
	return out, err
}

// unknownItems reports the items of a list of ids that were not found, each by
// its place.
func unknownItems[K domain.Kind](field string, ids, found []domain.ID[K], message string) error {
	known := make(map[domain.ID[K]]bool, len(found))
	for _, id := range found {
		known[id] = true
	}
	var faults []domain.FieldError
	for i, id := range ids {
		if !known[id] {
			faults = append(faults, domain.FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Message: message})
		}
	}
	if faults == nil {
		return nil
	}
	return domain.ErrInvalidFields(faults)
}

// RemoveMember asks for a user to leave a collection.
type RemoveMember struct {
	Path struct {
		collectionPath
		UserID domain.UserID `path:"user_id" doc:"Opaque id of the user."`
	}
}

func (a *API) removeMember(ctx context.Context, req *RemoveMember) (*op.NoContent, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, k, err := a.collection(ctx, req.Path.collectionPath)
		if err != nil {
			return err
		}
		if _, err := t.LockUsers(ctx, c, []domain.UserID{req.Path.UserID}); err != nil {
			return err
		}
		return t.RemoveMember(ctx, c, k.ID, req.Path.UserID)
	})
	return &op.NoContent{}, err
}
