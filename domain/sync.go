package domain

import (
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	// SyncEvery is how often a client's directory is synced on schedule.
	SyncEvery = 6 * time.Hour
	// SyncRequestEvery is how often a caller may ask for a run of a client.
	SyncRequestEvery = time.Hour
	// SyncRunLife is how long runs are kept.
	SyncRunLife = 90 * 24 * time.Hour
	// MaxSkipped is how many skipped accounts a run names.
	MaxSkipped = 100
	// MaxObjectID is the greatest length of a directory's id of an account, in
	// bytes.
	MaxObjectID = 200
)

// SyncRun is one sync of a client's users with the client's directory.
type SyncRun struct {
	ID                    SyncRunID
	Client                ClientID
	Status                SyncStatus
	Trigger               SyncTrigger
	QueuedAt              time.Time
	StartedAt, FinishedAt *time.Time
	UpdatedAt             time.Time
	SyncCounts
	// Skipped are the first MaxSkipped accounts that were skipped.
	Skipped []SkippedAccount
	// Error says why the run failed, and what to do; nil where it did not.
	Error *string
}

// SyncCounts says what a run did to users. A merge and a deactivation are no
// update. Unchanged are the directory's users that the run left as they were.
type SyncCounts struct {
	Created     int
	Updated     int
	Deactivated int
	Merged      int
	Unchanged   int
}

// SkippedAccount is an account that became no user, or whose address could not be
// given to its user.
type SkippedAccount struct {
	Address string `json:"address" doc:"Address as the directory has it, which may be no valid one."`
	Reason  string `json:"reason" doc:"Why the account was skipped."`
}

// Why an account is skipped.
const (
	SkippedTaken   = "another user has this address"
	SkippedInvalid = "not a valid email address"
)

// SyncStatus says where a run is.
type SyncStatus string

// The states of a run.
const (
	SyncQueued    SyncStatus = "queued"
	SyncRunning   SyncStatus = "running"
	SyncCompleted SyncStatus = "completed"
	SyncFailed    SyncStatus = "failed"
)

// Values lists the states.
func (SyncStatus) Values() []string { return texts(SyncQueued, SyncRunning, SyncCompleted, SyncFailed) }

// SyncTrigger is what asked for a run.
type SyncTrigger string

// The triggers of runs.
const (
	SyncByAPI      SyncTrigger = "api"
	SyncBySchedule SyncTrigger = "schedule"
	SyncByCommand  SyncTrigger = "command"
)

// Values lists the triggers.
func (SyncTrigger) Values() []string { return texts(SyncByAPI, SyncBySchedule, SyncByCommand) }

// The guard: a run that would deactivate more than guardShare percent of the
// directory's users, and more than guardFew of them, changes nothing.
const (
	guardShare = 20
	guardFew   = 5
)

// SyncGuarded reports whether the guard stops a run that would deactivate that many
// of a directory's active users.
func SyncGuarded(deactivated, users int) bool {
	return deactivated > guardFew && 100*deactivated > guardShare*users
}

// AccountRecord is what is known of a directory's account, or what one reading
// returned; a field that it did not return is nil. Texts are bounded and cleaned;
// the empty text stands for none.
type AccountRecord struct {
	Gone         *bool     `json:"gone,omitempty"`
	Guest        *bool     `json:"guest,omitempty"`
	Enabled      *bool     `json:"enabled,omitempty"`
	Email        *string   `json:"email,omitempty"`
	First        *string   `json:"first,omitempty"`
	Last         *string   `json:"last,omitempty"`
	Department   *string   `json:"department,omitempty"`
	JobTitle     *string   `json:"job_title,omitempty"`
	ManagerEmail *string   `json:"manager_email,omitempty"`
	Language     *Language `json:"language,omitempty"`
	Group        *string   `json:"group,omitempty"`
}

// Record returns the account as it is stored. Email is the address as CleanEmail
// returns it, or else what the directory has in its place.
func (a *DirectoryAccount) Record() AccountRecord {
	if a.Removed {
		return AccountRecord{Gone: new(true)}
	}
	r := AccountRecord{
		Gone:       new(false),
		First:      cleaned(a.First, maxName),
		Last:       cleaned(a.Last, maxName),
		Department: cleaned(a.Department, maxText),
		JobTitle:   cleaned(a.JobTitle, maxText),
		Group:      cleaned(a.Group, maxName),
		Email:      cleanedEmail(a.Email),
		Guest:      a.Guest.Pointer().(*bool),
		Enabled:    a.Enabled.Pointer().(*bool),
	}
	if a.Language.Given {
		r.Language = new(English)
		if slices.Contains(English.Values(), string(a.Language.Value)) {
			r.Language = new(a.Language.Value)
		}
	}
	if a.ManagerEmail.Given {
		email, _ := CleanEmail(CleanName(a.ManagerEmail.Value))
		r.ManagerEmail = &email
	}
	return r
}

// The greatest lengths of the texts that are stored of an account, in characters.
const (
	maxName = 200
	maxText = 500
)

// cleaned returns a directory's text as it can be stored: valid, without control
// characters, and cut to a length in characters; nil if none is given.
func cleaned(p Optional[string], length int) *string {
	if !p.Given {
		return nil
	}
	text := strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError:
			return -1
		case unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp):
			return ' '
		}
		return r
	}, p.Value)
	text = CleanName(text)
	if utf8.RuneCountInString(text) > length {
		text = CleanName(string([]rune(text)[:length]))
	}
	if CheckName(text) != "" {
		text = ""
	}
	return &text
}

// cleanedEmail returns an address as CleanEmail does, or else what the directory
// has in its place, as a text that is not an address; nil if none is given.
func cleanedEmail(p Optional[string]) *string {
	if email, ok := CleanEmail(CleanName(p.Value)); ok && p.Given {
		return &email
	}
	text := cleaned(p, MaxEmail)
	if text == nil {
		return nil
	}
	if _, ok := CleanEmail(*text); ok { // only since cleaning removed characters
		*text += "…"
	}
	return text
}

// Merge overwrites the fields that a later reading returned.
func (r *AccountRecord) Merge(later AccountRecord) {
	into, from := reflect.ValueOf(r).Elem(), reflect.ValueOf(later)
	for i := range from.NumField() {
		if !from.Field(i).IsNil() {
			into.Field(i).Set(from.Field(i))
		}
	}
}

// Address is the account's valid address; false where it has none.
func (r *AccountRecord) Address() (string, bool) {
	if r.Email == nil {
		return "", false
	}
	return CleanEmail(*r.Email)
}

// Syncs returns the user with the account's fields, and email, which no other user has.
// The user of a disabled account is inactive. Fields that were set by hand stay. A role
// that was not is classified again when a field that determines it has changed. Syncs
// does not change the user's group.
func (u User) Syncs(r *AccountRecord, source UserSource, email string) User {
	before := u
	follow := func(field string, old *string, now *string) {
		if now != nil && !slices.Contains(u.Overrides, field) {
			*old = *now
		}
	}
	follow("first_name", &u.FirstName, r.First)
	follow("last_name", &u.LastName, r.Last)
	followOptional := func(field string, old **string, now *string) {
		if now == nil || slices.Contains(u.Overrides, field) {
			return
		}
		if *old = now; *now == "" {
			*old = nil
		}
	}
	followOptional("department", &u.Department, r.Department)
	followOptional("job_title", &u.JobTitle, r.JobTitle)
	followOptional("manager_email", &u.ManagerEmail, r.ManagerEmail)
	if r.Language != nil && !slices.Contains(u.Overrides, "preferred_language") {
		u.Language = *r.Language
	}
	if !slices.Contains(u.Overrides, "status") {
		if u.Status = Active; !r.Wanted() {
			u.Status = Inactive
		}
	}
	u.Email, u.Source = email, source

	moved := u.Role == "" || u.Email != before.Email || !Same(u.JobTitle, before.JobTitle) ||
		!Same(u.Department, before.Department)
	if moved && !slices.Contains(u.Overrides, "role") {
		u.Role = ClassifyRole(OrZero(u.JobTitle), OrZero(u.Department), u.Email)
	}
	return u
}

// HasMail reports whether the directory has an address, or something in its place.
func (r *AccountRecord) HasMail() bool { return OrZero(r.Email) != "" }

// GroupName is the group that the account's user is in.
func (r *AccountRecord) GroupName(d Directory) string {
	switch {
	case OrZero(r.Group) != "":
		return *r.Group
	case d == Google:
		return "Google"
	}
	return "Microsoft 365"
}

// Wanted reports whether the account's owner is to be an active user. It needs a
// complete record.
func (r *AccountRecord) Wanted() bool {
	is := func(flag *bool) bool { return flag != nil && *flag }
	return !is(r.Gone) && !is(r.Guest) && (r.Enabled == nil || *r.Enabled) && r.HasMail()
}

// BlankAccount returns the record of an account without data: a property that a full
// reading does not return does not exist.
func BlankAccount() AccountRecord {
	return AccountRecord{
		Gone: new(false), Guest: new(false), Enabled: new(true), Email: new(""), First: new(""), Last: new(""),
		Department: new(""), JobTitle: new(""), ManagerEmail: new(""), Language: new(English), Group: new(""),
	}
}

// DirectoryAccount holds the properties of a directory's account that a sync uses.
// A delta may omit a property, which is then unchanged.
type DirectoryAccount struct {
	// ObjectID is the directory's own id of the account.
	ObjectID string
	// Removed says that the account was deleted, or left the group that is synced.
	Removed bool
	// Guest accounts are skipped.
	Guest   Optional[bool]
	Enabled Optional[bool]
	Email   Optional[string] // in any case; empty where there is no mail
	First   Optional[string]
	Last    Optional[string]
	// The empty text of the following stands for none.
	Department   Optional[string]
	JobTitle     Optional[string]
	ManagerEmail Optional[string]
	Language     Optional[Language]
	// Group is the name of the directory's group or organizational unit; empty for
	// the default one.
	Group Optional[string]
}
