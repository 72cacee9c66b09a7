package domain

import (
	"net/netip"
	"time"
)

// AuditLife is how long entries of the audit trail are kept.
const AuditLife = 400 * 24 * time.Hour

// CommandActor stands for a key's prefix in the entries of operators' commands.
const CommandActor = "command"

// AuditEntry says who did which write, when, and to what. It holds names of fields,
// and never their values.
type AuditEntry struct {
	At time.Time

	// Partner is that of the key, or the one that a command is about; zero for
	// none.
	Partner PartnerID
	// Key and Prefix are of the key that made the request. For a command, Key is
	// zero and Prefix is CommandActor.
	Key    KeyID
	Prefix string
	// SystemUser is the operating system's user who ran the command, and SudoUser
	// the one who did so by sudo; empty for requests.
	SystemUser, SudoUser string
	// Address is the caller's; the zero Addr where it is not known.
	Address netip.Addr

	// Operation is the id of the operation, such as users.update, or the command,
	// such as keys create.
	Operation string
	// Method and Path are the request's, without its query; empty for a command.
	Method, Path string

	// Client and User are what the request is about; zero where it is about
	// none.
	Client ClientID
	User   UserID

	// Object is what was made or changed; zero where it is no single object.
	Object AuditObject
	// Fields are the names of the fields that were given, sorted.
	Fields []string

	RequestID string
}

// AuditObject identifies an object: its noun, such as webhook, and its id as v2 shows
// it, or its name if it has no id.
type AuditObject struct{ Kind, ID string }

// AuditFilter selects entries of the audit trail. A zero field selects all.
type AuditFilter struct {
	Client ClientID
	Prefix string
	Since  time.Time
}
