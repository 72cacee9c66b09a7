package api

import "partnerapi/v2/op"

// Interface is version 2 as documents describe it.
var Interface = op.Interface{Operations: Operations, Tags: Tags, Objects: Objects, Examples: Examples}

// Operations are all operations, in the order in which documents list them.
var Operations = []op.Declaration{
	ListClients, GetClient, CreateClient, UpdateClient,
	ListClientAdmins, InviteAdmin,
	GetPartner, GetKey, ListAuditLog, ListUsage,
	ListUsers, FindUsers, GetUser, CreateUser, UpdateUser, RemoveOverride, ListDepartments,
	GetClientRisk, GetUserRisk,
	ListCollections, GetCollection, CreateCollection, UpdateCollection, DeleteCollection, ListMembers, AddMembers, RemoveMember,
	ListPolicies, ListPolicyUsers, RemindPolicy,
	GetDarkWeb, ListExposures, ListDarkWebUsers, ResolveExposure,
	ListTraining, ListClientTraining, ListCourses, AssignTraining, RemindTraining,
	ListFrameworks, ListClientFrameworks, GetFramework, AssignFramework, RemoveFramework,
	ListPhishingResults, GetPhishingSummary, ListPhishingLabels, ListPhishingTemplates,
	SendPhishing, CancelSend, CancelSends,
	ListEmails,
	ListReportedEmails,
	StartSync, ListSyncRuns,
	RequestReport, ListReports, GetReport,
	ListEvents,
	ListWebhooks, GetWebhook, CreateWebhook, UpdateWebhook, DeleteWebhook, ReplaceWebhookSecret, TestWebhook,
	ListDeliveries, Redeliver,
}
