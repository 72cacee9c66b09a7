package domain

import (
	"strings"
	"time"
)

// Policy is a text of a client that an audience of its users is to sign. Reads
// return no archived policies.
type Policy struct {
	ID          PolicyID
	Client      ClientID
	Title       string
	Description *string
	// Version counts from 1. Sign-off of an earlier version does not count.
	Version   int
	ScopeType ScopeType
	Scope     ScopeID
	// MustSign says that the audience is asked to sign.
	MustSign bool
	// RenewalDays is how long a sign-off stays valid.
	RenewalDays int
	// SignOff is nil where no user has to sign, and where the counts are stale.
	SignOff *SignOff
	// PublishedAt is when the version became the current one; nil for a first
	// version.
	PublishedAt *time.Time
	// RemindedOn is the day (UTC) of the last reminders; nil for none.
	RemindedOn *Date
	CreatedAt  time.Time
	// UpdatedAt is when a shown field changed last; the lapse of a sign-off
	// counts.
	UpdatedAt time.Time
}

// SignedSince returns the time after which a signature of the current version must
// have been made to be valid at now (decisions 7.6).
func (p Policy) SignedSince(now time.Time) time.Time { return now.AddDate(0, 0, -p.RenewalDays) }

// SignOff counts a policy's audience, and those of it who signed.
type SignOff struct {
	Audience     int
	Acknowledged int
}

// Of is how many of the audience a filter selects.
func (s SignOff) Of(f SignFilter) int {
	switch f {
	case Signed:
		return s.Acknowledged
	case Unsigned:
		return s.Audience - s.Acknowledged
	}
	return s.Audience
}

// Percentage is how much of the audience signed, with one decimal; 0 for
// an empty audience.
func (s SignOff) Percentage() float64 { return Percent(s.Acknowledged, s.Audience) }

// ScopeType says what kind of audience a policy has.
type ScopeType string

// The kinds of audiences: all users of the client, those of a group, the
// members of a collection. Only the active ones count.
const (
	TenantScope     ScopeType = "tenant"
	GroupScope      ScopeType = "user_container"
	CollectionScope ScopeType = "collection"
)

// Values lists the kinds of audiences.
func (ScopeType) Values() []string { return texts(TenantScope, GroupScope, CollectionScope) }

// ScopeID identifies a policy's audience by one of its fields; the others are zero.
// The object may have been deleted since.
type ScopeID struct {
	Client     ClientID
	Group      GroupID
	Collection CollectionID
}

// ScopeOf is the scope of a type with the UUID of its object.
func ScopeOf(t ScopeType, id [16]byte) ScopeID {
	switch t {
	case GroupScope:
		return ScopeID{Group: id}
	case CollectionScope:
		return ScopeID{Collection: id}
	}
	return ScopeID{Client: id}
}

// String returns the id as v2 shows it.
func (s ScopeID) String() string {
	switch {
	case !s.Group.IsZero():
		return s.Group.String()
	case !s.Collection.IsZero():
		return s.Collection.String()
	}
	return s.Client.String()
}

// MarshalText returns the id as v2 shows it. It never fails.
func (s ScopeID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads an id as v2 shows it.
func (s *ScopeID) UnmarshalText(text []byte) error {
	switch prefix, _, _ := strings.Cut(string(text), "_"); prefix {
	case GroupKind{}.Prefix():
		return s.Group.UnmarshalText(text)
	case CollectionKind{}.Prefix():
		return s.Collection.UnmarshalText(text)
	}
	return s.Client.UnmarshalText(text)
}

// SignFilter selects users of an audience by whether they signed.
type SignFilter string

// The selections.
const (
	Signed   SignFilter = "signed"
	Unsigned SignFilter = "unsigned"
	SignAll  SignFilter = "all"
)

// Values lists the selections.
func (SignFilter) Values() []string { return texts(Signed, Unsigned, SignAll) }

// PolicyUser is an active user of a policy's audience.
type PolicyUser struct {
	User  UserID
	Email string
	Name  string // the full name
	// AcknowledgedAt is when the current version was signed; nil where it was
	// not, or where that has lapsed.
	AcknowledgedAt *time.Time
}
