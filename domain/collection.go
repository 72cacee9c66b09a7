package domain

import "time"

// Collection is a named set of a client's users. A user may be in several.
type Collection struct {
	ID          CollectionID `bun:",pk"`
	Client      ClientID     `bun:"client_id,pk"`
	Name        string       // unique within the client, by its SortKey
	Description *string
	Members     int `bun:"member_count"`
	CreatedBy   Creator
	CreatedAt   time.Time
	UpdatedAt   time.Time
}

// Creator is the way in which an object was created.
type Creator string

// The creators.
const (
	ByDashboard Creator = "dashboard"
	ByAPI       Creator = "api"
)

// Values lists the creators.
func (Creator) Values() []string { return texts(ByDashboard, ByAPI) }

// Member is a user in a collection.
type Member struct {
	User    UserID
	Name    string // the full name
	Email   string
	AddedAt time.Time
	// UpdatedAt is the time of the user's last change. Joining a collection is one.
	UpdatedAt time.Time
}
