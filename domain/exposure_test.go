package domain_test

import (
	"testing"

	"partnerapi/domain"
)

func TestSeverityOf(t *testing.T) {
	for _, c := range []struct {
		name      string
		classes   []string
		sensitive bool
		spamList  bool
		want      domain.Severity
	}{
		{name: "nothing", want: domain.SeverityMedium},
		{name: "account data", classes: []string{"Email addresses", "IP addresses", "Names", "Usernames", "Phone numbers"}, want: domain.SeverityMedium},
		{name: "sensitive", classes: []string{"Email addresses"}, sensitive: true, want: domain.SeverityHigh},
		{name: "spam list", classes: []string{"Email addresses"}, spamList: true, want: domain.SeverityLow},
		{name: "a spam list with addresses", classes: []string{"Physical addresses"}, spamList: true, want: domain.SeverityLow},
		{name: "a sensitive spam list", sensitive: true, spamList: true, want: domain.SeverityLow},
		{name: "a spam list with passwords", classes: []string{"Passwords"}, spamList: true, want: domain.SeverityCritical},
		{name: "critical beside high", classes: []string{"Dates of birth", "Passwords"}, sensitive: true, want: domain.SeverityCritical},
	} {
		if got := domain.SeverityOf(c.classes, c.sensitive, c.spamList); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestSeverityOfOneClass(t *testing.T) {
	for want, classes := range map[domain.Severity][]string{
		domain.SeverityCritical: {
			"Passwords", "Historical passwords", "Auth tokens", "PINs", "Security questions and answers", "Encrypted keys",
			"Mnemonic phrases", "passwords", "PASSWORDS", " Passwords ",
		},
		domain.SeverityHigh: {
			"Bank account numbers", "Credit cards", "Credit card CVV", "Partial credit card data", "Payment histories",
			"Payment methods", "Financial transactions", "Account balances",
			"Government issued IDs", "Social security numbers", "Passport numbers", "Driver's licenses", "Driving licences",
			"Personal health data", "Health insurance information", "HIV statuses", "Biometric data",
			"Dates of birth", "Partial dates of birth", "Date of birth", "Physical addresses", "Private messages",
			"Sexual orientations", "Religions", "Religious beliefs", "Ethnicities", "Races", "PHYSICAL ADDRESSES",
		},
		domain.SeverityMedium: {
			"Password hints", "Password strengths", "Pins and needles", "Tokens",
			"Email addresses", "IP addresses", "Places of birth", "Genders", "Ages", "Job titles", "Spoken languages",
			"Traces", "Embankments", "", "Names",
		},
	} {
		for _, class := range classes {
			if got := domain.SeverityOf([]string{class}, false, false); got != want {
				t.Errorf("%q: %s, want %s", class, got, want)
			}
		}
	}
}
