package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// WithRelease sets the release that the public edge serves; the default is the latest.
func WithRelease(r op.Release) Option { return func(a *API) { a.release = r } }

func (a *API) getKey(ctx context.Context, _ *api.GetKeyInput) (*api.Key, error) {
	key, err := a.db.CallingKey(ctx)
	if err != nil {
		return nil, err
	}
	caller := domain.CallerFrom(ctx)
	out := &api.Key{
		Prefix: caller.Prefix, Name: key.Name, Partner: key.Partner, Scopes: caller.Scopes, AllClients: caller.AllClients,
		ClientIDs: key.ClientIDs, Networks: make([]string, len(caller.Networks)), CreatedAt: domain.At(key.CreatedAt),
		ExpiresAt: domain.MaybeAt(key.ExpiresAt), Release: a.release.String(),
	}
	for i, network := range caller.Networks {
		out.Networks[i] = network.String()
	}
	return out, nil
}
