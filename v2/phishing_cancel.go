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

// cancelBatch bounds the emails that one transaction cancels by label, and maxCancelBatches the transactions of a request.
const (
	cancelBatch      = 500
	maxCancelBatches = 100
)

// checkCancelled returns InvalidRequest unless the body names the emails in exactly one way.
func checkCancelled(in *api.CancelSendsInput) error {
	switch named := in.Body.ResultIDs != nil; {
	case named && in.Body.Label.Given:
		return domain.ErrInvalid("label", "cannot be combined with result_ids")
	case !named && !in.Body.Label.Given:
		return domain.ErrInvalid("result_ids", "is required unless label is set")
	}
	return nil
}

// cancelBatches is the step before the transaction of cancelSends. If more emails with the label are scheduled than one
// transaction cancels, it cancels all but the last batch of them, each batch in a transaction with an audit entry, in
// the order of their ids: an email that cannot be cancelled stays scheduled.
func (a *API) cancelBatches(ctx context.Context, in *api.CancelSendsInput) error {
	if err := checkCancelled(in); err != nil || !in.Body.Label.Given {
		return err
	}
	for range maxCancelBatches - 1 {
		t, err := a.db.Tenant(ctx, in.Path.ClientID)
		if err != nil {
			return err
		}
		batch, err := t.ScheduledWithLabel(ctx, domain.SortKey(in.Body.Label.Value), in.Done, cancelBatch+1)
		if err != nil {
			return err
		}
		if len(batch) <= cancelBatch {
			return nil
		}
		batch = batch[:cancelBatch]
		err = op.InWrite(ctx, &a.Set, api.CancelSends, in, func(ctx context.Context) error {
			return a.changeTenant(ctx, in.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
				_, err := outbox.CancelSends(ctx, c, t, batch)
				return err
			})
		})
		if err != nil {
			return err
		}
		in.Done = batch[cancelBatch-1]
	}
	return nil
}

func (a *API) cancelSends(ctx context.Context, in *api.CancelSendsInput) (out *api.SendsCancelled, err error) {
	err = a.changeTenant(ctx, in.Path.ClientID, func(ctx context.Context, c *db.Change, t *db.Tenant) error {
		if in.Body.Label.Given {
			out, err = cancelLabel(ctx, c, t, in)
		} else {
			out, err = cancelNamed(ctx, c, t, in)
		}
		return err
	})
	return out, err
}

// cancelNamed cancels the emails that the body names by their results.
func cancelNamed(ctx context.Context, c *db.Change, t *db.Tenant, in *api.CancelSendsInput) (*api.SendsCancelled, error) {
	ids := dedupe(in.Body.ResultIDs)
	results, err := outbox.CancelSends(ctx, c, t, ids)
	if err != nil {
		return nil, err
	}

	found := make([]domain.ResultID, len(results))
	byID := make(map[domain.ResultID]domain.Result, len(results))
	for i, r := range results {
		found[i], byID[r.ID] = r.ID, r
	}
	if err := rejectUnknown("result_ids", in.Body.ResultIDs, found, "is not a simulated email of this client"); err != nil {
		return nil, err
	}
	out := &api.SendsCancelled{NotCancelled: []api.UncancelledSend{}}
	for _, id := range ids {
		if r := byID[id]; r.Cancelled() {
			out.CancelledCount++
		} else {
			out.NotCancelled = append(out.NotCancelled, api.UncancelledSend{ResultID: id, Status: r.Status})
		}
	}
	out.NotCancelledCount = len(out.NotCancelled)
	return out, nil
}

// cancelLabel cancels the scheduled emails with the label that cancelBatches has left, at most cancelBatch.
func cancelLabel(ctx context.Context, c *db.Change, t *db.Tenant, in *api.CancelSendsInput) (*api.SendsCancelled, error) {
	key := domain.SortKey(in.Body.Label.Value)
	batch, err := t.ScheduledWithLabel(ctx, key, in.Done, cancelBatch)
	if err != nil {
		return nil, err
	}
	if _, err := outbox.CancelSends(ctx, c, t, batch); err != nil {
		return nil, err
	}
	counts, err := t.LabelSends(ctx, key)
	if err != nil {
		return nil, err
	}
	kept, err := t.KeptSends(ctx, key, cancelBatch)
	if err != nil {
		return nil, err
	}
	out := &api.SendsCancelled{
		CancelledCount: counts.Cancelled, NotCancelledCount: counts.Sends, NotCancelled: []api.UncancelledSend{},
	}
	for _, r := range kept {
		out.NotCancelled = append(out.NotCancelled, api.UncancelledSend{ResultID: r.ID, Status: r.Status})
	}
	return out, nil
}
