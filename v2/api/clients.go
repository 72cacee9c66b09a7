package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Client is a client as v2 shows it.
type Client struct {
	ID         domain.ClientID `json:"id" doc:"Opaque ID of the client."`
	Name       string          `json:"name" doc:"The client's name, unique within the partner."`
	Industry   *string         `json:"industry" doc:"The client's industry, a free-form label for benchmarks. Null if not set."`
	ExternalID *string         `json:"external_id" doc:"The partner's own identifier for the client, stored and returned unchanged. Null if not set."`
	CreatedAt  domain.Time     `json:"created_at" doc:"When the client was created."`
	UpdatedAt  domain.Time     `json:"updated_at" doc:"When the client or its summary last changed."`
	Users      ClientUsers     `json:"users" doc:"User counts. Always current."`
	Risk       ClientScore     `json:"risk" doc:"The risk of the active users as a group. At most 5 minutes old."`
	Training   ClientTraining  `json:"training" doc:"The training progress of the active users. At most 5 minutes old."`
	Phishing   ClientPhishing  `json:"phishing" doc:"Click and report rates of simulated emails. At most 5 minutes old."`
	Frameworks []string        `json:"frameworks" doc:"IDs of the frameworks assigned to the client, sorted and without duplicates."`
	Features   ClientFeatures  `json:"features" doc:"The features that are enabled for the client."`
}

// ClientUsers counts a client's users by state.
type ClientUsers struct {
	Active   int `json:"active" doc:"Number of active users."`
	Inactive int `json:"inactive" doc:"Number of inactive users."`
}

// ClientScore sums up the risk of a client's active users.
type ClientScore struct {
	AverageScore  int          `json:"average_score" doc:"Rounded average score of the active users, from 0 to 1000. 750 if there are no active users."`
	Grade         domain.Grade `json:"grade" doc:"Grade of the average score: A (800 to 1000), B (700 to 799), C (600 to 699), D (400 to 599) or F (below 400)."`
	HighRiskUsers int          `json:"high_risk_users" doc:"Number of active users graded D or F."`
}

// ClientTraining sums up the training of a client's active users.
type ClientTraining struct {
	OnTrackRate  float64 `json:"on_track_rate" doc:"Percentage of active users with no overdue courses, from 0 to 100. 100 if there are no active users."`
	OverdueUsers int     `json:"overdue_users" doc:"Number of active users with overdue courses."`
}

// ClientPhishing holds the click and report rates of the simulated emails; all are 0 without active users.
type ClientPhishing struct {
	ClickRate90d   float64 `json:"click_rate_90d" doc:"Percentage of simulated emails sent in the last 90 days that were clicked, from 0 to 100. Submitted credentials and opened attachments count as clicks; email scanner activity does not."`
	ReportRate90d  float64 `json:"report_rate_90d" doc:"Percentage of simulated emails sent in the last 90 days that were reported, from 0 to 100."`
	ClickRate365d  float64 `json:"click_rate_365d" since:"2.4" doc:"Like click_rate_90d, but for the last 365 days. The rate can change from day to day while updated_at stays the same."`
	ClickRateTotal float64 `json:"click_rate_total" since:"2.4" doc:"Like click_rate_90d, but for all simulated emails ever sent."`
}

// ClientFeatures says what a client has switched on.
type ClientFeatures struct {
	DarkWebMonitoring bool              `json:"dark_web_monitoring" doc:"Whether Dark Web Monitoring is enabled."`
	DirectorySync     *domain.Directory `json:"directory_sync" doc:"The directory that users are synced from. Null if there is none."`
}

// BudgetClient returns the client whose budget the call counts against.
func (c Client) BudgetClient() domain.ClientID { return c.ID }

// The operations on clients.
var (
	ListClients = op.DeclareList[ListClientsInput, Client](op.Meta{
		ID: "clients.list", Method: "GET", Path: "/clients", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List clients",
		Description: "Returns every client that the API key can access, with current user counts and a summary that can be up to " +
			"5 minutes old. Call this operation once per sync run, with `updated_since` to fetch only changed clients.",
		Columns: []string{"id", "name", "users.active", "risk.average_score", "risk.grade", "risk.high_risk_users", "training.overdue_users", "phishing.click_rate_90d"},
	})
	GetClient = op.Declare[GetClientInput, Client](op.Meta{
		ID: "clients.get", Method: "GET", Path: "/clients/:client_id", Scope: domain.Read, Since: op.V2_0,
		Status: 200, PerClient: 60, Summary: "Get a client",
		Description: "Returns the client with its summary. User counts are always current; the rest of the summary can be up to 5 minutes " +
			"old, however often you call this operation.",
	})
	CreateClient = op.Declare[CreateClientInput, Client](op.Meta{
		ID: "clients.create", Method: "POST", Path: "/clients", Scope: domain.Write, Since: op.V2_2, Status: 201,
		AllClients: true, Summary: "Create a client",
		Description: "Creates a client, which starts with the foundational training program and immediately appears in the list of " +
			"clients. To archive or delete a client, use the dashboard.", Fails: []domain.Code{domain.Conflict},
	})
	UpdateClient = op.Declare[UpdateClientInput, Client](op.Meta{
		ID: "clients.update", Method: "PATCH", Path: "/clients/:client_id", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary:     "Update a client",
		Description: "Changes only the fields that you send. Send at least one field.", Fails: []domain.Code{domain.Conflict},
	})
)

// ListClientsInput asks for a page of clients.
type ListClientsInput struct {
	Query struct {
		op.Paging
		IDs          *op.IDList[domain.ClientKind] `query:"ids" doc:"Comma-separated client IDs, at most 500. Unknown and inaccessible clients are omitted; an empty list returns no clients."`
		Q            string                        `query:"q" validate:"max=500" doc:"Only clients whose name contains this string, ignoring case."`
		ExternalID   string                        `query:"external_id" since:"2.4" validate:"max=500" doc:"Only clients with exactly this external_id. Several clients can have the same external_id."`
		UpdatedSince *domain.Time                  `query:"updated_since" doc:"Only clients that changed at or after this time."`
		Sort         domain.ClientSort             `query:"sort" validate:"enum" default:"name" doc:"Sort order of the list. A leading minus sign reverses the order. risk_score lists the riskiest clients first, because lower scores mean higher risk."`
	}
}

// GetClientInput asks for one client.
type GetClientInput struct{ Path ClientPath }

// CreateClientInput asks for a new client.
type CreateClientInput struct {
	Body struct {
		Name       string  `json:"name" validate:"filled,max=200,name" doc:"The client's name, unique within the partner."`
		Industry   *string `json:"industry,omitzero" validate:"omitnil,max=500" doc:"The client's industry, a free-form label for benchmarks."`
		ExternalID *string `json:"external_id,omitzero" validate:"omitnil,max=500" doc:"The partner's own identifier for the client, stored and returned unchanged. Several clients can share the same identifier."`
	}
}

// UpdateClientInput asks for changes to a client.
type UpdateClientInput struct {
	Path ClientPath
	Body struct {
		Name       domain.Optional[string]  `json:"name,omitzero" validate:"omitnil,filled,max=200,name" doc:"The client's new name, unique within the partner."`
		Industry   domain.Optional[*string] `json:"industry,omitzero" validate:"omitnil,max=500" doc:"The client's new industry. Null clears it."`
		ExternalID domain.Optional[*string] `json:"external_id,omitzero" validate:"omitnil,max=500" doc:"The partner's own identifier for the client. Null clears it."`
	}
}
