package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// SyncRun is a sync of a client's users with its directory as v2 shows it.
type SyncRun struct {
	Status      domain.SyncStatus  `json:"status" doc:"Status of the run."`
	Trigger     domain.SyncTrigger `json:"trigger" doc:"What triggered the run: an API request, the schedule or an operator's command."`
	QueuedAt    domain.Time        `json:"queued_at" doc:"When the run was requested."`
	StartedAt   *domain.Time       `json:"started_at" doc:"When the run began. Null if the run has not begun."`
	FinishedAt  *domain.Time       `json:"finished_at" doc:"When the run ended. Null if the run has not ended."`
	Created     int                `json:"created" doc:"Number of users created."`
	Updated     int                `json:"updated" doc:"Number of users who changed or became active again, excluding merged and deactivated users."`
	Deactivated int                `json:"deactivated" doc:"Number of users who became inactive because their account was disabled or removed, or left the group."`
	Merged      int                `json:"merged" doc:"Number of existing users who were merged with a directory account that has the same email address. Later runs update these users from the directory."`
	Unchanged   int                `json:"unchanged" doc:"Number of all other users from the directory, counted at the end of the run."`
	Skipped     []SkippedAccount   `json:"skipped" doc:"The first 100 accounts that the run could not fully apply. Either no user could be created or linked, the user's email address could not be changed, or the account no longer exists but its user stays active. Guests and accounts without an email address are not listed."`
	Error       *string            `json:"error" doc:"Why the run failed and what to do. Null if the run did not fail."`
	UpdatedAt   domain.Time        `json:"updated_at" since:"2.5" doc:"When the run last changed. updated_since filters by this time."`
}

// SkippedAccount is an account that a run skipped.
type SkippedAccount struct {
	Address string `json:"address" doc:"Email address in the directory, possibly invalid. If the account no longer exists, its user's email address."`
	Reason  string `json:"reason" doc:"Why the account was skipped, such as \"another user has this address\" or \"not a valid email address\". \"status_override\": the account no longer exists, but its user stays active because the status was set manually. Later releases may add other reasons."`
}

// The operations on directory syncs.
var (
	StartSync = op.Declare[StartSyncInput, SyncQueued](op.Meta{
		ID: "sync.runs.create", Method: "POST", Path: "/clients/:client_id/sync/runs",
		Scope: domain.Write, Since: op.V2_2, Status: 202, ReachesOut: true,
		Summary: "Start a directory sync",
		Description: "Queues an unscheduled sync of the client's users with its directory, at most once an hour. More frequent calls " +
			"return 429; if the client has no directory or a sync is already queued or running, the operation returns 409.",
		Fails: []domain.Code{domain.Conflict},
	})
	ListSyncRuns = op.DeclareList[ListSyncRunsInput, SyncRun](op.Meta{
		ID: "sync.runs.list", Starred: true, Method: "GET", Path: "/clients/:client_id/sync/runs",
		Scope: domain.Read, Since: op.V2_2, Status: 200,
		Summary:     "List sync runs",
		Description: "Returns the client's sync runs, newest first, with the number of users that each run changed. Runs are kept for 90 days.",
		Columns:     []string{"status", "trigger", "queued_at", "finished_at", "created", "updated", "deactivated", "error"},
	})
)

// StartSyncInput asks for a sync of a client.
type StartSyncInput struct{ Path ClientPath }

// SyncQueued says that a sync was queued.
type SyncQueued struct {
	// ID is for the audit trail.
	ID       domain.SyncRunID  `json:"-"`
	Status   domain.SyncStatus `json:"status" doc:"Always queued. To follow the run, list the client's sync runs."`
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
