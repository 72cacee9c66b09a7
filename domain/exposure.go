package domain

import "time"

// Breach is a known theft of data, of the catalogue that exposures refer to.
type Breach struct {
	Name     string // unique, in any language's letters; never changes
	Title    string
	Domain   *string
	On       *Date
	Severity Severity
	// DataClasses are the kinds of data that it holds.
	DataClasses []string
	// Sensitive and SpamList are marks of the breach as a whole; see SeverityOf.
	Sensitive bool
	SpamList  bool
}

// Exposure is that a user's data was found in a breach.
type Exposure struct {
	User        UserID
	Breach      string // its name
	Title       string
	Domain      *string
	BreachOn    *Date
	Severity    Severity
	DataClasses []string
	FirstSeenAt time.Time
	NotifiedAt  *time.Time
	ResolvedAt  *time.Time
}

// Period is a stretch of time: from Since on, up to but without Until. Nil
// bounds nothing.
type Period struct{ Since, Until *time.Time }

// ExposureCount is how many exposures a user has, by where they stand today.
type ExposureCount struct {
	User       UserID
	Email      string
	FirstName  string
	LastName   string
	Resolved   int
	Unresolved int
}

// DarkWeb sums up the exposures of a client's active users.
type DarkWeb struct {
	Unresolved int
	Resolved   int
	// Affected counts the users with at least one unresolved exposure.
	Affected int
	// By counts the unresolved exposures per severity.
	By BySeverity
	// LastFoundAt is when the latest was first seen; nil for none.
	LastFoundAt *time.Time
}

// BySeverity is a number for each severity.
type BySeverity struct {
	Critical int `json:"critical" doc:"Number of exposures of passwords."`
	High     int `json:"high" doc:"Number of exposures of sensitive personal data."`
	Medium   int `json:"medium" doc:"Number of exposures of basic account data."`
	Low      int `json:"low" doc:"Number of entries in spam lists."`
}

// ErrNoDarkWeb says that the client is not watched for exposures.
func ErrNoDarkWeb() *Error {
	return ErrForbidden("Dark Web Monitoring is not enabled for this client")
}
