package domain

import (
	"net/netip"
	"time"
)

// AuditLife is how long entries of the audit trail are kept.
const AuditLife = 400 * 24 * time.Hour

// CommandActor is the key prefix in the entries of operators' commands.
const CommandActor = "command"

// AuditEntry is an entry of the audit trail: a write, with its actor, time and object. It holds names of fields, never
// their values.
type AuditEntry struct {
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
