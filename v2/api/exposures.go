package api

import (
	"partnerapi/domain"
	"partnerapi/v2/op"
)

// Exposure is an exposure as v2 shows it. Data on imported breaches is from Have I Been Pwned: the document credits it.
type Exposure struct {
	UserID      domain.UserID   `json:"user_id" doc:"The user whose data was found."`
	BreachName  string          `json:"breach_name" doc:"Stable name of the breach. Breach data comes from Have I Been Pwned (https://haveibeenpwned.com) under the CC BY 4.0 license; credit the source if you show the data."`
	Title       string          `json:"title" doc:"Title of the breach."`
	Domain      *string         `json:"domain" doc:"Domain of the breached service. Null if there is none."`
	BreachOn    *domain.Date    `json:"breach_on" doc:"Date of the breach. Null if not known."`
	Severity    domain.Severity `json:"severity" doc:"Severity of the exposure. critical: passwords and other secrets that give access; high: sensitive personal data; medium: basic account data; low: spam lists."`
	DataClasses []string        `json:"data_classes" doc:"Kinds of data that were exposed."`
	FirstSeenAt domain.Time     `json:"first_seen_at" doc:"When the exposure was found."`
	NotifiedAt  *domain.Time    `json:"notified_at" doc:"When the user was notified. Null if not notified yet."`
	ResolvedAt  *domain.Time    `json:"resolved_at" doc:"When the exposure was resolved. Null if not resolved yet."`
	UpdatedAt   domain.Time     `json:"updated_at" since:"2.5" doc:"When the exposure last changed. updated_since filters by this time."`
}

// DarkWebUser is a user with exposure counts.
type DarkWebUser struct {
	UserID              domain.UserID `json:"user_id" doc:"Opaque ID of the user."`
	Email               string        `json:"email" format:"email" doc:"The user's email address."`
	FirstName           string        `json:"first_name" doc:"First name. Can be empty."`
	LastName            string        `json:"last_name" doc:"Last name. Can be empty."`
	ResolvedExposures   int           `json:"resolved_exposures" doc:"Number of the user's exposures that are currently resolved."`
	UnresolvedExposures int           `json:"unresolved_exposures" doc:"Number of the user's exposures that are currently unresolved."`
	UpdatedAt           domain.Time   `json:"updated_at" since:"2.5" doc:"When the user's record or exposures last changed. updated_since filters by this time."`
}

// DarkWeb says whether Dark Web Monitoring is enabled for a client, and what it found.
type DarkWeb struct {
	Enabled bool            `json:"enabled" doc:"Whether Dark Web Monitoring is enabled for the client."`
	Summary *DarkWebSummary `json:"summary" doc:"Exposure counts. Null if Dark Web Monitoring is not enabled."`

	// Client is the client whose budget the call counts against.
	Client domain.ClientID `json:"-"`
}

// BudgetClient returns the client whose budget the call counts against.
func (d DarkWeb) BudgetClient() domain.ClientID { return d.Client }

// DarkWebSummary sums up the exposures of a client's active users.
type DarkWebSummary struct {
	UnresolvedExposures int               `json:"unresolved_exposures" doc:"Number of unresolved exposures."`
	ResolvedExposures   int               `json:"resolved_exposures" doc:"Number of resolved exposures."`
	AffectedUsers       int               `json:"affected_users" doc:"Number of users with at least one unresolved exposure."`
	BySeverity          domain.BySeverity `json:"by_severity" doc:"Number of unresolved exposures by severity."`
	LastFoundAt         *domain.Time      `json:"last_found_at" doc:"When an exposure was last found. Null if never."`
}

// The operations on exposures.
var (
	GetDarkWeb = op.Declare[GetDarkWebInput, DarkWeb](op.Meta{
		ID: "clients.dark_web", Tag: "dark_web", Method: "GET", Path: "/clients/:client_id/dark-web",
		Scope: domain.Read, Since: op.V2_1, Status: 200, PerClient: 30,
		Summary:     "Get a client's dark web summary",
		Description: "Returns exposure counts for the client's active users by status and severity, and the number of affected users.",
	})
	ListExposures = op.DeclareList[ListExposuresInput, Exposure](op.Meta{
		ID: "dark_web.exposures.list", Starred: true, Method: "GET", Path: "/clients/:client_id/dark-web/exposures",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List exposures",
		Description: "Returns all exposures of the client's active and inactive users, in the order in which they were first " +
			"seen. Returns 403 if Dark Web Monitoring is not enabled for the client.",
		Columns: []string{"user_id", "breach_name", "severity", "first_seen_at", "resolved_at"},
	})
	ListDarkWebUsers = op.DeclareList[ListDarkWebUsersInput, DarkWebUser](op.Meta{
		ID: "dark_web.users.list", Starred: true, Method: "GET", Path: "/clients/:client_id/dark-web/users",
		Scope: domain.Read, Since: op.V2_1, Status: 200,
		Summary: "List exposure counts by user",
		Description: "Returns all active users, including users without exposures, each with counts of resolved and unresolved " +
			"exposures; `since` and `until` limit the counts to exposures first seen between these times. Returns 403 if Dark Web " +
			"Monitoring is not enabled for the client.",
		Columns: []string{"user_id", "email", "unresolved_exposures", "resolved_exposures"},
	})
	ResolveExposure = op.Declare[ResolveExposureInput, Exposure](op.Meta{
		ID: "exposures.resolve", Tag: "dark_web", Method: "POST", Path: "/users/:user_id/exposures/:breach_name/resolve",
		Scope: domain.Write, Since: op.V2_2, Status: 200,
		Summary: "Resolve an exposure",
		Description: "Marks the exposure as resolved, which removes its weight from the user's risk score. Resolving an exposure " +
			"again changes nothing.",
	})
)

// GetDarkWebInput asks for a summary of a client's exposures.
type GetDarkWebInput struct{ Path ClientPath }

// SeenWithin is the part of a query with the period in which exposures were first seen.
type SeenWithin struct {
	Since *domain.Time `query:"since" doc:"Only exposures first seen at or after this time."`
	Until *domain.Time `query:"until" doc:"Only exposures first seen before this time."`
}

// ListExposuresInput asks for a page of the exposures of a client's users.
type ListExposuresInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		SeenWithin
		UpdatedSince *domain.Time        `query:"updated_since" doc:"Only exposures that changed at or after this time."`
		Sort         domain.ExposureSort `query:"sort" since:"2.5" validate:"omitempty,enum" doc:"Order of the list: first_seen_at (default), or -first_seen_at to list the newest exposures first."`
	}
}

// ListDarkWebUsersInput asks for a page of a client's active users with their exposure counts.
type ListDarkWebUsersInput struct {
	Path  ClientPath
	Query struct {
		op.Paging
		SeenWithin
		UpdatedSince *domain.Time `query:"updated_since" doc:"Only users whose record or exposures changed at or after this time."`
	}
}

// ResolveExposureInput asks for an exposure to be resolved.
type ResolveExposureInput struct {
	Path struct {
		UserPath
		BreachName string `path:"breach_name" validate:"max=500" doc:"The breach_name of the exposure."`
	}
}
