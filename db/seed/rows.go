package seed

import (
	"slices"
	"time"

	"github.com/uptrace/bun"

	"partnerapi/db"
	"partnerapi/domain"
)

// client is a client with all of its rows. computeTotals sets the totals in its own row.
type client struct {
	db.ClientRow
	figures
	domain      string // the domain of its users' emails
	groups      []db.GroupRow
	users       []*user
	collections []collection
	policies    []policy
	frameworks  []db.FrameworkRow
	admins      []db.AdminRow
	invites     []invite
	reports     []db.ReportRow
	history     []dayScore // the average scores of the last days, the oldest first
}

// user is a user with all of the user's rows. computeTotals sets the totals in the user's own row, and the risk.
type user struct {
	db.UserRow
	training    []assignment
	simulations []simulation
	reported    []reportedEmail
	exposures   []exposure
	sent        []db.SentEmailRow
	risk        risk
}

// owner is the user that a row belongs to.
type owner struct {
	ClientID domain.ClientID
	UserID   domain.UserID
}

func (u *user) owner() owner { return owner{u.Client, u.ID} }

type risk struct {
	bun.BaseModel `bun:"table:user_risks"`
	owner
	Model    int
	Baseline int
	Deltas   []int16
	domain.Tallies
	ComputedOn domain.Date
	ComputedAt time.Time
}

type assignment struct {
	bun.BaseModel `bun:"table:assignments"`
	owner
	CourseID     domain.CourseID
	Round        int
	Position     int
	FromProgram  bool
	Frameworks   [][16]byte // the framework assignments that require it
	AssignedAt   time.Time
	DueOn        domain.Date
	CompletedAt  time.Time `bun:",nullzero"`
	OverdueNoted bool
	Superseded   bool
}

// simulation is a simulated email with its template.
type simulation struct {
	db.ResultRow
	template *template
}

// countsAsClick reports whether a person fell for the email: clicked, opened the attachment or submitted credentials
// (decisions 3.10).
func (s *simulation) countsAsClick() bool {
	return s.ClickedAt != nil || s.AttachmentOpenedAt != nil || s.CredentialsSubmittedAt != nil
}

type reportedEmail struct {
	bun.BaseModel `bun:"table:reported_emails"`
	owner
	ID             domain.ReportedEmailID
	MessageID      string
	Subject        string
	Sender         string
	Classification domain.EmailClass
	MailboxAction  domain.MailboxAction `bun:",nullzero"` // NULL for none known
	ReportedAt     time.Time
	ClassifiedAt   time.Time `bun:",nullzero"`
	UpdatedAt      time.Time
}

type exposure struct {
	bun.BaseModel `bun:"table:exposures"`
	db.ExposureRow
	ClientID  domain.ClientID
	UpdatedAt time.Time
}

type collection struct {
	db.CollectionRow
	members []member
	// deleted is true if the row is inserted and deleted again: other rows refer to it, and the triggers of the table
	// must run.
	deleted bool
}

type member struct {
	bun.BaseModel `bun:"table:collection_members"`
	owner
	CollectionID domain.CollectionID
	AddedAt      time.Time
}

type policy struct {
	policyRow
	signatures []signature
}

type policyRow struct {
	bun.BaseModel `bun:"table:policies"`
	db.PolicyRow
	ReviewedAt time.Time
	ArchivedAt time.Time `bun:",nullzero"`
}

type signature struct {
	bun.BaseModel `bun:"table:policy_signatures"`
	owner
	PolicyID domain.PolicyID
	Version  int
	SignedAt time.Time
}

type invite struct {
	bun.BaseModel `bun:"table:admin_invites"`
	ClientID      domain.ClientID
	ID            domain.InviteID
	Email         string
	Role          domain.InviteRole
	CreatedAt     time.Time
	ExpiresAt     time.Time
	AcceptedAt    time.Time `bun:",nullzero"`
}

// dayScore is a client's average score on a day, and the number of its active users.
type dayScore struct {
	bun.BaseModel `bun:"table:risk_history"`
	ClientID      domain.ClientID
	Day           domain.Date
	AverageScore  int
	ActiveUsers   int
}

type keyClient struct {
	bun.BaseModel `bun:"table:api_key_clients"`
	KeyID         domain.KeyID
	ClientID      domain.ClientID
}

// latestTime returns the latest of times, at least one.
func latestTime(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// laterDate returns the later of two dates.
func laterDate(a, b domain.Date) domain.Date { return a.AddDays(max(0, a.DaysUntil(b))) }
