package db

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db/pg"
	"partnerapi/domain"
)

type collectionRow struct {
	bun.BaseModel `bun:"table:collections,alias:k"`

	ClientID    domain.ClientID     `bun:"client_id,pk"`
	ID          domain.CollectionID `bun:"id,pk"`
	Name        string
	NameKey     string
	Description *string
	MemberCount int
	CreatedBy   domain.Creator
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

func (r *collectionRow) collection() domain.Collection {
	return domain.Collection{
		ID: r.ID, Client: r.ClientID, Name: r.Name, Description: r.Description, Members: r.MemberCount,
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// Collections reads a page of the client's collections, by their creation. since,
// if not nil, leaves those that changed at or after it.
func (t *Tenant) Collections(
	ctx context.Context, since *time.Time, w domain.Window,
) (domain.Slice[domain.Collection], error) {
	k := pg.Keyset[collectionRow]{
		Table: "collections AS k", Key: "k.created_at", Cast: "timestamptz", ID: "k.id",
		Position: func(r *collectionRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.CreatedAt), ID: r.ID.UUID()}
		},
	}
	k.Where.Add("k.client_id = ?", t.ID)
	if since != nil {
		k.Where.Add("k.updated_at >= ?", *since)
	}
	rows, err := pg.CountedPage(ctx, t.db, k, w)
	return pg.Map(rows, (*collectionRow).collection), err
}

// Collection reads one of the client's collections.
func (t *Tenant) Collection(ctx context.Context, id domain.CollectionID) (domain.Collection, error) {
	row, err := pg.Find[collectionRow](ctx, t.db, id.Noun(), pg.Prepared(pg.From("collections AS k").
		Columns(pg.Columns[collectionRow]()).Where("k.client_id = ? AND k.id = ?", t.ID, id)))
	return row.collection(), err
}

type memberRow struct {
	bun.BaseModel `bun:"table:collection_members,alias:m"`

	UserID  domain.UserID
	AddedAt time.Time

	FirstName string `bun:"first_name,scanonly"`
	LastName  string `bun:"last_name,scanonly"`
	Email     string `bun:"email,scanonly"`
}

func (r *memberRow) member() domain.Member {
	name := domain.FullName(r.FirstName, r.LastName)
	return domain.Member{User: r.UserID, Name: name, Email: r.Email, AddedAt: r.AddedAt}
}

// Members reads a page of a collection's members, by when they were added.
// since, if not nil, leaves those who joined or changed at or after it.
func (t *Tenant) Members(
	ctx context.Context, of domain.Collection, since *time.Time, w domain.Window,
) (domain.Slice[domain.Member], error) {
	k := pg.Keyset[memberRow]{
		Table: "collection_members AS m", Key: "m.added_at", Cast: "timestamptz", ID: "m.user_id",
		Select: func(q *pg.Select) {
			q.Columns(pg.Columns[memberRow]()).Columns("u.first_name, u.last_name, u.email").
				Join("JOIN users AS u ON u.client_id = m.client_id AND u.id = m.user_id")
		},
		Position: func(r *memberRow) domain.Position {
			return domain.Position{Key: pg.TimeKey(r.AddedAt), ID: r.UserID.UUID()}
		},
	}
	k.Where.Add("m.client_id = ? AND m.collection_id = ?", t.ID, of.ID)
	if since != nil { // joining changes a user too
		k.Where.Add(`EXISTS (SELECT 1 FROM users AS u
			WHERE u.client_id = m.client_id AND u.id = m.user_id AND u.updated_at >= ?)`, *since)
	}
	rows, err := pg.Page(ctx, t.db, k, w)
	rows.Total = of.Members // a total is asked for only without since
	return pg.Map(rows, (*memberRow).member), err
}
