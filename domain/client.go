package domain

import "time"

// Client is an organization that a partner runs training for: a tenant.
type Client struct {
	ID         ClientID  `bun:",pk"`
	Partner    PartnerID `bun:"partner_id"`
	Name       string
	Industry   *string
	ExternalID *string
	// DarkWebMonitoring reports whether the client's users are monitored for exposures.
	DarkWebMonitoring bool
	// DirectorySync is the directory from which users are synced; nil for none.
	DirectorySync *Directory
	// Frameworks are the ids of the assigned frameworks, sorted and without duplicates.
	Frameworks []string `bun:"framework_ids,array"`
	// ActiveUsers and InactiveUsers are always current, unlike Summary.
	ActiveUsers   int           `bun:"users_active"`
	InactiveUsers int           `bun:"users_inactive"`
	Summary       ClientSummary `bun:"embed:"`
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// ClientSummary aggregates the data of a client's active users. It may be SummaryAge old.
type ClientSummary struct {
	// AverageScore is the average score of the active users, rounded half up; 750 without users.
	AverageScore int
	// HighRiskUsers is the number of active users graded D or F. OverdueUsers is the number of those with an overdue
	// course.
	HighRiskUsers int
	OverdueUsers  int
	// The rates are percentages with one decimal. Click and report rates are of the simulated emails sent in the last 90
	// or 365 days, or of all.
	OnTrackRate    float64
	ClickRate90d   float64 `bun:"click_rate_90d"`
	ReportRate90d  float64 `bun:"report_rate_90d"`
	ClickRate365d  float64 `bun:"click_rate_365d"`
	ClickRateTotal float64
	At             time.Time `bun:"summarized_at"`
}

// SummaryAge is the age at which a read refreshes a client's summary (decisions 3.7).
const SummaryAge = 5 * time.Minute

// EmptySummary returns the summary of a client without active users, as of a time.
func EmptySummary(at time.Time) ClientSummary {
	return ClientSummary{AverageScore: RoleStandard.Baseline(), OnTrackRate: 100, At: at}
}

// Directory is a provider of directories of users.
type Directory string

// The directories from which a client's users can be synced.
const (
	Microsoft Directory = "microsoft"
	Google    Directory = "google"
)

// Values lists the directories.
func (Directory) Values() []string { return texts(Microsoft, Google) }

// ClientSort is an order of a list of clients.
type ClientSort string

// Values lists the sort orders.
func (ClientSort) Values() []string {
	return []string{"name", "-name", "created_at", "-created_at", "risk_score", "-risk_score"}
}

// ClientFilter selects clients, and their order. A zero field but Sort does not restrict them.
type ClientFilter struct {
	// IDs selects the clients with these ids.
	IDs []ClientID
	// Query selects clients whose names contain it, by their SortKey.
	Query string
	// ExternalID selects the clients with exactly this identifier, which the partner has given.
	ExternalID   string
	UpdatedSince *time.Time
	Sort         Sort
}

// Admin is a person who uses the dashboard.
type Admin struct {
	ID    AdminID `bun:",pk"`
	Email string
	Name  string
	Role  AdminRole
	// Client is the only client that the admin can see. It is nil for an admin of the partner, who can see all clients.
	Client      *ClientID `bun:"client_id"`
	LastLoginAt *time.Time
	CreatedAt   time.Time
}

// AdminRole is the role of an admin in the dashboard.
type AdminRole string

// The roles of admins.
const (
	OwnerRole  AdminRole = "owner"
	FullRole   AdminRole = "admin"
	ViewerRole AdminRole = "viewer"
)

// Values lists the roles of admins.
func (AdminRole) Values() []string { return texts(OwnerRole, FullRole, ViewerRole) }

// InviteRole is a role for which an admin can be invited.
type InviteRole string

// Values lists the roles for which an admin can be invited.
func (InviteRole) Values() []string { return texts(FullRole, ViewerRole) }

// Invite is an invitation of a person to become an admin of a client.
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

// The limits of invites within sliding windows (decisions 3.14). They exist because each invite sends an email to an
// address of the caller's choice.
const (
	// MaxClientInvites bounds the invites to a client within ClientInviteWindow.
	MaxClientInvites   = 20
	ClientInviteWindow = time.Hour
	// MaxPartnerInvites bounds the invites to all clients of a partner within PartnerInviteWindow.
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
