package v2

import (
	"context"
	"fmt"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

func collectionOf(c domain.Collection) api.Collection {
	return api.Collection{
		ID: c.ID, ClientID: c.Client, Name: c.Name, Description: c.Description, MemberCount: c.Members,
		CreatedBy: c.CreatedBy, CreatedAt: domain.At(c.CreatedAt), UpdatedAt: domain.At(c.UpdatedAt),
	}
}

func memberOf(m domain.Member) api.Member {
	return api.Member{
		UserID: m.User, Name: m.Name, Email: m.Email, AddedAt: domain.At(m.AddedAt), UpdatedAt: domain.At(m.UpdatedAt),
	}
}

func (a *API) listCollections(
	ctx context.Context, in *api.ListCollectionsInput, w domain.Window,
) (domain.Slice[domain.Collection], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Collection]{}, err
	}
	return t.Collections(ctx, toTime(in.Query.UpdatedSince), w)
}

func (a *API) getCollection(ctx context.Context, in *api.GetCollectionInput) (*api.Collection, error) {
	_, k, err := a.findCollection(ctx, in.Path)
	return new(collectionOf(k)), err
}

// findCollection returns a collection with its client; NotFound if either does not exist or the caller has no access.
func (a *API) findCollection(ctx context.Context, path api.CollectionPath) (*db.Tenant, domain.Collection, error) {
	t, err := a.db.Tenant(ctx, path.ClientID)
	if err != nil {
		return nil, domain.Collection{}, err
	}
	k, err := t.Collection(ctx, path.CollectionID)
	return t, k, err
}

func (a *API) createCollection(ctx context.Context, req *api.CreateCollectionInput) (*api.Collection, error) {
	k := domain.Collection{
		ID: db.NewID[domain.CollectionKind](), Client: req.Path.ClientID, Name: req.Body.Name,
		Description: req.Body.Description, CreatedBy: domain.ByAPI,
	}
	err := a.changeTenant(ctx, req.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		k.CreatedAt, k.UpdatedAt = c.At, c.At
		return t.InsertCollection(ctx, c, k)
	})
	return new(collectionOf(k)), err
}

// updateCollection locks the members only if a name is given: their records show the name, so their change times move
// with it.
func (a *API) updateCollection(ctx context.Context, req *api.UpdateCollectionInput) (*api.Collection, error) {
	var k domain.Collection
	err := a.changeTenant(ctx, req.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) (err error) {
		var members []domain.UserID
		if req.Body.Name.Given {
			if members, err = t.LockMembers(ctx, c, req.Path.CollectionID); err != nil {
				return err
			}
		}
		if k, err = t.LockCollection(ctx, c, req.Path.CollectionID); err != nil {
			return err
		}
		renamed := domain.Apply(req.Body.Name, &k.Name)
		if described := domain.ApplyNullable(req.Body.Description, &k.Description); !renamed && !described {
			return nil
		}
		if renamed {
			t.TouchUsers(c, members)
		}
		return t.UpdateCollection(ctx, c, &k)
	})
	return new(collectionOf(k)), err
}

func (a *API) deleteCollection(ctx context.Context, in *api.DeleteCollectionInput) (*op.NoContent, error) {
	err := a.changeTenant(ctx, in.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		return t.DeleteCollection(ctx, c, in.Path.CollectionID)
	})
	return &op.NoContent{}, err
}

func (a *API) listMembers(ctx context.Context, in *api.ListMembersInput, w domain.Window) (domain.Slice[domain.Member], error) {
	t, k, err := a.findCollection(ctx, in.Path)
	if err != nil {
		return domain.Slice[domain.Member]{}, err
	}
	return t.Members(ctx, k, toTime(in.Query.UpdatedSince), w)
}

func (a *API) addMembers(ctx context.Context, req *api.AddMembersInput) (out *api.AddedMembers, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, k, err := a.findCollection(ctx, req.Path)
		if err != nil {
			return err
		}
		if err := c.LockAudiencesShared(ctx, t.ID); err != nil { // first of the locks; AddMembers enrolls the users
			return err
		}
		ids := req.Body.UserIDs
		found, err := t.LockUsers(ctx, c, ids)
		if err != nil {
			return err
		}
		if err := rejectUnknown("user_ids", ids, found, "is not a user of this client"); err != nil {
			return err
		}

		if k, err = t.LockCollection(ctx, c, k.ID); err != nil { // locked after the users, and read again
			return err
		}
		added, err := t.AddMembers(ctx, c, k.ID, ids)
		out = &api.AddedMembers{AddedCount: added, MemberCount: k.Members + added}
		return err
	})
	return out, err
}

// rejectUnknown returns InvalidRequest, with the message for the index of each id that is not in found; nil if all are.
func rejectUnknown[K domain.Kind](field string, ids, found []domain.ID[K], message string) error {
	exists := make(map[domain.ID[K]]bool, len(found))
	for _, id := range found {
		exists[id] = true
	}
	return checkEach(field, ids, func(id domain.ID[K]) string {
		if exists[id] {
			return ""
		}
		return message
	})
}

// checkEach calls fault for each id of a list, and returns InvalidRequest with the messages, each for the index of its
// id. An empty message is no fault; without faults it returns nil.
func checkEach[K domain.Kind](field string, ids []domain.ID[K], fault func(domain.ID[K]) (message string)) error {
	var faults []domain.FieldError
	for i, id := range ids {
		if message := fault(id); message != "" {
			faults = append(faults, domain.FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Message: message})
		}
	}
	return domain.ErrInvalidFields(faults)
}

func (a *API) removeMember(ctx context.Context, req *api.RemoveMemberInput) (*op.NoContent, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, k, err := a.findCollection(ctx, req.Path.CollectionPath)
		if err != nil {
			return err
		}
		if _, err := t.LockUsers(ctx, c, []domain.UserID{req.Path.UserID}); err != nil {
			return err
		}
		return t.RemoveMember(ctx, c, k.ID, req.Path.UserID) // NotFound also for an unknown user
	})
	return &op.NoContent{}, err
}
