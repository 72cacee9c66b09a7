package domain

import "strings"

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
	return []string{string(SeverityCritical), string(SeverityHigh), string(SeverityMedium), string(SeverityLow)}
}

// criticalClasses are names in full, in lower case: that a password's hint or
// its strength was lost is not the loss of the password.
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
