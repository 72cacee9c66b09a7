package domain

import (
	"slices"
	"time"
)

// MessageType is the type of an email.
type MessageType string

// The types of emails. MailKinds declares each.
const (
	TrainingInvite    MessageType = "training-invite"
	PhishingMail      MessageType = "phishing"
	PhishReminder     MessageType = "phish-reminder"
	CertificateMail   MessageType = "certificate"
	MonthlyReportMail MessageType = "monthly-report"
	WelcomeMail       MessageType = "welcome"
	PolicyReminder    MessageType = "policy-reminder"
	AdminInviteMail   MessageType = "admin-invite"
	ExposureNotice    MessageType = "exposure-notice"
	TrainingReminder  MessageType = "training-reminder"
)

// MailKind declares a kind of email to users of a client, or to its admins. Whatever sends, lists or switches emails
// reads the declaration. The texts are the templates in platform/mail/words whose names begin with the type.
type MailKind struct {
	Type MessageType
	// Urgent emails are sent before others: someone waits for them.
	Urgent bool
	// Switch is the state, unless a client changes it, of the switch for emails that the service sends without a request.
	Switch SwitchState
	// After is the time from the cause of an email until it is due.
	After time.Duration
	// Overdue means that the email lists the user's overdue courses.
	Overdue bool
	// Unwanted returns the reason why an email has become pointless since it was requested, or "". It is nil if only an
	// archived client or an inactive user makes the email pointless.
	Unwanted func(*Mail) string
	// Text returns what the templates show. It is nil for simulations, which have their own templates.
	Text func(*Mail) MailText
}

// SwitchState is the state of a switch.
type SwitchState int

// The states. Emails on request have no switch.
const (
	NoSwitch SwitchState = iota
	OnByDefault
	OffByDefault
)

// MailText is what the templates of an email show, in addition to the names of its user, client and partner. Its texts
// are as others wrote them.
type MailText struct {
	Title, From, Domain string
	// Date is zero for none. Monthly means that the templates show its month.
	Date    Date
	Monthly bool
	// Severity is that of an exposure; empty for other emails.
	Severity Severity
	Link     MailLink
	Points   []MailPoint
}

// MailPoint is an item of a list in an email: a clue, a title with a date, or a class of data, which has a label in
// each language.
type MailPoint struct {
	Clue Indicator
	Text string
	On   Date
}

// MailKinds are the kinds of emails in the order of the documents, without emails to partners (PartnerMails).
var MailKinds = []MailKind{
	{
		Type: TrainingInvite,
		Unwanted: func(m *Mail) string {
			return reasonIf(m.DueOn.IsZero(), "the course is not open")
		},
		Text: func(m *Mail) MailText {
			return MailText{Title: m.CourseTitle, Date: m.DueOn, Link: LinkToCourse(m.Course)}
		},
	},
	{Type: PhishingMail},
	{
		Type: PhishReminder, Switch: OnByDefault, After: 2 * 24 * time.Hour,
		Text: func(m *Mail) MailText {
			s := m.Simulated
			t := MailText{Title: s.Subject, From: s.From, Date: s.SentOn}
			for _, clue := range s.Clues {
				t.Points = append(t.Points, MailPoint{Clue: clue})
			}
			return t
		},
	},
	{
		Type: CertificateMail, Switch: OnByDefault,
		Unwanted: func(m *Mail) string {
			return reasonIf(m.CompletedOn.IsZero(), "the course is not completed")
		},
		Text: func(m *Mail) MailText {
			return MailText{Title: m.CourseTitle, Date: m.CompletedOn}
		},
	},
	{
		Type: MonthlyReportMail, Switch: OffByDefault,
		Unwanted: func(m *Mail) string { return reasonIf(m.AdminRemoved, "the admin was removed") },
		Text:     func(m *Mail) MailText { return MailText{Date: m.MonthOf, Monthly: true} },
	},
	{
		Type: WelcomeMail, Urgent: true,
		Text: func(*Mail) MailText { return MailText{} },
	},
	{
		Type: PolicyReminder,
		Unwanted: func(m *Mail) string {
			if m.PolicyArchived {
				return "the policy is archived"
			}
			return reasonIf(m.PolicySigned, "the policy is signed")
		},
		Text: func(m *Mail) MailText {
			return MailText{Title: m.PolicyTitle, Link: LinkToPolicy(m.Policy)}
		},
	},
	{
		Type: AdminInviteMail, Urgent: true,
		Unwanted: func(m *Mail) string {
			if m.InviteAccepted {
				return "the invite was accepted"
			}
			return reasonIf(m.InviteExpired, "the invite has expired")
		},
		Text: func(m *Mail) MailText {
			return MailText{Date: DateOf(m.ExpiresAt), Link: LinkToInvite(m.Invite)}
		},
	},
	{
		Type: ExposureNotice, Switch: OnByDefault,
		Unwanted: func(m *Mail) string {
			switch {
			case !m.DarkWebMonitoring:
				return "the client has no Dark Web Monitoring"
			case m.Exposure.Breach == "":
				return "the exposure is no longer in the catalog"
			case m.Exposure.NotifiedAt != nil:
				return "the user was already notified"
			}
			return reasonIf(m.Exposure.ResolvedAt != nil, "the exposure is resolved")
		},
		Text: func(m *Mail) MailText {
			e := &m.Exposure
			t := MailText{
				Title: e.Title, Domain: OrZero(e.Domain), Date: OrZero(e.BreachOn), Severity: e.Severity,
			}
			for _, class := range e.DataClasses {
				t.Points = append(t.Points, MailPoint{Text: class})
			}
			return t
		},
	},
	{
		Type: TrainingReminder, Overdue: true,
		Unwanted: func(m *Mail) string { return reasonIf(len(m.Overdue) == 0, "nothing is overdue anymore") },
		Text: func(m *Mail) MailText {
			t := MailText{}
			for _, o := range m.Overdue {
				t.Points = append(t.Points, MailPoint{Text: o.Title, On: o.DueOn})
			}
			return t
		},
	},
}

// reasonIf returns the reason if a condition holds, and otherwise "".
func reasonIf(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}

// Kind returns the declaration of the type. For a type without one, such as that of a newer release, it has only the
// type.
func (t MessageType) Kind() MailKind {
	for _, k := range MailKinds {
		if k.Type == t {
			return k
		}
	}
	return MailKind{Type: t}
}

// mailTypes returns the types of the kinds that meet a condition, in the order of MailKinds.
func mailTypes(meets func(MailKind) bool) (types []MessageType) {
	for _, k := range MailKinds {
		if meets(k) {
			types = append(types, k.Type)
		}
	}
	return types
}

// Values lists the types of emails, without those to partners.
func (MessageType) Values() []string { return texts(mailTypes(func(MailKind) bool { return true })...) }

// UrgentMails are the types of emails that are sent before others.
var UrgentMails = mailTypes(func(k MailKind) bool { return k.Urgent })

// ServiceMails are the types of emails that the service sends without a request. Each can be switched on and off for a
// client.
var ServiceMails = mailTypes(func(k MailKind) bool { return k.Switch != NoSwitch })

// ReportLink names the switch for the link in simulated emails that reports them. It is not the type of an email.
const ReportLink MessageType = "report-link"

// ClientSwitches are what can be switched on and off for a client: ServiceMails and ReportLink.
var ClientSwitches = slices.Concat(ServiceMails, []MessageType{ReportLink})
