package database

import (
	"context"
	"fmt"
	"strings"

	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/domain"
)

// PartnerCalled finds a partner by its id, as partners list shows it or as a UUID, or
// by its name; the only one where none is named.
func PartnerCalled(ctx context.Context, d *db.DB, name string) (domain.PartnerID, error) {
	all, err := d.Partners(ctx)
	if err != nil {
		return domain.PartnerID{}, err
	}
	if name == "" {
		if len(all) == 1 {
			return all[0].ID, nil
		}
		return domain.PartnerID{}, fmt.Errorf("there are %d partners: name one with --partner, or create one with the "+
			"command partners create", len(all))
	}
	names, called := make([]string, len(all)), domain.PartnerID{}
	for i, p := range all {
		switch names[i] = p.Name; {
		case p.ID.String() == name, strings.EqualFold(p.ID.UUID(), name):
			return p.ID, nil
		case domain.SortKey(p.Name) == domain.SortKey(name):
			called = p.ID
		}
	}
	if called.IsZero() {
		return called, fmt.Errorf("there is no partner %q: the command partners list shows them%s", name,
			output.DidYouMean(name, names))
	}
	return called, nil
}
