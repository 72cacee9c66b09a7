package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/db/dirsync"
	"partnerapi/domain"
	"partnerapi/v2/api"
)

func syncRunOf(r domain.SyncRun) api.SyncRun {
	out := api.SyncRun{
		Status: r.Status, Trigger: r.Trigger, QueuedAt: domain.At(r.QueuedAt),
		StartedAt: domain.MaybeAt(r.StartedAt), FinishedAt: domain.MaybeAt(r.FinishedAt),
		Created: r.Created, Updated: r.Updated, Deactivated: r.Deactivated, Merged: r.Merged, Unchanged: r.Unchanged,
		Skipped: make([]api.SkippedAccount, len(r.Skipped)), Error: r.Error, UpdatedAt: domain.At(r.UpdatedAt),
	}
	for i, s := range r.Skipped {
		out.Skipped[i] = api.SkippedAccount(s)
	}
	return out
}

func (a *API) startSync(ctx context.Context, in *api.StartSyncInput) (out *api.SyncQueued, err error) {
	err = a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := c.LockTenant(ctx, in.Path.ClientID)
		if err != nil {
			return err
		}
		run, err := dirsync.Request(ctx, t, c)
		out = &api.SyncQueued{ID: run.ID, Status: run.Status, QueuedAt: domain.At(run.QueuedAt)}
		return err
	})
	return out, err
}

func (a *API) listSyncRuns(
	ctx context.Context, in *api.ListSyncRunsInput, w domain.Window,
) (domain.Slice[domain.SyncRun], error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.SyncRun]{}, err
	}
	return dirsync.Runs(ctx, t, toTime(in.Query.UpdatedSince), w)
}
