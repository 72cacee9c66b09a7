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
	// SyncRequestEvery is how often callers may request a run for a client.
	SyncRequestEvery = time.Hour
	// SyncRunLife is how long runs are kept.
	SyncRunLife = 90 * 24 * time.Hour
	// MaxSkipped is the greatest number of skipped accounts that a run lists.
	MaxSkipped = 100
	// MaxObjectID is the greatest length of the id that a directory has for an account, in bytes.
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
	// WithoutEmail is the number of accounts without an email address at the end of the run, guests not included.
	WithoutEmail int
	// Skipped are the first MaxSkipped accounts that were skipped.
	Skipped []SkippedAccount
	// Error is the reason why the run failed, with a remedy; nil if it did not fail.
	Error *string
}

// SyncCounts counts users by what a run did with them. A merge or a deactivation does not count as an update. Unchanged
// counts the directory's other users.
type SyncCounts struct {
	Created     int
	Updated     int
	Deactivated int
	Merged      int
	Unchanged   int
}

// SkippedAccount is an account that a run could not apply in full: it has no user, its user could not get its address,
// or its user stays active although it is gone.
type SkippedAccount struct {
	Address string `json:"address" doc:"Email address in the directory. Can be invalid."`
	Reason  string `json:"reason" doc:"Why the account was skipped."`
}

// The reasons why an account is skipped.
const (
	SkippedTaken   = "another user has this address"
	SkippedInvalid = "not a valid email address"
	// SkippedOverride is the reason for an account that is gone, whose user stays active because the status is an
	// override.
	SkippedOverride = "status_override"
)

// SyncStatus is the state of a run.
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

// SyncTrigger is what started a run.
type SyncTrigger string

// The triggers of runs.
const (
	SyncByAPI      SyncTrigger = "api"
	SyncBySchedule SyncTrigger = "schedule"
	SyncByCommand  SyncTrigger = "command"
)

// Values lists the triggers.
func (SyncTrigger) Values() []string { return texts(SyncByAPI, SyncBySchedule, SyncByCommand) }

// The guard stops a run, which then changes nothing, if it would deactivate more than guardShare percent of the
// directory's active users, and more than guardFew users. It also stops a run that would deactivate all of them, if
// there are at least guardAll: most clients have too few users for the share, and an empty response of the directory
// must not deactivate everyone.
const (
	guardShare = 20
	guardFew   = 5
	guardAll   = 2
)

// SyncGuarded reports whether the guard stops a run that would deactivate so many of the directory's active users.
// kept is the number of those whose status is an override: no run deactivates them.
func SyncGuarded(deactivated, users, kept int) bool {
	return deactivated > guardFew && 100*deactivated > guardShare*users ||
		deactivated >= guardAll && deactivated == users-kept
}

// AccountRecord is an account of a directory, merged from all reads, or as one read returned it; a field that no read
// returned is nil. Texts are cleaned and cut to their greatest length; the empty text means that the account has none.
type AccountRecord struct {
	Gone    *bool   `json:"gone,omitempty"`
	Guest   *bool   `json:"guest,omitempty"`
	Enabled *bool   `json:"enabled,omitempty"`
	Email   *string `json:"email,omitempty"`
	// First and Last are the user's names. They follow from the next three when a read is merged, since a read may
	// return only one of these.
	First       *string `json:"first,omitempty"`
	Last        *string `json:"last,omitempty"`
	GivenName   *string `json:"given_name,omitempty"`
	FamilyName  *string `json:"family_name,omitempty"`
	DisplayName *string `json:"display_name,omitempty"`
	Department  *string `json:"department,omitempty"`
	JobTitle    *string `json:"job_title,omitempty"`
	// Manager is the ID of the manager's account, if the directory tells it; ManagerEmail then follows the email of that
	// account.
	Manager *string `json:"manager,omitempty"`
	// ManagerEmail is, like Email, as the directory has it, and may be invalid.
	ManagerEmail *string   `json:"manager_email,omitempty"`
	Language     *Language `json:"language,omitempty"`
	Group        *string   `json:"group,omitempty"`
}

// Record returns the account as it is stored. A property that is not given is nil. Of a removed account only Gone is
// set. Email and ManagerEmail are in the form of CleanEmail or, if invalid, the directory's text (cleanAddress). A
// language that is not one of the service's becomes English. First and Last are not set.
func (a *DirectoryAccount) Record() AccountRecord {
	if a.Removed {
		return AccountRecord{Gone: new(true)}
	}
	r := AccountRecord{
		Gone:         new(false),
		GivenName:    cleanText(a.First, maxName),
		FamilyName:   cleanText(a.Last, maxName),
		DisplayName:  cleanText(a.Display, maxName),
		Department:   cleanText(a.Department, maxText),
		JobTitle:     cleanText(a.JobTitle, maxText),
		Group:        cleanText(a.Group, maxName),
		Email:        cleanAddress(a.Email),
		Manager:      cleanText(a.Manager, MaxObjectID),
		ManagerEmail: cleanAddress(a.ManagerEmail),
		Guest:        a.Guest.Pointer().(*bool),
		Enabled:      a.Enabled.Pointer().(*bool),
	}
	if r.DisplayName != nil { // it may be split at a space
		r.DisplayName = new(strings.Join(strings.Fields(*r.DisplayName), " "))
	}
	if a.Language.Given {
		r.Language = new(English)
		if slices.Contains(English.Values(), string(a.Language.Value)) {
			r.Language = new(a.Language.Value)
		}
	}
	return r
}

// The greatest lengths of an account's texts as they are stored, in characters.
const (
	maxName = 200
	maxText = 500
)

// cleanText returns a directory's text as it can be stored: without invalid UTF-8, with spaces instead of control
// characters and separators of lines, cut to length characters; "" if the rest is no valid name, nil if p is not given.
func cleanText(p Optional[string], length int) *string {
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

// cleanAddress returns a valid address in the form of CleanEmail, and any other text in that of cleanText; nil if no
// text is given. If cleanText makes a text valid by what it removes, "…" is appended, so that it stays invalid.
func cleanAddress(p Optional[string]) *string {
	if email, ok := CleanEmail(CleanName(p.Value)); ok && p.Given {
		return &email
	}
	text := cleanText(p, MaxEmail)
	if text == nil {
		return nil
	}
	if _, ok := CleanEmail(*text); ok { // valid only because cleanText removed characters
		*text += "…"
	}
	return text
}

// Merge overwrites the fields of r with those fields of a later read that are not nil.
func (r *AccountRecord) Merge(later AccountRecord) {
	into, from := reflect.ValueOf(r).Elem(), reflect.ValueOf(later)
	for i := range from.NumField() {
		if !from.Field(i).IsNil() {
			into.Field(i).Set(from.Field(i))
		}
	}
}

// Address returns the account's email address; false if it has no valid one.
func (r *AccountRecord) Address() (string, bool) {
	if r.Email == nil {
		return "", false
	}
	return CleanEmail(*r.Email)
}

// WithAccount returns the user with the account's fields, the source, and email, which no other user has. Nil fields,
// and fields that were set by hand (u.Overrides), stay. An empty department, job title or manager becomes nil. The
// status is Active if the account is Wanted, and Inactive otherwise. The role is classified again if the user has none,
// or if the email, the job title or the department has changed. WithAccount does not change the user's group.
func (u User) WithAccount(r *AccountRecord, source UserSource, email string) User {
	before := u
	// set and setNullable set a field of the user, unless the account's value is nil or the field was set by hand.
	set := func(field string, target, value *string) {
		if value != nil && !slices.Contains(u.Overrides, field) {
			*target = *value
		}
	}
	set("first_name", &u.FirstName, r.First)
	set("last_name", &u.LastName, r.Last)
	setNullable := func(field string, target **string, value *string) {
		if value != nil && !slices.Contains(u.Overrides, field) {
			*target = OrNil(*value)
		}
	}
	setNullable("department", &u.Department, r.Department)
	setNullable("job_title", &u.JobTitle, r.JobTitle)
	if r.ManagerEmail != nil {
		manager, _ := CleanEmail(*r.ManagerEmail) // "" if it is invalid
		setNullable("manager_email", &u.ManagerEmail, &manager)
	}
	if r.Language != nil && !slices.Contains(u.Overrides, "preferred_language") {
		u.Language = *r.Language
	}
	if !slices.Contains(u.Overrides, "status") {
		u.Status = Inactive
		if r.Wanted() {
			u.Status = Active
		}
	}
	u.Email, u.Source = email, source

	reclassify := u.Role == "" || u.Email != before.Email || !Same(u.JobTitle, before.JobTitle) ||
		!Same(u.Department, before.Department)
	if reclassify && !slices.Contains(u.Overrides, "role") {
		u.Role = ClassifyRole(OrZero(u.JobTitle), OrZero(u.Department), u.Email)
	}
	return u
}

// HasMail reports whether the directory has a text as the account's address, valid or not.
func (r *AccountRecord) HasMail() bool { return OrZero(r.Email) != "" }

// GroupName returns the name of the user's group: the account's group, or the default group of the directory.
func (r *AccountRecord) GroupName(d Directory) string {
	switch {
	case OrZero(r.Group) != "":
		return *r.Group
	case d == Google:
		return "Google"
	}
	return "Microsoft 365"
}

// Wanted reports whether the account's user is to be active: the account exists, is no guest, is not disabled, and
// HasMail. The record must be merged from all reads.
func (r *AccountRecord) Wanted() bool {
	is := func(flag *bool) bool { return flag != nil && *flag }
	return !is(r.Gone) && !is(r.Guest) && (r.Enabled == nil || *r.Enabled) && r.HasMail()
}

// BlankAccount returns the record into which a full read of an account is merged. A property that the read does not
// return keeps its value here: false or empty, but an account is enabled, and its language is English.
func BlankAccount() AccountRecord {
	return AccountRecord{
		Gone: new(false), Guest: new(false), Enabled: new(true), Email: new(""), First: new(""), Last: new(""),
		GivenName: new(""), FamilyName: new(""), DisplayName: new(""), Department: new(""), JobTitle: new(""),
		Manager: new(""), ManagerEmail: new(""), Language: new(English), Group: new(""),
	}
}

// DirectoryAccount is an account of a directory, with the properties that a sync uses. A delta may omit a property that
// has not changed.
type DirectoryAccount struct {
	// ObjectID is the id that the directory has for the account.
	ObjectID string
	// Removed is true if the account was deleted, or left the group that is synced.
	Removed bool
	// Guest accounts are skipped.
	Guest   Optional[bool]
	Enabled Optional[bool]
	Email   Optional[string] // in upper or lower case; empty without an address
	First   Optional[string]
	Last    Optional[string]
	// Display is the full name. It is used if there is neither a first nor a last name, and split at its last space.
	Display Optional[string]
	// The following are empty if the account has none.
	Department Optional[string]
	JobTitle   Optional[string]
	// Manager is the ID of the manager's account. It is given only by directories whose runs read changes: these do not
	// report an account when its manager's email changes.
	Manager      Optional[string]
	ManagerEmail Optional[string]
	Language     Optional[Language]
	// Group is the name of the directory's group or organizational unit; empty for the default one.
	Group Optional[string]
}
