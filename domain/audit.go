package domain

import (
	"net/netip"
	"time"
)

// AuditLife is how long entries of the audit trail are kept.
const AuditLife = 400 * 24 * time.Hour

// AuditEntry says who did which write, when, and to what.
type AuditEntry struct {
	At time.Time

	// Partner, Key and Prefix are of the key that made the request.
	Partner PartnerID
	Key     KeyID
	Prefix  string
	// Address is the caller's; the zero Addr where it is not known.
	Address netip.Addr

	// Operation is the id of the operation, such as users.update.
	Operation string
	Method    string
	// Path is the request's path, without its query.
	Path string

	// Client and User are what the request is about; zero where it is about
	// none.
	Client ClientID
	User   UserID

	RequestID string
}

// AuditFilter chooses entries of the audit trail; what is zero chooses all.
type AuditFilter struct {
	Client ClientID
	Prefix string
	Since  time.Time
}
