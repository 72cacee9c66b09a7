package v2

import (
	"context"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Exposure is an exposure as v2 shows it. What it says of a breach that was
// imported is Have I Been Pwned's, and credited where the document explains it.
type Exposure struct {
	UserID      domain.UserID   `json:"user_id" doc:"The user whose data was found."`
	BreachName  string          `json:"breach_name" doc:"Stable name of the breach. Data on breaches comes from Have I Been Pwned (https://haveibeenpwned.com), under the licence CC BY 4.0: credit it where you show it."`
	Title       string          `json:"title" doc:"Title of the breach."`
	Domain      *string         `json:"domain" doc:"Domain of the service that was breached. Null where there is none."`
	BreachOn    *domain.Date    `json:"breach_on" doc:"Day of the breach. Null where it is not known."`
	Severity    domain.Severity `json:"severity" doc:"How grave the exposure is. critical: passwords; high: sensitive personal data; medium: basic account data; low: spam lists."`
	DataClasses []string        `json:"data_classes" doc:"Kinds of data that were exposed."`
	FirstSeenAt domain.Time     `json:"first_seen_at" doc:"When the exposure was found."`
	NotifiedAt  *domain.Time    `json:"notified_at" doc:"When the user was told. Null for not yet."`
	ResolvedAt  *domain.Time    `json:"resolved_at" doc:"When the exposure was resolved. Null for not yet."`
}

// DarkWebUser is a user with the numbers of exposures.
type DarkWebUser struct {
	UserID              domain.UserID `json:"user_id" doc:"Opaque id of the user."`
	Email               string        `json:"email" format:"email" doc:"The user's address."`
	FirstName           string        `json:"first_name" doc:"First name; may be empty."`
	LastName            string        `json:"last_name" doc:"Last name; may be empty."`
	ResolvedExposures   int           `json:"resolved_exposures" doc:"Number of exposures that are resolved today."`
	UnresolvedExposures int           `json:"unresolved_exposures" doc:"Number of exposures that are not resolved today."`
}

// DarkWeb says whether a client is watched for exposures, and what was found.
type DarkWeb struct {
	Enabled bool            `json:"enabled" doc:"Whether Dark Web Monitoring is enabled for the client."`
	Summary *DarkWebSummary `json:"summary" doc:"What was found. Null where Dark Web Monitoring is not enabled."`

	client domain.ClientID
}

// BudgetClient is the client that a call is charged to.
func (d DarkWeb) BudgetClient() domain.ClientID { return d.client }

// DarkWebSummary sums up the exposures of a client's active users.
type DarkWebSummary struct {
	UnresolvedExposures int               `json:"unresolved_exposures" doc:"Number of exposures that are not resolved."`
	ResolvedExposures   int               `json:"resolved_exposures" doc:"Number of exposures that are resolved."`
	AffectedUsers       int               `json:"affected_users" doc:"Number of users with an unresolved exposure."`
	BySeverity          domain.BySeverity `json:"by_severity" doc:"Unresolved exposures per severity."`
	LastFoundAt         *domain.Time      `json:"last_found_at" doc:"When an exposure was last found. Null for never."`
}

func exposureOf(e domain.Exposure) Exposure {
	return Exposure{
		UserID: e.User, BreachName: e.Breach, Title: e.Title, Domain: e.Domain, BreachOn: e.BreachOn,
		Severity: e.Severity, DataClasses: e.DataClasses,
		FirstSeenAt: domain.At(e.FirstSeenAt), NotifiedAt: domain.MaybeAt(e.NotifiedAt), ResolvedAt: domain.MaybeAt(e.ResolvedAt),
	}
}

func darkWebUserOf(c domain.ExposureCount) DarkWebUser {
	return DarkWebUser{
		UserID: c.User, Email: c.Email, FirstName: c.FirstName, LastName: c.LastName,
		ResolvedExposures: c.Resolved, UnresolvedExposures: c.Unresolved,
	}
}

func (a *API) declareExposures() {
	a.GetDarkWeb = op.Add(&a.Set, op.Meta{
		ID: "clients.dark_web", Tag: "dark_web", Method: "GET", Path: "/clients/:client_id/dark-web",
		Scope: domain.Read, Since: op.V2_1, Status: 200, PerClient: 30,
		Summary: "Read the dark-web summary of a client",
		Description: "Returns what Dark Web Monitoring found for the users of a client: exposures by state and " +
			"severity, and how many users they affect.",
	}, a.getDarkWeb)

	a.ListExposures = op.AddList(&a.Set, op.Meta{
		ID: "dark_web.exposures.list", Starred: true, Method: "GET", Path: "/clients/:client_id/dark-web/exposures",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the exposures of a client",
		Description: "Returns every exposure of the client's users, inactive users included, by when it was first " +
			"seen. Forbidden where Dark Web Monitoring is not enabled.",
		Columns: []string{"user_id", "breach_name", "severity", "first_seen_at", "resolved_at"},
	}, a.listExposures, exposureOf)

	a.ListDarkWebUsers = op.AddList(&a.Set, op.Meta{
		ID: "dark_web.users.list", Starred: true, Method: "GET", Path: "/clients/:client_id/dark-web/users",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List the exposure counts of a client's users",
		Description: "Returns every active user with the numbers of exposures, also users without any; forbidden where " +
			"Dark Web Monitoring is not enabled. `since` and `until` bound when the exposures were first seen; " +
			"whether they are resolved is as of today.",
		Columns: []string{"user_id", "email", "unresolved_exposures", "resolved_exposures"},
	}, a.listDarkWebUsers, darkWebUserOf)

	a.ResolveExposure = op.Add(&a.Set, op.Meta{
		ID: "exposures.resolve", Tag: "dark_web", Method: "POST", Path: "/users/:user_id/exposures/:breach_name/resolve",
		Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Resolve an exposure",
		Description: "Marks the exposure as resolved, which takes its weight from the user's risk score. Resolving it " +
			"again changes nothing.",
	}, a.resolveExposure)
}

// GetDarkWeb asks for what is known of a client's exposures.
type GetDarkWeb struct {
	Path clientPath
}

func (a *API) getDarkWeb(ctx context.Context, in *GetDarkWeb) (*DarkWeb, error) {
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return nil, err
	}
	out := &DarkWeb{Enabled: t.DarkWebMonitoring, client: t.ID}
	if !out.Enabled {
		return out, nil
	}

	sum, err := t.DarkWeb(ctx)
	if err != nil {
		return nil, err
	}
	out.Summary = &DarkWebSummary{
		UnresolvedExposures: sum.Unresolved, ResolvedExposures: sum.Resolved, AffectedUsers: sum.Affected,
		BySeverity: sum.By, LastFoundAt: domain.MaybeAt(sum.LastFoundAt),
	}
	return out, nil
}

// seenWithin is the part of a query that says when exposures were first seen.
type seenWithin struct {
	Since *domain.Time `query:"since" doc:"Only exposures first seen at or after this time."`
	Until *domain.Time `query:"until" doc:"Only exposures first seen before this time."`
}

func (q seenWithin) period() (domain.Period, error) { return period(q.Since, q.Until) }

// ListExposures asks for a page of the exposures of a client's users.
type ListExposures struct {
	Path  clientPath
	Query struct {
		op.Paging
		seenWithin
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only exposures that changed at or after this time."`
	}
}

func (a *API) listExposures(
	ctx context.Context, in *ListExposures, w domain.Window,
) (domain.Slice[domain.Exposure], error) {
	within, err := in.Query.period()
	if err != nil {
		return domain.Slice[domain.Exposure]{}, err
	}
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.Exposure]{}, err
	}
	return t.Exposures(ctx, within, bound(in.Query.UpdatedSince), w)
}

// ListDarkWebUsers asks for a page of a client's active users with the numbers
// of their exposures.
type ListDarkWebUsers struct {
	Path  clientPath
	Query struct {
		op.Paging
		seenWithin
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only users whose record or exposures changed at or after this time."`
	}
}

func (a *API) listDarkWebUsers(
	ctx context.Context, in *ListDarkWebUsers, w domain.Window,
) (domain.Slice[domain.ExposureCount], error) {
	within, err := in.Query.period()
	if err != nil {
		return domain.Slice[domain.ExposureCount]{}, err
	}
	t, err := a.db.Tenant(ctx, in.Path.ClientID)
	if err != nil {
		return domain.Slice[domain.ExposureCount]{}, err
	}
	return t.ExposureCounts(ctx, within, bound(in.Query.UpdatedSince), w)
}

// ResolveExposure asks for an exposure to be resolved.
type ResolveExposure struct {
	Path struct {
		userPath
		BreachName string `path:"breach_name" validate:"max=500" doc:"The breach_name of the exposure."`
	}
}

func (a *API) resolveExposure(ctx context.Context, in *ResolveExposure) (*Exposure, error) {
	var out Exposure
	err := a.db.Change(ctx, func(ctx context.Context, c *db.Change) error {
		u, err := c.LockUser(ctx, in.Path.UserID)
		if err != nil {
			return err
		}
		e, err := u.ResolveExposure(ctx, c, in.Path.BreachName)
		out = exposureOf(e)
		return err
	})
	return &out, err
}
