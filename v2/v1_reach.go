package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
)

// MaxReachable is how many objects one call of Reachable takes.
const MaxReachable = 1000

// Reachable asks which objects of one kind are within the caller's reach.
type Reachable struct {
	Body struct {
		Kind ReachableKind `json:"kind" validate:"required,enum"`
		// IDs are UUIDs, whether objects have them or not.
		IDs [][16]byte `json:"ids" validate:"max=1000"`
	}
}

// ReachableKind is a kind of objects that both versions name, by its noun.
type ReachableKind string

// Values lists the kinds (decisions 11.4).
func (ReachableKind) Values() []string {
	return []string{
		domain.ClientKind{}.Noun(), domain.UserKind{}.Noun(), domain.AdminKind{}.Noun(), domain.CollectionKind{}.Noun(),
		domain.PolicyKind{}.Noun(), domain.ReportKind{}.Noun(), domain.TemplateKind{}.Noun(), domain.GroupKind{}.Noun(),
	}
}

// Reached is the objects that the caller reaches.
type Reached struct {
	// IDs holds those that were asked for and are reached. An object that does not
	// exist, was archived or is of another kind is missing like one out of reach.
	IDs map[[16]byte]bool `json:"-"`
}

// reachable takes one statement whatever is found, or none where nothing is asked
// for.
func (a *API) reachable(ctx context.Context, in *Reachable) (*Reached, error) {
	out := &Reached{IDs: make(map[db.UUID]bool, len(in.Body.IDs))}
	if len(in.Body.IDs) == 0 {
		return out, nil
	}
	found, err := a.db.Reached(ctx, string(in.Body.Kind), in.Body.IDs)
	for _, id := range found {
		out.IDs[id] = true
	}
	return out, err
}
