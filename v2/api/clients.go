package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Client is a client as v2 shows it.
type Client struct {
	ID         domain.ClientID `json:"id" doc:"Opaque id of the client."`
	Name       string          `json:"name" doc:"The client's name, unique within the partner."`
	Industry   *string         `json:"industry" doc:"A label for benchmarks. Null where none was given."`
	ExternalID *string         `json:"external_id" doc:"The partner's own identifier, stored and returned as it is. Null where none was given."`
	CreatedAt  domain.Time     `json:"created_at" doc:"When the client was created."`
	UpdatedAt  domain.Time     `json:"updated_at" doc:"When a field of the client last changed, the summary included."`
	Users      ClientUsers     `json:"users" doc:"How many users the client has. Always current."`
	Risk       ClientScore     `json:"risk" doc:"The risk of the active users together. At most 5 minutes old."`
	Training   ClientTraining  `json:"training" doc:"Where the active users stand with their courses. At most 5 minutes old."`
	Phishing   ClientPhishing  `json:"phishing" doc:"What became of the simulated mails. At most 5 minutes old."`
	Frameworks []string        `json:"frameworks" doc:"Ids of the frameworks assigned to the client, each once, sorted."`
	Features   ClientFeatures  `json:"features" doc:"What the client has switched on."`
}

// ClientUsers counts a client's users by state.
type ClientUsers struct {
	Active   int `json:"active" doc:"Number of active users."`
	Inactive int `json:"inactive" doc:"Number of inactive users."`
}

// ClientScore sums up the risk of a client's active users.
type ClientScore struct {
	AverageScore  int          `json:"average_score" doc:"Average score of the active users, 0 to 1000, rounded. 750 without active users."`
	Grade         domain.Grade `json:"grade" doc:"Grade of the average score: A from 800, B from 700, C from 600, D from 400, F below."`
	HighRiskUsers int          `json:"high_risk_users" doc:"Number of active users graded D or F."`
}

// ClientTraining sums up the training of a client's active users.
type ClientTraining struct {
	OnTrackRate  float64 `json:"on_track_rate" doc:"Percentage of active users with no overdue course, 0 to 100. 100 without active users."`
	OverdueUsers int     `json:"overdue_users" doc:"Number of active users with an overdue course."`
}

// ClientPhishing holds the click and report rates of the simulated mails; all are 0 without active users.
type ClientPhishing struct {
	ClickRate90d   float64 `json:"click_rate_90d" doc:"Percentage of the mails sent in the last 90 days that were clicked, 0 to 100. Submitted credentials and opened attachments count as clicks; mail scanners do not."`
	ReportRate90d  float64 `json:"report_rate_90d" doc:"Percentage of the mails sent in the last 90 days that were reported, 0 to 100."`
	ClickRate365d  float64 `json:"click_rate_365d" since:"2.4" doc:"As click_rate_90d, of the last 365 days. Days that pass change it without moving updated_at."`
	ClickRateTotal float64 `json:"click_rate_total" since:"2.4" doc:"As click_rate_90d, of all mails that were sent."`
}

// ClientFeatures says what a client has switched on.
type ClientFeatures struct {
	DarkWebMonitoring bool              `json:"dark_web_monitoring" doc:"Whether Dark Web Monitoring is enabled."`
	DirectorySync     *domain.Directory `json:"directory_sync" doc:"The directory that the users are synced with. Null for none."`
}

// BudgetClient returns the client whose budget the call counts against.
func (c Client) BudgetClient() domain.ClientID { return c.ID }

// The operations on clients.
var (
	ListClients = op.DeclareList[ListClientsInput, Client](op.Meta{
		ID: "clients.list", Method: "GET", Path: "/clients", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List the clients that the key reaches",
		Description: "Returns every client that the key reaches with a summary: users are counted at the moment, the other " +
			"figures may be 5 minutes old. Call it once per sync run, with `updated_since` to fetch only what " +
			"changed.",
		Columns: []string{"id", "name", "users.active", "risk.average_score", "risk.grade", "risk.high_risk_users", "training.overdue_users", "phishing.click_rate_90d"},
	})
	GetClient = op.Declare[GetClientInput, Client](op.Meta{
		ID: "clients.get", Method: "GET", Path: "/clients/:client_id", Scope: domain.Read, Since: op.V2_0,
		Status: 200, PerClient: 60, Summary: "Read a client",
		Description: "Returns one client with its summary, whose figures may be 5 minutes old. More frequent calls " +
			"return the same figures.",
	})
	CreateClient = op.Declare[CreateClientInput, Client](op.Meta{
		ID: "clients.create", Method: "POST", Path: "/clients", Scope: domain.Write, Since: op.V2_2, Status: 201,
		AllClients: true, Summary: "Create a client",
		Description: "Creates a client that starts with the foundational training program and appears in the list of " +
			"clients at once. Archiving and deleting clients is done in the dashboard.", Fails: []domain.Code{domain.Conflict},
	})
	UpdateClient = op.Declare[UpdateClientInput, Client](op.Meta{
		ID: "clients.update", Method: "PATCH", Path: "/clients/:client_id", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary:     "Update a client",
		Description: "Changes the fields that are sent and leaves the others. At least one must be sent.", Fails: []domain.Code{domain.Conflict},
	})
)

// ListClientsInput asks for a page of clients.
type ListClientsInput struct {
	Query struct {
		op.Paging
		IDs          *op.IDList[domain.ClientKind] `query:"ids" doc:"Comma-separated client ids, 500 at most. Unknown ids, and ids out of reach, are left out; an empty list means none."`
		Q            string                        `query:"q" validate:"max=500" doc:"Only clients whose name contains this text, in any case."`
		ExternalID   string                        `query:"external_id" since:"2.4" validate:"max=500" doc:"Only clients with exactly this external_id. Several may have the same."`
		UpdatedSince *domain.Time                  `query:"updated_since" doc:"Only clients that changed at or after this time."`
		Sort         domain.ClientSort             `query:"sort" validate:"enum" default:"name" doc:"Order of the list; a leading minus sign reverses it. By risk_score the riskiest come first, for low scores are the risky ones."`
	}
}

// GetClientInput asks for one client.
type GetClientInput struct{ Path ClientPath }

// CreateClientInput asks for a new client.
type CreateClientInput struct {
	Body struct {
		Name       string  `json:"name" validate:"filled,max=200,name" doc:"The client's name, unique within the partner."`
		Industry   *string `json:"industry,omitzero" validate:"omitnil,max=500" doc:"A label for benchmarks."`
		ExternalID *string `json:"external_id,omitzero" validate:"omitnil,max=500" doc:"The partner's own identifier, stored and returned as it is. Several clients may have the same."`
	}
}

// UpdateClientInput asks for changes to a client.
type UpdateClientInput struct {
	Path ClientPath
	Body struct {
		Name       domain.Optional[string]  `json:"name,omitzero" validate:"omitnil,filled,max=200,name" doc:"The new name, unique within the partner."`
		Industry   domain.Optional[*string] `json:"industry,omitzero" validate:"omitnil,max=500" doc:"The new label for benchmarks. Null clears it."`
		ExternalID domain.Optional[*string] `json:"external_id,omitzero" validate:"omitnil,max=500" doc:"The partner's own identifier. Null clears it."`
	}
}
