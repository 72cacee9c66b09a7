package domain

import "time"

// Client is an organization that a partner runs training for: a tenant.
type Client struct {
	ID         ClientID
	Partner    PartnerID
	Name       string
	Industry   *string
	ExternalID *string
	// DarkWebMonitoring says that the client's users are watched for exposures.
	DarkWebMonitoring bool
	// DirectorySync names the directory that users come from; nil for none.
	DirectorySync *Directory
	// Frameworks are the ids of the frameworks assigned, in alphabetical order.
	Frameworks []string
	// ActiveUsers and InactiveUsers are always current.
	ActiveUsers   int
	InactiveUsers int
	Summary       ClientSummary
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// ClientSummary aggregates a client's users. It may be SummaryAge old.
type ClientSummary struct {
	// AverageScore is that of the active users, rounded half up; 750 for none.
	AverageScore int
	// HighRiskUsers counts active users graded D or F, OverdueUsers those with a
	// course past its due date.
	HighRiskUsers int
	OverdueUsers  int
	// The rates are percentages with one decimal. Click and report rates are of
	// the simulated mails sent in the last 90 or 365 days, or ever.
	OnTrackRate    float64
	ClickRate90d   float64
	ReportRate90d  float64
	ClickRate365d  float64
	ClickRateTotal float64
	At             time.Time
}

// SummaryAge is how old a client's summary may be before a read refreshes it
// (decisions 3.7).
const SummaryAge = 5 * time.Minute

// EmptySummary is the summary of a client without active users.
func EmptySummary(at time.Time) ClientSummary {
	return ClientSummary{AverageScore: 750, OnTrackRate: 100, At: at}
}

// Directory is a service that a client's users are kept in.
type Directory string

// The directories that a client's users can be synced from.
const (
	Microsoft Directory = "microsoft"
	Google    Directory = "google"
)

// Values lists the directories.
func (Directory) Values() []string { return texts(Microsoft, Google) }

// ClientSort is an order of a list of clients.
type ClientSort string

// Values lists the orders.
func (ClientSort) Values() []string {
	return []string{"name", "-name", "created_at", "-created_at", "risk_score", "-risk_score"}
}

// ClientFilter says which clients are wanted, and in which order.
type ClientFilter struct {
	// IDs restricts the list to these clients; nil does not.
	IDs []ClientID
	// Query is what the name contains, in any case.
	Query string
	// ExternalID is the partner's own identifier, exactly; empty for any.
	ExternalID   string
	UpdatedSince *time.Time
	Sort         Sort
}

// Admin is a person who uses the dashboard.
type Admin struct {
	ID    AdminID
	Email string
	Name  string
	Role  AdminRole
	// Client is the one client that the admin sees; nil for a partner's admin,
	// who sees all.
	Client      *ClientID
	LastLoginAt *time.Time
	CreatedAt   time.Time
}

// AdminRole is what an admin may do in the dashboard.
type AdminRole string

// The roles of admins.
const (
	OwnerRole  AdminRole = "owner"
	FullRole   AdminRole = "admin"
	ViewerRole AdminRole = "viewer"
)

// Values lists the roles of admins.
func (AdminRole) Values() []string { return texts(OwnerRole, FullRole, ViewerRole) }

// InviteRole is a role that an admin can be invited to.
type InviteRole string

// Values lists the roles that an admin can be invited to.
func (InviteRole) Values() []string { return texts(FullRole, ViewerRole) }

// Invite asks a person to become an admin of a client.
type Invite struct {
	ID        InviteID
	Client    ClientID
	Email     string
	Role      InviteRole
	CreatedAt time.Time
	ExpiresAt time.Time
}

// InviteLife is how long an invite stays open (decisions 3.14).
const InviteLife = 7 * 24 * time.Hour

// The limits of invites within sliding windows (decisions 3.14): each invite is a mail
// to an address that a caller names.
const (
	// MaxClientInvites is how many invites of a client are accepted within ClientInviteWindow.
	MaxClientInvites   = 20
	ClientInviteWindow = time.Hour
	// MaxPartnerInvites is how many invites of all clients of a partner are accepted
	// within PartnerInviteWindow.
	MaxPartnerInvites   = 100
	PartnerInviteWindow = 24 * time.Hour
)

// Partner is a managed-service provider.
type Partner struct {
	ID        PartnerID
	Name      string
	Admins    []Admin
	CreatedAt time.Time
}
