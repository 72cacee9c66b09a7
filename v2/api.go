// Package v2 is the operations of the service, one file per resource: each has
// its input, its output and one function, which is the use case itself. The
// operations are declared once, in New; the subpackages of op make the surfaces
// from that.
package v2

import (
	"sync"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// API is the operations, each of which can be called in process whatever the
// release that the public edge serves.
type API struct {
	Set op.Set

	ListClients      *op.Op[ListClients, op.Page[Client]]
	GetClient        *op.Op[GetClient, Client]
	CreateClient     *op.Op[CreateClient, Client]
	UpdateClient     *op.Op[UpdateClient, Client]
	ListClientAdmins *op.Op[ListClientAdmins, op.Page[Admin]]
	InviteAdmin      *op.Op[InviteAdmin, AdminInvite]
	GetPartner       *op.Op[GetPartner, Partner]
	GetClientRisk    *op.Op[GetClientRisk, ClientRisk]
	ListUsers        *op.Op[ListUsers, op.Page[User]]
	GetUser          *op.Op[GetUser, UserDetail]
	CreateUser       *op.Op[CreateUser, User]
	UpdateUser       *op.Op[UpdateUser, UserDetail]
	GetUserRisk      *op.Op[GetUserRisk, UserRisk]
	ListCollections  *op.Op[ListCollections, op.Page[Collection]]
	GetCollection    *op.Op[GetCollection, Collection]
	CreateCollection *op.Op[CreateCollection, Collection]
	DeleteCollection *op.Op[DeleteCollection, op.NoContent]
	ListMembers      *op.Op[ListMembers, op.Page[Member]]
	AddMembers       *op.Op[AddMembers, AddedMembers]
	RemoveMember     *op.Op[RemoveMember, op.NoContent]

	ListTraining          *op.Op[ListTraining, op.Page[Assignment]]
	ListCourses           *op.Op[ListCourses, op.Page[Course]]
	AssignTraining        *op.Op[AssignTraining, TrainingAssigned]
	ListPhishingResults   *op.Op[ListPhishingResults, op.Page[PhishingResult]]
	GetPhishingSummary    *op.Op[GetPhishingSummary, PhishingSummary]
	ListPhishingTemplates *op.Op[ListPhishingTemplates, op.Page[PhishingTemplate]]
	SendPhishing          *op.Op[SendPhishing, PhishingSent]
	ListEmails            *op.Op[ListEmails, op.Page[SentEmail]]
	ListReportedEmails    *op.Op[ListReportedEmails, op.Page[ReportedEmail]]

	ListFrameworks       *op.Op[ListFrameworks, op.Page[Framework]]
	ListClientFrameworks *op.Op[ListClientFrameworks, op.Page[FrameworkAssignment]]
	GetFramework         *op.Op[GetFramework, FrameworkAssignment]
	AssignFramework      *op.Op[AssignFramework, FrameworkAssigned]
	RemoveFramework      *op.Op[RemoveFramework, op.NoContent]

	ListPolicies     *op.Op[ListPolicies, op.Page[Policy]]
	ListPolicyUsers  *op.Op[ListPolicyUsers, op.Page[PolicyUser]]
	RemindPolicy     *op.Op[RemindPolicy, Reminded]
	RemindTraining   *op.Op[RemindTraining, TrainingReminded]
	GetDarkWeb       *op.Op[GetDarkWeb, DarkWeb]
	ListExposures    *op.Op[ListExposures, op.Page[Exposure]]
	ListDarkWebUsers *op.Op[ListDarkWebUsers, op.Page[DarkWebUser]]
	ResolveExposure  *op.Op[ResolveExposure, Exposure]

	StartSync    *op.Op[StartSync, SyncQueued]
	ListSyncRuns *op.Op[ListSyncRuns, op.Page[SyncRun]]

	RequestReport *op.Op[RequestReport, Report]
	ListReports   *op.Op[ListReports, op.Page[Report]]
	GetReport     *op.Op[GetReport, ReportDetail]

	ListEvents           *op.Op[ListEvents, op.FeedPage[Event]]
	ListWebhooks         *op.Op[ListWebhooks, op.Page[Webhook]]
	GetWebhook           *op.Op[GetWebhook, Webhook]
	CreateWebhook        *op.Op[CreateWebhook, WebhookWithSecret]
	UpdateWebhook        *op.Op[UpdateWebhook, Webhook]
	DeleteWebhook        *op.Op[DeleteWebhook, op.NoContent]
	ReplaceWebhookSecret *op.Op[ReplaceWebhookSecret, WebhookWithSecret]
	TestWebhook          *op.Op[TestWebhook, WebhookTest]
	ListDeliveries       *op.Op[ListDeliveries, op.Page[WebhookDelivery]]
	Redeliver            *op.Op[Redeliver, WebhookDelivery]

	db          *db.DB
	reportLinks ReportLinks
	endpoints   Endpoints
	sealer      Sealer
	// testing are the subscriptions of which a test is under way.
	testing sync.Map
}

// Option changes how New declares the operations.
type Option func(*API)

// New declares the operations on a database whose list cursors are
// authenticated with the secret.
func New(database *db.DB, cursorSecret []byte, options ...Option) *API {
	a := &API{db: database}
	a.Set.Cursors = domain.CursorSealer{Secret: cursorSecret}
	for _, option := range options {
		option(a)
	}

	a.Set.Tags, a.Set.Objects, a.Set.Examples = Tags, Objects, Examples
	a.declareClients()
	a.declareAdmins()
	a.declarePartner()
	a.declareUsers()
	a.declareRisk()
	a.declareCollections()
	a.declarePolicies()
	a.declareExposures()
	a.declareTraining()
	a.declareFrameworks()
	a.declarePhishing()
	a.declarePhishingSends()
	a.declareEmails()
	a.declareReportedEmails()
	a.declareSync()
	a.declareReports()
	a.declareEvents()
	a.declareWebhooks()
	a.declareDeliveries()
	return a
}

// WithCursorSecrets has cursors opened too that were made with other secrets than New's.
func WithCursorSecrets(others func() [][]byte) Option {
	return func(a *API) { a.Set.Cursors.Others = others }
}

// clientPath is the path of an operation on one client.
type clientPath struct {
	ClientID domain.ClientID `path:"client_id" doc:"Opaque id of the client."`
}

// BudgetClient is the client that a call is charged to.
func (p clientPath) BudgetClient() domain.ClientID { return p.ClientID }

// userPath is the path of an operation on one user.
type userPath struct {
	UserID domain.UserID `path:"user_id" doc:"Opaque id of the user."`
}
