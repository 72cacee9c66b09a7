package domain

import (
	"slices"
	"strings"
	"time"
)

// Breach is a known theft of data, an entry of the catalogue. Exposures refer to it.
type Breach struct {
	Name     string // the key: unique, in letters of any language, and never changed
	Title    string
	Domain   *string
	On       *Date `bun:"breach_on"`
	Severity Severity
	// DataClasses are the classes of the stolen data.
	DataClasses []string `bun:",array"`
	// Sensitive and SpamList are properties of the whole breach; see SeverityOf.
	Sensitive bool
	SpamList  bool
}

// Exposure records that data of a user was found in a breach.
type Exposure struct {
	User        UserID  `bun:"user_id,pk"`
	Breach      string  `bun:"breach_name,pk"` // the name of the breach
	Title       string  `bun:",scanonly"`
	Domain      *string `bun:",scanonly"`
	BreachOn    *Date   `bun:",scanonly"`
	Severity    Severity
	DataClasses []string `bun:",array"`
	FirstSeenAt time.Time
	NotifiedAt  *time.Time
	ResolvedAt  *time.Time
	UpdatedAt   time.Time `bun:",scanonly"`
}

// Period is a range of time: Since is inclusive, Until exclusive. Nil means no bound.
type Period struct{ Since, Until *time.Time }

// ExposureCount is the number of a user's resolved and unresolved exposures.
type ExposureCount struct {
	User       UserID
	Email      string
	FirstName  string
	LastName   string
	Resolved   int
	Unresolved int
	UpdatedAt  time.Time // the user's: a change of the numbers is one of the user
}

// DarkWeb is the numbers of exposures of a client's active users.
type DarkWeb struct {
	Unresolved int
	Resolved   int
	// Affected is the number of users with at least one unresolved exposure.
	Affected int
	// By is the number of unresolved exposures by severity.
	By BySeverity
	// LastFoundAt is the latest time at which an exposure was first seen; nil if there is none.
	LastFoundAt *time.Time
}

// BySeverity is a number for each severity.
type BySeverity struct {
	Critical int `json:"critical" doc:"Number of exposures of passwords and other secrets that give access."`
	High     int `json:"high" doc:"Number of exposures of sensitive personal data."`
	Medium   int `json:"medium" doc:"Number of exposures of basic account data."`
	Low      int `json:"low" doc:"Number of exposures on spam lists."`
}

// ErrNoDarkWeb returns the error for a client without Dark Web Monitoring.
func ErrNoDarkWeb() *Error { return ErrForbidden("Dark Web Monitoring is not enabled for this client") }

// Severity is the severity of an exposure.
type Severity string

// The severities, worst first.
const (
	SeverityCritical Severity = "critical" // passwords and other secrets that give access
	SeverityHigh     Severity = "high"     // sensitive personal data
	SeverityMedium   Severity = "medium"   // basic account data
	SeverityLow      Severity = "low"      // only an address on a spam list
)

// Values lists the severities, worst first.
func (Severity) Values() []string {
	return texts(SeverityCritical, SeverityHigh, SeverityMedium, SeverityLow)
}

// criticalClasses are the critical classes of data, in lower case. They are compared as a whole, because for example
// "password hints" is not critical.
var criticalClasses = map[string]bool{
	"passwords":                      true,
	"historical passwords":           true,
	"auth tokens":                    true,
	"pins":                           true,
	"security questions and answers": true,
	"encrypted keys":                 true,
	"mnemonic phrases":               true,
}

// highStems are the beginnings of words, anywhere in the name of a class of data, that make it highly sensitive. A stem
// with a space at its end must match a whole word.
var highStems = []string{
	// Payment and bank data.
	"payment", "bank", "credit card", "debit card", "card number", "cvv ", "iban ", "financial transaction",
	"account balance",
	// Government ids, passports, licenses.
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

// SeverityOf returns the severity of a breach with classes of data, which may be marked as sensitive or as only a spam
// list (decisions 7.8). In this order: a critical class makes it critical, spamList low, sensitive or a highly
// sensitive class high; otherwise it is medium. The case of class names does not matter.
func SeverityOf(dataClasses []string, sensitive, spamList bool) Severity {
	for _, class := range dataClasses {
		if criticalClasses[strings.ToLower(strings.TrimSpace(class))] {
			return SeverityCritical
		}
	}
	if spamList {
		return SeverityLow
	}
	if sensitive || slices.ContainsFunc(dataClasses, isHighClass) {
		return SeverityHigh
	}
	return SeverityMedium
}

// isHighClass reports whether a word in the name of a class begins with one of highStems.
func isHighClass(class string) bool {
	name := string(wordsOf(class))
	return slices.ContainsFunc(highStems, func(stem string) bool { return strings.Contains(name, " "+stem) })
}
