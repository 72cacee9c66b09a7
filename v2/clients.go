package v2

import (
	"context"
	"time"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Client is a client as v2 shows it.
type Client struct {
	ID         domain.ClientID `json:"id"`
	Name       string          `json:"name"`
	Industry   *string         `json:"industry"`
	ExternalID *string         `json:"external_id" doc:"The partner's own identifier, stored and returned as it is."`
	CreatedAt  op.Time         `json:"created_at"`
	UpdatedAt  op.Time         `json:"updated_at"`
	Users      ClientUsers     `json:"users"`
	Risk       ClientScore     `json:"risk"`
	Training   ClientTraining  `json:"training"`
	Phishing   ClientPhishing  `json:"phishing"`
	Frameworks []string        `json:"frameworks" doc:"Ids of the frameworks assigned to the client."`
	Features   ClientFeatures  `json:"features"`

	// What v1 shows of a client and v2 does not.
	ClickRateTotal float64 `json:"-"`
	ClickRateYear  float64 `json:"-"`
}

// ClientUsers counts a client's users by state.
type ClientUsers struct {
	Active   int `json:"active"`
	Inactive int `json:"inactive"`
}

// ClientScore sums up the risk of a client's active users.
type ClientScore struct {
	AverageScore  int          `json:"average_score"`
	Grade         domain.Grade `json:"grade"`
	HighRiskUsers int          `json:"high_risk_users" doc:"Active users graded D or F."`
}

// ClientTraining sums up the training of a client's active users.
type ClientTraining struct {
	OnTrackRate  float64 `json:"on_track_rate" doc:"Percentage of active users with no overdue course."`
	OverdueUsers int     `json:"overdue_users"`
}

// ClientPhishing is the rates of the simulated mails of the last 90 days.
type ClientPhishing struct {
	ClickRate90d  float64 `json:"click_rate_90d"`
	ReportRate90d float64 `json:"report_rate_90d"`
}

// ClientFeatures says what a client has switched on.
type ClientFeatures struct {
	DarkWebMonitoring bool              `json:"dark_web_monitoring"`
	DirectorySync     *domain.Directory `json:"directory_sync"`
}

// BudgetClient is the client that a call is charged to.
func (c Client) BudgetClient() domain.ClientID { return c.ID }

func clientOf(c domain.Client) Client {
	return Client{
		ID: c.ID, Name: c.Name, Industry: c.Industry, ExternalID: c.ExternalID,
		CreatedAt: op.At(c.CreatedAt), UpdatedAt: op.At(c.UpdatedAt),
		Users:      ClientUsers{Active: c.ActiveUsers, Inactive: c.InactiveUsers},
		Risk:       ClientScore{AverageScore: c.Summary.AverageScore, Grade: domain.GradeOf(c.Summary.AverageScore), HighRiskUsers: c.Summary.HighRiskUsers},
		Training:   ClientTraining{OnTrackRate: c.Summary.OnTrackRate, OverdueUsers: c.Summary.OverdueUsers},
		Phishing:   ClientPhishing{ClickRate90d: c.Summary.ClickRate90d, ReportRate90d: c.Summary.ReportRate90d},
		Frameworks: c.Frameworks,
		Features:   ClientFeatures{DarkWebMonitoring: c.DarkWebMonitoring, DirectorySync: c.DirectorySync},

		ClickRateTotal: c.Summary.ClickRateTotal, ClickRateYear: c.Summary.ClickRate365d,
	}
}

func (a *API) declareClients() {
	a.ListClients = op.Add(&a.Set, op.Meta{
		ID: "clients.list", Method: "GET", Path: "/clients", Scope: domain.Read, Since: op.V2_0, Status: 200,
		Summary: "List the clients that the key reaches",
	}, a.listClients)
	a.GetClient = op.Add(&a.Set, op.Meta{
		ID: "clients.get", Method: "GET", Path: "/clients/:client_id", Scope: domain.Read, Since: op.V2_0, Status: 200, PerClient: 60,
		Summary: "Read a client",
	}, a.getClient)
	a.CreateClient = op.Add(&a.Set, op.Meta{
		ID: "clients.create", Method: "POST", Path: "/clients", Scope: domain.Write, Since: op.V2_2, Status: 201,
		AllClients: true, Summary: "Create a client", Fails: []domain.Code{domain.Conflict},
	}, a.createClient)
	a.UpdateClient = op.Add(&a.Set, op.Meta{
		ID: "clients.update", Method: "PATCH", Path: "/clients/:client_id", Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Update a client", Fails: []domain.Code{domain.Conflict},
	}, a.updateClient)
}

// ListClients asks for a page of clients.
type ListClients struct {
	Query struct {
		op.Paging
		IDs          *op.IDList[domain.ClientKind] `query:"ids" doc:"Comma-separated client ids, 500 at most; unknown ones are left out."`
		Q            string                        `query:"q" validate:"max=500" doc:"What the name contains, in any case."`
		UpdatedSince *op.Time                      `query:"updated_since" doc:"Only clients that changed at or after this time."`
		Sort         domain.ClientSort             `query:"sort" validate:"enum" default:"name"`
	}
}

// listClients refreshes the summaries that the page shows before it reads it,
// except on a walk's later pages, so that a walk by risk_score stands still.
func (a *API) listClients(ctx context.Context, in *ListClients) (*op.Page[Client], error) {
	q := in.Query
	filter := domain.ClientFilter{Query: q.Q, Sort: domain.Sort(q.Sort)}
	if q.IDs != nil {
		filter.IDs = q.IDs.IDs
	}
	if q.UpdatedSince != nil {
		filter.UpdatedSince = &q.UpdatedSince.Time
	}
	list := op.NewList(a.cursors, "clients.list", filter)
	return mapPage(list, q.Paging, func(w domain.Window) (domain.Slice[domain.Client], error) {
		return a.freshClients(ctx, filter, w)
	}, clientOf)
}

func (a *API) freshClients(ctx context.Context, filter domain.ClientFilter, w domain.Window) (domain.Slice[domain.Client], error) {
	summaryDecides := filter.UpdatedSince != nil || filter.Sort.By() == "risk_score"
	if summaryDecides && w.After == nil {
		if err := a.db.RefreshReachable(ctx); err != nil {
			return domain.Slice[domain.Client]{}, err
		}
	}
	slice, err := a.db.Clients(ctx, filter, w)
	if err != nil || summaryDecides || w.After != nil {
		return slice, err
	}
	refreshed, err := a.refreshStale(ctx, slice.Rows...)
	if err != nil || !refreshed {
		return slice, err
	}
	total := slice.Total // summaries do not move it: one count is enough
	w.Total = false
	slice, err = a.db.Clients(ctx, filter, w)
	slice.Total = total
	return slice, err
}

// refreshStale refreshes the summaries that are too old, in one statement, and
// reports whether there were any.
func (a *API) refreshStale(ctx context.Context, clients ...domain.Client) (bool, error) {
	var stale []domain.ClientID
	oldest := a.db.Now().Add(-domain.SummaryAge)
	for _, c := range clients {
		if c.Summary.At.Before(oldest) {
			stale = append(stale, c.ID)
		}
	}
	if len(stale) == 0 {
		return false, nil
	}
	return true, a.db.RefreshSummaries(ctx, stale)
}

// GetClient asks for one client.
type GetClient struct {
	Path clientPath
}

func (a *API) getClient(ctx context.Context, in *GetClient) (*Client, error) {
	c, err := a.freshClient(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	out := clientOf(c)
	return &out, nil
}

// freshClient reads a client whose summary is not too old.
func (a *API) freshClient(ctx context.Context, id domain.ClientID) (domain.Client, error) {
	c, err := a.db.Client(ctx, id)
	if err != nil {
		return c, err
	}
	if refreshed, err := a.refreshStale(ctx, c); err != nil || !refreshed {
		return c, err
	}
	return a.db.Client(ctx, id)
}

// CreateClient asks for a new client.
type CreateClient struct {
	Body struct {
		Name       string  `json:"name" validate:"filled,max=200,name"`
		Industry   *string `json:"industry,omitzero" validate:"omitnil,max=500" doc:"A label for benchmarks."`
		ExternalID *string `json:"external_id,omitzero" validate:"omitnil,max=500" doc:"The partner's own identifier."`
	}
}

func (a *API) createClient(ctx context.Context, in *CreateClient) (*Client, error) {
	now := a.db.Now()
	c := domain.Client{
		ID: db.NewID[domain.ClientKind](), Partner: domain.CallerFrom(ctx).Partner, Name: in.Body.Name, Industry: in.Body.Industry, ExternalID: in.Body.ExternalID,
		DarkWebMonitoring: true, Frameworks: []string{}, Summary: domain.EmptySummary(now), CreatedAt: now, UpdatedAt: now,
	}
	err := a.db.Tx(ctx, func(ctx context.Context) error {
		if err := a.db.InsertClient(ctx, c); err != nil {
			return err
		}
		return a.db.InsertEvent(ctx, domain.ClientCreated, c.ID, nil, now)
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
		Name       op.Optional[string]  `json:"name,omitzero" validate:"omitnil,filled,max=200,name"`
		Industry   op.Optional[*string] `json:"industry,omitzero" validate:"omitnil,max=500"`
		ExternalID op.Optional[*string] `json:"external_id,omitzero" validate:"omitnil,max=500"`
	}
}

func (a *API) updateClient(ctx context.Context, req *UpdateClient) (*Client, error) {
	c, err := inTx(ctx, a.db, func(ctx context.Context) (domain.Client, error) {
		c, err := a.db.LockClient(ctx, req.Path.ClientID)
		if err != nil || !changeClient(&c, req, a.db.Now()) {
			return c, err
		}
		return c, a.db.UpdateClient(ctx, c)
	})
	if err != nil {
		return nil, err
	}
	if c, err = a.freshClient(ctx, c.ID); err != nil {
		return nil, err
	}
	out := clientOf(c)
	return &out, nil
}

// changeClient applies what is asked for and reports whether it changes c.
func changeClient(c *domain.Client, req *UpdateClient, now time.Time) bool {
	changed := op.Apply(req.Body.Name, &c.Name)
	changed = op.ApplyNullable(req.Body.Industry, &c.Industry) || changed
	changed = op.ApplyNullable(req.Body.ExternalID, &c.ExternalID) || changed
	if changed {
		c.UpdatedAt = now
	}
	return changed
}
