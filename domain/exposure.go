package domain

import (
	"strings"
	"time"
)

// Breach is a known theft of data: an entry of the catalogue that exposures refer to.
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

// Period is a range of time: Since is inclusive, Until exclusive. Nil means no
// bound.
type Period struct{ Since, Until *time.Time }

// ExposureCount counts a user's exposures by their current state.
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

// Severity says how bad it is that a user's data was in a breach.
type Severity string

// The severities, worst first.
const (
	SeverityCritical Severity = "critical" // passwords, and what serves as one
	SeverityHigh     Severity = "high"     // sensitive personal data
	SeverityMedium   Severity = "medium"   // basic account data
	SeverityLow      Severity = "low"      // only an address on a spam list
)

// Values lists the severities, worst first.
func (Severity) Values() []string {
	return texts(SeverityCritical, SeverityHigh, SeverityMedium, SeverityLow)
}

// criticalClasses holds full names in lower case: the loss of a password's hint or
// strength is not that of the password.
var criticalClasses = map[string]bool{
	"passwords":                      true,
	"historical passwords":           true,
	"auth tokens":                    true,
	"pins":                           true,
	"security questions and answers": true,
	"encrypted keys":                 true,
	"mnemonic phrases":               true,
}

// highStems are the beginnings of words that make a class sensitive wherever
// they stand in its name. A stem that ends in a space is a word in full.
var highStems = []string{
	// Payment and bank data.
	"payment", "bank", "credit card", "debit card", "card number", "cvv ", "iban ", "financial transaction",
	"account balance",
	// Government ids, passports, licences.
	"government", "social security", "national id", "identity card", "identity document", "passport", "licence", "license",
	// Health, biometrics.
	"health", "medical", "hiv ", "biometric", "fingerprint",
	"date of birth", "dates of birth", "birth date", "birthdate", "birthday",
	"physical address",
	"private message",
	"sexual",
	"religio",
	"ethnic", "race ", "races ", "racial",
}

// SeverityOf rates a breach by the classes of data it holds and by its marks
// (decisions 7.8): whether it is sensitive as a whole, and whether it is only a
// spam list. The case of class names does not count.
func SeverityOf(dataClasses []string, sensitive, spamList bool) Severity {
	for _, class := range dataClasses {
		if criticalClasses[strings.ToLower(strings.TrimSpace(class))] {
			return SeverityCritical
		}
	}
	if spamList {
		return SeverityLow
	}
	if sensitive {
		return SeverityHigh
	}
	for _, class := range dataClasses {
		if isHighClass(class) {
			return SeverityHigh
		}
	}
	return SeverityMedium
}

func isHighClass(class string) bool {
	name := string(wordsOf(class))
	for _, stem := range highStems {
		if strings.Contains(name, " "+stem) {
			return true
		}
	}
	return false
}
