package domain

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// AuditLife is how long entries of the audit trail are kept.
const AuditLife = 400 * 24 * time.Hour

// CommandActor is the key prefix in the entries of operators' commands.
const CommandActor = "command"

// AuditEntry is an entry of the audit trail: a write, with its actor, time and object. It holds names of fields, never
// their values.
type AuditEntry struct {
	// ID is assigned when the entry is inserted.
	ID AuditID `bun:"entry_id"`
	At time.Time

	// Partner is the partner of the key, or the partner that a command is about; zero for none.
	Partner PartnerID `bun:"partner_id"`
	// Key and Prefix are those of the key that made the request. For a command, Key is zero and Prefix is CommandActor.
	Key    KeyID  `bun:"key_id"`
	Prefix string `bun:"key_prefix"`
	// SystemUser is the user of the operating system who ran the command. SudoUser is the user who called sudo for it.
	// Both are empty for requests.
	SystemUser string `bun:"os_user,nullzero"` // system_user is an SQL keyword
	SudoUser   string `bun:",nullzero"`
	// Address is the address of the caller; the zero Addr if it is unknown.
	Address netip.Addr `bun:",nullzero"`

	// Operation is the id of the operation, such as users.update, or the command, such as keys create.
	Operation string
	// Method and Path are those of the request, without its query; empty for a command.
	Method, Path string

	// Client and User are those that the request is about; zero for none.
	Client ClientID `bun:"client_id,nullzero"`
	User   UserID   `bun:"user_id,nullzero"`

	// Object is the object that was created or changed; zero if it is not a single object.
	Object AuditObject `bun:"embed:object_"`
	// Fields are the names of the given fields, sorted.
	Fields []string `bun:",array"`

	RequestID string
}

// AuditObject identifies an object by its noun, such as webhook, and its id in the form of v2, or its name if it has no
// id.
type AuditObject struct {
	Kind, ID string `bun:",nullzero"`
}

// AuditFilter selects entries of the audit trail. A zero field does not restrict them.
type AuditFilter struct {
	Client ClientID
	Prefix string
	Since  time.Time
}

// AuditLogFilter selects entries of the audit log of the caller's partner, and their order. A zero field but Sort does
// not restrict them.
type AuditLogFilter struct {
	Client *ClientID
	// Key is the prefix of a key, of any of its secrets.
	Key       string
	Operation string
	Period    // the period of the entries
	Sort      Sort
}

// LoggedEntry is an entry of the audit log as a caller may see it: Address is zero if the caller may not see it.
type LoggedEntry struct {
	AuditEntry
	// KeyName is the name of the key; nil for a command, for an unknown key, and if the caller may not see it.
	KeyName *string
}

// ActorType is a type of actor in the audit log.
type ActorType string

// The types of actors.
const (
	KeyActor      ActorType = "key"
	OperatorActor ActorType = "operator"
)

// Values lists the types of actors.
func (ActorType) Values() []string { return texts(KeyActor, OperatorActor) }

// Actor returns the type of the entry's actor.
func (e *AuditEntry) Actor() ActorType {
	if e.Prefix == CommandActor {
		return OperatorActor
	}
	return KeyActor
}

// shownObjects are the kinds of objects whose IDs callers know from v2. A breach is known by its name, and a key by its
// prefix. Other objects, such as invites, have only internal IDs.
var shownObjects = []string{
	ClientID{}.Noun(), UserID{}.Noun(), AdminID{}.Noun(), CollectionID{}.Noun(), GroupID{}.Noun(), PolicyID{}.Noun(),
	FrameworkAssignmentID{}.Noun(), ReportID{}.Noun(), ReportedEmailID{}.Noun(), WebhookID{}.Noun(), EventID{}.Noun(),
	ResultID{}.Noun(), CourseID{}.Noun(), TemplateID{}.Noun(), DeliveryID{}.Noun(), KeyID{}.Noun(), "breach",
}

// Type returns the object's kind as v2 shows it, such as framework_assignment.
func (o AuditObject) Type() string { return strings.ReplaceAll(o.Kind, " ", "_") }

// ShownID returns the object's ID if callers know it from v2, otherwise nil.
func (o AuditObject) ShownID() *string {
	if !slices.Contains(shownObjects, o.Kind) {
		return nil
	}
	return OrNil(o.ID)
}

// AuditSort is an order of the audit log.
type AuditSort string

// Values lists the sort orders.
func (AuditSort) Values() []string { return []string{"-at", "at"} }
