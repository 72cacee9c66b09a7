// Package v2 implements the operations of the service, one file per resource. Each operation is one function, the use
// case itself. Package api declares the inputs and outputs, and New binds the functions to these declarations. The
// subpackages of op make the surfaces.
package v2

import (
	"context"
	"sync"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// API holds the operations. Each can be called in process, even if the release that the public edge serves lacks it.
type API struct {
	Set op.Set

	db          *db.DB
	reportLinks ReportLinks
	endpoints   Endpoints
	sealer      Sealer
	release     op.Release
	// testing holds the ids of subscriptions whose test is in progress.
	testing sync.Map
}

// Option changes how New binds the operations.
type Option func(*API)

// New binds the operations to a database. The secret authenticates the cursors of lists. A declared operation that is
// not bound is a programming error, and panics.
func New(database *db.DB, cursorSecret []byte, options ...Option) *API {
	a := &API{db: database, release: op.Latest}
	a.Set.Cursors = domain.CursorSealer{Secret: cursorSecret}
	a.Set.FixHorizon = database.FixHorizon
	a.Set.DryRun = func(ctx context.Context, work func(context.Context) error) error { return database.DryRun(ctx, work) }
	for _, option := range options {
		option(a)
	}

	a.bind(&a.Set)
	if err := a.Set.Complete(api.Operations); err != nil {
		panic(err)
	}
	return a
}

// bind binds each operation to its function in s, in the order of api.Operations.
func (a *API) bind(s *op.Set) {
	op.BindList(s, api.ListClients, a.listClients, clientOf)
	op.Bind(s, api.GetClient, a.getClient)
	op.Bind(s, api.CreateClient, a.createClient)
	op.Bind(s, api.UpdateClient, a.updateClient)
	op.BindList(s, api.ListClientAdmins, a.listClientAdmins, adminOf)
	op.Bind(s, api.InviteAdmin, a.inviteAdmin)
	op.Bind(s, api.GetPartner, a.getPartner)
	op.Bind(s, api.GetKey, a.getKey)
	op.BindList(s, api.ListUsage, a.listUsage, usageOf)
	op.BindList(s, api.ListAuditLog, a.listAuditLog, auditEntryOf)

	op.BindList(s, api.ListUsers, a.listUsers, userOf)
	op.BindList(s, api.FindUsers, a.findUsers, userOf)
	op.Bind(s, api.GetUser, a.getUser)
	op.Bind(s, api.CreateUser, a.createUser)
	op.Bind(s, api.UpdateUser, a.updateUser)
	op.Bind(s, api.RemoveOverride, a.removeOverride)
	op.BindList(s, api.ListDepartments, a.listDepartments, departmentOf)
	op.Bind(s, api.GetClientRisk, a.getClientRisk)
	op.Bind(s, api.GetUserRisk, a.getUserRisk)

	op.BindList(s, api.ListCollections, a.listCollections, collectionOf)
	op.Bind(s, api.GetCollection, a.getCollection)
	op.Bind(s, api.CreateCollection, a.createCollection)
	op.Bind(s, api.UpdateCollection, a.updateCollection)
	op.Bind(s, api.DeleteCollection, a.deleteCollection)
	op.BindList(s, api.ListMembers, a.listMembers, memberOf)
	op.Bind(s, api.AddMembers, a.addMembers)
	op.Bind(s, api.RemoveMember, a.removeMember)
	op.BindList(s, api.ListPolicies, a.listPolicies, policyOf)
	op.BindList(s, api.ListPolicyUsers, a.listPolicyUsers, policyUserOf)
	op.Bind(s, api.RemindPolicy, a.remindPolicy)

	op.Bind(s, api.GetDarkWeb, a.getDarkWeb)
	op.BindList(s, api.ListExposures, a.listExposures, exposureOf)
	op.BindList(s, api.ListDarkWebUsers, a.listDarkWebUsers, darkWebUserOf)
	op.Bind(s, api.ResolveExposure, a.resolveExposure)

	op.BindList(s, api.ListTraining, a.listTraining, a.assignmentOf)
	op.BindList(s, api.ListClientTraining, a.listClientTraining, a.clientAssignmentOf)
	op.BindList(s, api.ListCourses, a.listCourses, courseOf)
	op.Bind(s, api.AssignTraining, a.assignTraining)
	op.Bind(s, api.RemindTraining, a.remindTraining)
	op.BindList(s, api.ListFrameworks, a.listFrameworks, frameworkOf)
	op.BindList(s, api.ListClientFrameworks, a.listClientFrameworks, frameworkAssignmentOf)
	op.Bind(s, api.GetFramework, a.getFramework)
	op.Bind(s, api.AssignFramework, a.assignFramework)
	op.Bind(s, api.RemoveFramework, a.removeFramework)

	op.BindList(s, api.ListPhishingResults, a.listPhishingResults, resultOf)
	op.Bind(s, api.GetPhishingSummary, a.getPhishingSummary)
	op.BindList(s, api.ListPhishingLabels, a.listPhishingLabels, labelOf)
	op.BindList(s, api.ListPhishingTemplates, a.listPhishingTemplates, templateOf)
	op.Bind(s, api.SendPhishing, a.sendPhishing)
	op.Bind(s, api.CancelSend, a.cancelSend)
	op.Bind(s, api.CancelSends, a.cancelSends)
	op.BindPrepare(s, api.CancelSends, a.cancelBatches)
	op.BindList(s, api.ListEmails, a.listEmails, sentEmailOf)
	op.BindList(s, api.ListReportedEmails, a.listReportedEmails, reportedEmailOf)

	op.Bind(s, api.StartSync, a.startSync)
	op.BindList(s, api.ListSyncRuns, a.listSyncRuns, syncRunOf)
	op.Bind(s, api.RequestReport, a.requestReport)
	op.BindList(s, api.ListReports, a.listReports, reportOf)
	op.Bind(s, api.GetReport, a.getReport)

	op.BindFeed(s, api.ListEvents, a.listEvents, api.EventOf)
	op.BindList(s, api.ListWebhooks, a.listWebhooks, webhookOf)
	op.Bind(s, api.GetWebhook, a.getWebhook)
	op.Bind(s, api.CreateWebhook, a.createWebhook)
	op.BindPrepare(s, api.CreateWebhook, a.prepareCreateWebhook)
	op.Bind(s, api.UpdateWebhook, a.updateWebhook)
	op.BindPrepare(s, api.UpdateWebhook, a.prepareUpdateWebhook)
	op.Bind(s, api.DeleteWebhook, a.deleteWebhook)
	op.Bind(s, api.ReplaceWebhookSecret, a.replaceWebhookSecret)
	op.Bind(s, api.TestWebhook, a.testWebhook)
	op.BindPrepare(s, api.TestWebhook, a.ping)
	op.BindList(s, api.ListDeliveries, a.listDeliveries, deliveryOf)
	op.Bind(s, api.Redeliver, a.redeliver)
}

// WithCursorSecrets also accepts cursors that were sealed with other secrets than New's.
func WithCursorSecrets(others func() [][]byte) Option {
	return func(a *API) { a.Set.Cursors.Others = others }
}

// changeTenant runs work in a Change, with the client that has the id. It returns NotFound if there is no such client,
// or the caller has no access to it.
func (a *API) changeTenant(
	ctx context.Context, id domain.ClientID, work func(context.Context, *db.Change, *db.Tenant) error,
) error {
	return a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := a.db.Tenant(ctx, id)
		if err != nil {
			return err
		}
		return work(ctx, c, t)
	})
}
