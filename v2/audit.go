package v2

import (
	"context"

	"partnerapi/domain"
	"partnerapi/v2/api"
)

func (a *API) listAuditLog(
	ctx context.Context, in *api.ListAuditLogInput, w domain.Window,
) (domain.Slice[domain.LoggedEntry], error) {
	q := in.Query
	period, err := newPeriod("" /* prefix */, q.Since, q.Until)
	if err != nil {
		return domain.Slice[domain.LoggedEntry]{}, err
	}
	return a.db.AuditLog(ctx, domain.AuditLogFilter{
		Client: filterID[domain.ClientKind](q.ClientID), Key: q.Key, Operation: q.Operation, Period: period, Sort: domain.Sort(q.Sort),
	}, w)
}

func auditEntryOf(e domain.LoggedEntry) api.AuditEntry {
	out := api.AuditEntry{
		ID: e.ID, At: domain.At(e.At), Actor: api.AuditActor{Type: e.Actor(), KeyName: e.KeyName}, Operation: e.Operation,
		ClientID: domain.OrNil(e.Client), Fields: append([]string{}, e.Fields...), RequestID: domain.OrNil(e.RequestID),
	}
	if out.Actor.Type == domain.KeyActor {
		out.Actor.KeyPrefix = &e.Prefix
	}
	if e.Address.IsValid() {
		out.IPAddress = new(e.Address.String())
	}
	if e.Object.Kind != "" {
		out.Object = &api.AuditObject{Type: e.Object.Type(), ID: e.Object.ShownID()}
	}
	return out
}
