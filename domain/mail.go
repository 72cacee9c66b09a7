package domain

import "time"

// Mail is a mail that was asked for, with all that writing it needs.
type Mail struct {
	Client      ClientID
	ID          MessageID
	Type        MessageType // WelcomeMail, AdminInviteMail, TrainingInvite or PolicyReminder
	RequestedAt time.Time

	To string // an address
	// User is the client's user with the address; of an invite there may be none.
	User     *UserID
	Name     string // the user's first name; may be empty
	Language Language

	ClientName  string
	PartnerName string

	// Of an invite.
	Invite     InviteID
	InviteRole InviteRole
	ExpiresAt  time.Time
	// Of a reminder.
	Policy      PolicyID
	PolicyTitle string
	// Of an assignment.
	Course      CourseID
	CourseTitle string
	DueOn       Date

	// Unwanted says why it is not to be sent any more; empty where it is.
	Unwanted string
}

// MailLife is how long a mail that cannot be delivered is tried again.
const MailLife = 3 * 24 * time.Hour
