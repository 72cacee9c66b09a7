package domain

import "time"

// MessageType says what a mail to a user is for.
type MessageType string

// The types of mail.
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

// Values lists the types.
func (MessageType) Values() []string {
	return []string{
		string(TrainingInvite), string(PhishingMail), string(PhishReminder), string(CertificateMail),
		string(MonthlyReportMail), string(WelcomeMail), string(PolicyReminder), string(AdminInviteMail),
		string(ExposureNotice), string(TrainingReminder),
	}
}

// SendMethod is the way that a mail took.
type SendMethod string

// The ways. A mail that was written to a file counts as sent by SMTP.
const (
	ByMicrosoft SendMethod = "microsoft-api"
	BySMTP      SendMethod = "smtp"
	ByGmail     SendMethod = "gmail-api"
)

// Values lists the ways.
func (SendMethod) Values() []string {
	return []string{string(ByMicrosoft), string(BySMTP), string(ByGmail)}
}

// SentEmail is the record of a mail that was sent to a user.
type SentEmail struct {
	ID      MessageID
	User    UserID
	SentAt  time.Time
	From    string
	Subject string
	Method  SendMethod
	Type    MessageType
}

// UserKey is a user with the client that the user belongs to.
type UserKey struct {
	Client ClientID
	User   UserID
}

// EmailFilter says which sent mails are wanted.
type EmailFilter struct {
	Types  []MessageType // none for every type
	Period               // of sending
}
