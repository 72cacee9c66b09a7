package domain

import "time"

// Policy is a text of a client that an audience of its users has to sign. Archived policies are never read as a Policy.
type Policy struct {
	ID          PolicyID `bun:",pk"`
	Client      ClientID `bun:"client_id,pk"`
	Title       string
	Description *string
	// Version begins at 1. Signatures of earlier versions do not count.
	Version   int
	ScopeType ScopeType
	Scope     AnyRef `bun:"-"`
	// MustSign reports whether the audience has to sign.
	MustSign bool `bun:"requires_acknowledgment"`
	// RenewalDays is the number of days for which a signature is valid.
	RenewalDays int `bun:"renewal_period_days"`
	// SignOff is nil if MustSign is false, or if the counts are stale.
	SignOff *SignOff `bun:"-"`
	// PublishedAt is the time at which the version became the current one; nil for the first version.
	PublishedAt *time.Time
	// RemindedOn is the day (UTC) of the last reminders; nil for none.
	RemindedOn *Date
	CreatedAt  time.Time
	// UpdatedAt is the time of the last change of a visible field. The expiry of a signature is a change.
	UpdatedAt time.Time
}

// SignedSince returns the time after which a signature of the current version must be dated to be valid at now
// (decisions 7.6).
func (p Policy) SignedSince(now time.Time) time.Time { return now.AddDate(0, 0, -p.RenewalDays) }

// SignOff is the number of users of a policy's audience, and the number of those with a valid signature.
type SignOff struct {
	Audience     int
	Acknowledged int
}

// Of returns the number of users of the audience that a filter selects.
func (s SignOff) Of(f SignFilter) int {
	switch f {
	case Signed:
		return s.Acknowledged
	case Unsigned:
		return s.Audience - s.Acknowledged
	}
	return s.Audience
}

// Percentage returns the percentage of the audience with a valid signature, with one decimal. For an empty audience it
// returns 0.
func (s SignOff) Percentage() float64 { return Percent(s.Acknowledged, s.Audience) }

// ScopeType is the type of a policy's audience.
type ScopeType string

// The types of audiences: all users of the client, the users of a group, and the members of a collection. Only active
// users count.
const (
	TenantScope     ScopeType = "tenant"
	GroupScope      ScopeType = "user_container"
	CollectionScope ScopeType = "collection"
)

// Values lists the types of audiences.
func (ScopeType) Values() []string { return texts(TenantScope, GroupScope, CollectionScope) }

// ScopeOf returns the scope with a type and the UUID of its object, which may have been deleted.
func ScopeOf(t ScopeType, id [16]byte) AnyRef {
	switch t {
	case GroupScope:
		return AnyRefTo(GroupID(id))
	case CollectionScope:
		return AnyRefTo(CollectionID(id))
	}
	return AnyRefTo(ClientID(id))
}

// SignFilter selects users of an audience by whether they have a valid signature.
type SignFilter string

// The filters.
const (
	Signed   SignFilter = "signed"
	Unsigned SignFilter = "unsigned"
	SignAll  SignFilter = "all"
)

// Values lists the filters.
func (SignFilter) Values() []string { return texts(Signed, Unsigned, SignAll) }

// PolicyUser is an active user of a policy's audience.
type PolicyUser struct {
	User  UserID
	Email string
	Name  string // the full name
	// AcknowledgedAt is the time of the signature of the current version; nil if there is none or it has expired.
	AcknowledgedAt *time.Time
	// UpdatedAt is the time of the last change of the user or of the sign-off. The expiry of a signature is a change.
	UpdatedAt time.Time
}
