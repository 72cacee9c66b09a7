package domain

import "time"

// AuditEntry is a line of the audit trail: who did which write, when, to what.
type AuditEntry struct {
	Key     KeyID
	Prefix  string // the clear start of the key
	Partner PartnerID
	// Address is where the request came from; empty where that is not known.
	Address string
	// RequestID is the one that the response shows.
	RequestID string
	// Operation is the id of the v2 operation; Method and Path are the
	// request's own, of whichever version it was.
	Operation    string
	Method, Path string
	// Status is the operation's status of success. The answer in another
	// version of the interface may have another.
	Status int
	// Client and User are those that the path names, or else the output; zero
	// where they name none.
	Client ClientID
	User   UserID
	// Object is the id of the output, as v2 shows it; empty where it has none.
	Object string
	At     time.Time
}
