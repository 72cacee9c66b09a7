package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// SyncRun is a sync of a client's users with its directory as v2 shows it.
type SyncRun struct {
	Status      domain.SyncStatus  `json:"status" doc:"How far the run is."`
	Trigger     domain.SyncTrigger `json:"trigger" doc:"What asked for the run: a request, the schedule, or an operator's command."`
	QueuedAt    domain.Time        `json:"queued_at" doc:"When the run was asked for."`
	StartedAt   *domain.Time       `json:"started_at" doc:"When the run began. Null for not yet."`
	FinishedAt  *domain.Time       `json:"finished_at" doc:"When the run ended. Null for not yet."`
	Created     int                `json:"created" doc:"Number of users made."`
	Updated     int                `json:"updated" doc:"Number of users who changed or became active again; neither those merged nor those deactivated."`
	Deactivated int                `json:"deactivated" doc:"Number of users who became inactive, because the account is disabled, removed or has left the group."`
	Merged      int                `json:"merged" doc:"Number of users made by hand whom the directory keeps from now on."`
	Unchanged   int                `json:"unchanged" doc:"Number of the directory's other users. Counted at the end of the run."`
	Skipped     []SkippedAccount   `json:"skipped" doc:"The first 100 accounts that have no user, whose user could not be given their address, or whose user stays active although they are gone. Guests and accounts without an email address are not listed."`
	Error       *string            `json:"error" doc:"Why the run failed, and what to do. Null where it did not."`
	UpdatedAt   domain.Time        `json:"updated_at" since:"2.5" doc:"When the run last changed: what updated_since goes by."`
}

// SkippedAccount is an account that a run skipped.
type SkippedAccount struct {
	Address string `json:"address" doc:"Email address as the directory has it, which may be invalid. Of a user who stays active, the user's."`
	Reason  string `json:"reason" doc:"Why the account was skipped, such as \"another user has this address\" or \"not a valid email address\". Is \"status_override\" if the account is gone and its user stays active, because the user's status was set manually. Other reasons may be added."`
}

// The operations on directory syncs.
var (
	StartSync = op.Declare[StartSyncInput, SyncQueued](op.Meta{
		ID: "sync.runs.create", Method: "POST", Path: "/clients/:client_id/sync/runs",
		Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Start a directory sync",
		Description: "Queues a sync of the client's users with its directory, outside the schedule, once an hour: " +
			"more often is 429. A client without a directory, or with a run that is queued or running, is a " +
			"conflict.",
		Fails: []domain.Code{domain.Conflict},
	})
	ListSyncRuns = op.DeclareList[ListSyncRunsInput, SyncRun](op.Meta{
		ID: "sync.runs.list", Starred: true, Method: "GET", Path: "/clients/:client_id/sync/runs",
		Scope: domain.Read, Since: op.V2_2, Status: 200,
		Summary:     "List the sync runs of a client",
		Description: "Returns the runs of a client, newest first, with what each changed. They are kept for 90 days.",
		Columns:     []string{"status", "trigger", "queued_at", "finished_at", "created", "updated", "deactivated", "error"},
	})
)

// StartSyncInput asks for a sync of a client.
type StartSyncInput struct{ Path ClientPath }

// SyncQueued says that a sync was queued.
type SyncQueued struct {
	// ID is for the audit trail.
	ID       domain.SyncRunID  `json:"-"`
	Status   domain.SyncStatus `json:"status" doc:"Always queued. Follow the run in the client's sync runs."`
	QueuedAt domain.Time       `json:"queued_at" doc:"When the run was queued."`
}

// ListSyncRunsInput asks for a page of a client's sync runs.
type ListSyncRunsInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only runs that changed at or after this time."`
	}
}
