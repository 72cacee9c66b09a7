package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/outbox"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

func (a *API) cancelSend(ctx context.Context, in *api.CancelSendInput) (*op.NoContent, error) {
	err := a.changeTenant(ctx, in.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		results, err := outbox.CancelSends(ctx, c, t, []domain.ResultID{in.Path.ResultID})
		switch {
		case err != nil:
			return err
		case len(results) == 0:
			return domain.ErrNotFound(in.Path.ResultID.Noun())
		case !results[0].Cancelled():
			return errNotCancelled(results[0].Status)
		}
		return nil
	})
	return &op.NoContent{}, err
}

// errNotCancelled returns the Conflict of an email whose result has the status, so that it could not be cancelled.
func errNotCancelled(s domain.ResultStatus) error {
	switch s {
	case domain.ResultScheduled: // not cancelled: it has a lease, or an attempt without a response
		return domain.ErrConflict("", "the email is being sent")
	case domain.ResultFailed:
		return domain.ErrConflict("", "the email failed and will not be sent")
	}
	return domain.ErrConflict("", "the email was already sent")
}

func (a *API) cancelSends(ctx context.Context, in *api.CancelSendsInput) (*api.SendsCancelled, error) {
	out := &api.SendsCancelled{NotCancelled: []api.UncancelledSend{}}
	ids := dedupe(in.Body.ResultIDs)
	err := a.changeTenant(ctx, in.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		results, err := outbox.CancelSends(ctx, c, t, ids)
		if err != nil {
			return err
		}

		found := make([]domain.ResultID, len(results))
		byID := make(map[domain.ResultID]domain.Result, len(results))
		for i, r := range results {
			found[i], byID[r.ID] = r.ID, r
		}
		if err := rejectUnknown("result_ids", in.Body.ResultIDs, found, "is not a simulated email of this client"); err != nil {
			return err
		}
		for _, id := range ids {
			if r := byID[id]; r.Cancelled() {
				out.CancelledCount++
			} else {
				out.NotCancelled = append(out.NotCancelled, api.UncancelledSend{ResultID: id, Status: r.Status})
			}
		}
		return nil
	})
	return out, err
}
