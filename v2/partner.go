package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func (a *API) getPartner(ctx context.Context, _ *api.GetPartnerInput) (*api.Partner, error) {
	p, err := a.db.Partner(ctx)
	out := &api.Partner{Name: p.Name, CreatedAt: domain.At(p.CreatedAt), Admins: make([]api.Admin, len(p.Admins))}
	for i, admin := range p.Admins {
		out.Admins[i] = adminOf(admin)
	}
	return out, err
}
