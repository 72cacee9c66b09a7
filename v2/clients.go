package v2

import (
	"context"

	"partnerapi/db"
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
	Phishing   ClientPhishing  `json:"phishing" doc:"What became of the simulated mails of the last 90 days. At most 5 minutes old."`
	Frameworks []string        `json:"frameworks" doc:"Ids of the frameworks assigned to the client, each once, sorted."`
	Features   ClientFeatures  `json:"features" doc:"What the client has switched on."`

	// What v1 shows of a client and v2 does not.
	ClickRateTotal float64 `json:"-"`
	ClickRateYear  float64 `json:"-"`
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

// ClientPhishing is the rates of the simulated mails of the last 90 days.
type ClientPhishing struct {
	ClickRate90d  float64 `json:"click_rate_90d" doc:"Percentage of the mails sent in the last 90 days that were clicked, 0 to 100. Submitted credentials and opened attachments count as clicks; mail scanners do not."`
	ReportRate90d float64 `json:"report_rate_90d" doc:"Percentage of the mails sent in the last 90 days that were reported, 0 to 100."`
}

// ClientFeatures says what a client has switched on.
type ClientFeatures struct {
	DarkWebMonitoring bool              `json:"dark_web_monitoring" doc:"Whether Dark Web Monitoring is enabled."`
	DirectorySync     *domain.Directory `json:"directory_sync" doc:"The directory that the users are synced with. Null for none."`
}

// BudgetClient is the client that a call is charged to.
func (c Client) BudgetClient() domain.ClientID { return c.ID }

func clientOf(c domain.Client) Client {
	return Client{
		ID: c.ID, Name: c.Name, Industry: c.Industry, ExternalID: c.ExternalID,
		CreatedAt: domain.At(c.CreatedAt), UpdatedAt: domain.At(c.UpdatedAt),
		Users: ClientUsers{Active: c.ActiveUsers, Inactive: c.InactiveUsers},
		Risk: ClientScore{
			AverageScore: c.Summary.AverageScore, Grade: domain.GradeOf(c.Summary.AverageScore),
			HighRiskUsers: c.Summary.HighRiskUsers,
		},
		Training:   ClientTraining{OnTrackRate: c.Summary.OnTrackRate, OverdueUsers: c.Summary.OverdueUsers},
		Phishing:   ClientPhishing{ClickRate90d: c.Summary.ClickRate90d, ReportRate90d: c.Summary.ReportRate90d},
		Frameworks: c.Frameworks,
		Features:   ClientFeatures{DarkWebMonitoring: c.DarkWebMonitoring, DirectorySync: c.DirectorySync},

		ClickRateTotal: c.Summary.ClickRateTotal, ClickRateYear: c.Summary.ClickRate365d,
	}
}

func (a *API) declareClients() {
	a.ListClients = op.AddList(&a.Set, op.Meta{
		ID: "clients.list", Method: "GET", Path: "/clients", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List the clients that the key reaches",
		Description: "Returns every client that the key reaches with a summary: users are counted at the moment, the other " +
			"figures may be 5 minutes old. Call it once per sync run, with `updated_since` to fetch only what " +
			"changed.",
		Columns: []string{"id", "name", "users.active", "risk.average_score", "risk.grade", "risk.high_risk_users", "training.overdue_users", "phishing.click_rate_90d"},
	}, a.listClients, clientOf)
	a.GetClient = op.Add(&a.Set, op.Meta{
		ID: "clients.get", Method: "GET", Path: "/clients/:client_id", Scope: domain.Read, Since: op.V2_0,
		Status: 200, PerClient: 60, Summary: "Read a client",
		Description: "Returns one client with its summary, whose figures may be 5 minutes old. More frequent calls " +
			"return the same figures.",
	}, a.getClient)
	a.CreateClient = op.Add(&a.Set, op.Meta{
		ID: "clients.create", Method: "POST", Path: "/clients", Scope: domain.Write, Since: op.V2_2, Status: 201,
		AllClients: true, Summary: "Create a client",
		Description: "Creates a client that starts with the foundational training program and appears in the list of " +
			"clients at once. Archiving and deleting clients is done in the dashboard.", Fails: []domain.Code{domain.Conflict},
	}, a.createClient)
	a.UpdateClient = op.Add(&a.Set, op.Meta{
		ID: "clients.update", Method: "PATCH", Path: "/clients/:client_id", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary:     "Update a client",
		Description: "Changes the fields that are sent and leaves the others. At least one must be sent.", Fails: []domain.Code{domain.Conflict},
	}, a.updateClient)
}

// ListClients asks for a page of clients.
type ListClients struct {
	Query struct {
		op.Paging
		IDs          *op.IDList[domain.ClientKind] `query:"ids" doc:"Comma-separated client ids, 500 at most. Unknown ids, and ids out of reach, are left out; an empty list means none."`
		Q            string                        `query:"q" validate:"max=500" doc:"Only clients whose name contains this text, in any case."`
		UpdatedSince *domain.Time                  `query:"updated_since" doc:"Only clients that changed at or after this time."`
		Sort         domain.ClientSort             `query:"sort" validate:"enum" default:"name" doc:"Order of the list; a leading minus sign reverses it. By risk_score the riskiest come first, for low scores are the risky ones."`
	}
}

func (a *API) listClients(ctx context.Context, in *ListClients, w domain.Window) (domain.Slice[domain.Client], error) {
	q := in.Query
	filter := domain.ClientFilter{Query: q.Q, Sort: domain.Sort(q.Sort)}
	if q.IDs != nil {
		filter.IDs = q.IDs.IDs
	}
	if q.UpdatedSince != nil {
		filter.UpdatedSince = &q.UpdatedSince.Time
	}
	return a.db.Clients(ctx, filter, w)
}

// GetClient asks for one client.
type GetClient struct {
	Path clientPath
}

func (a *API) getClient(ctx context.Context, in *GetClient) (*Client, error) {
	t, err := a.db.FreshTenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	out := clientOf(t.Client)
	return &out, nil
}

// CreateClient asks for a new client.
type CreateClient struct {
	Body struct {
		Name       string  `json:"name" validate:"filled,max=200,name" doc:"The client's name, unique within the partner."`
		Industry   *string `json:"industry,omitzero" validate:"omitnil,max=500" doc:"A label for benchmarks."`
		ExternalID *string `json:"external_id,omitzero" validate:"omitnil,max=500" doc:"The partner's own identifier, stored and returned as it is. It is not looked up."`
	}
}

func (a *API) createClient(ctx context.Context, in *CreateClient) (*Client, error) {
	now := a.db.Now()
	c := domain.Client{
		ID: db.NewID[domain.ClientKind](), Partner: domain.CallerFrom(ctx).Partner,
		Name: in.Body.Name, Industry: in.Body.Industry, ExternalID: in.Body.ExternalID,
		DarkWebMonitoring: true, Frameworks: []string{}, Summary: domain.EmptySummary(now), CreatedAt: now, UpdatedAt: now,
	}
	err := a.db.Change(ctx, func(ctx context.Context, change *db.Change) error {
		change.ClientEvent(domain.ClientCreated, c.ID)
		return change.InsertClient(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	out := clientOf(c)
	return &out, nil
}

// UpdateClient asks for changes to a client.
type UpdateClient struct {
	Path clientPath
	Body struct {
		Name       domain.Optional[string]  `json:"name,omitzero" validate:"omitnil,filled,max=200,name" doc:"The new name, unique within the partner."`
		Industry   domain.Optional[*string] `json:"industry,omitzero" validate:"omitnil,max=500" doc:"The new label for benchmarks. Null clears it."`
		ExternalID domain.Optional[*string] `json:"external_id,omitzero" validate:"omitnil,max=500" doc:"The partner's own identifier. Null clears it."`
	}
}

func (a *API) updateClient(ctx context.Context, req *UpdateClient) (*Client, error) {
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		t, err := c.LockTenant(ctx, req.Path.ClientID)
		if err != nil || !changeClient(&t.Client, req) {
			return err
		}
		return t.Update(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	return a.getClient(ctx, &GetClient{Path: req.Path})
}

// changeClient applies what is asked for and reports whether it changes c.
func changeClient(c *domain.Client, req *UpdateClient) bool {
	changed := domain.Apply(req.Body.Name, &c.Name)
	changed = domain.ApplyNullable(req.Body.Industry, &c.Industry) || changed
	return domain.ApplyNullable(req.Body.ExternalID, &c.ExternalID) || changed
}
