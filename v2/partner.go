package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

func (a *API) declarePartner() {
	a.GetPartner = op.Add(&a.Set, op.Meta{
		ID: "partner.get", Starred: true, Method: "GET", Path: "/partner", Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary:     "Read the key's partner and its admins",
		Description: "Returns the partner that the key belongs to, with the admins whose scope is the whole partner.",
	}, a.getPartner)
}

// GetPartner asks for the key's partner.
type GetPartner struct{}

// Partner is a partner as v2 shows it.
type Partner struct {
	Name      string      `json:"name" doc:"The partner's name."`
	CreatedAt domain.Time `json:"created_at" doc:"When the partner was created."`
	Admins    []Admin     `json:"admins" doc:"The admins who see every client."`
}

func (a *API) getPartner(ctx context.Context, _ *GetPartner) (*Partner, error) {
	p, err := a.db.Partner(ctx)
	if err != nil {
		return nil, err
	}
	out := &Partner{Name: p.Name, CreatedAt: domain.At(p.CreatedAt), Admins: make([]Admin, len(p.Admins))}
	for i, admin := range p.Admins {
		out.Admins[i] = adminOf(admin)
	}
	return out, nil
}
