package domain

import (
	"database/sql/driver"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// Kind is the kind of the object that an ID identifies. The kinds are empty types, which make the ids of different
// kinds different types for the compiler.
type Kind interface{ words() kindWords }

// kindWords are the prefix of the kind's ids in v2, without the underscore, and the name of an object of the kind in
// errors and commands.
type kindWords struct{ prefix, noun string }

// The kinds of objects that have ids.
type (
	PartnerKind             struct{}
	KeyKind                 struct{}
	ClientKind              struct{}
	UserKind                struct{}
	AdminKind               struct{}
	InviteKind              struct{}
	CollectionKind          struct{}
	GroupKind               struct{}
	PolicyKind              struct{}
	FrameworkAssignmentKind struct{}
	ReportKind              struct{}
	ReportedEmailKind       struct{}
	WebhookKind             struct{}
	EventKind               struct{}
	ResultKind              struct{}
	CourseKind              struct{}
	TemplateKind            struct{}
	MessageKind             struct{}
	SyncRunKind             struct{}
	DeliveryKind            struct{}
	ExposureKind            struct{}
	TrainingKind            struct{}
	BrandKind               struct{}
)

// The prefixes that callers see are in decisions 1.2. Those of partners, keys, invites, messages, sync runs,
// exposures, training assignments and brands are internal.
func (PartnerKind) words() kindWords    { return kindWords{prefix: "par", noun: "partner"} }
func (KeyKind) words() kindWords        { return kindWords{prefix: "key", noun: "key"} }
func (ClientKind) words() kindWords     { return kindWords{prefix: "cli", noun: "client"} }
func (UserKind) words() kindWords       { return kindWords{prefix: "usr", noun: "user"} }
func (AdminKind) words() kindWords      { return kindWords{prefix: "adm", noun: "admin"} }
func (InviteKind) words() kindWords     { return kindWords{prefix: "inv", noun: "invite"} }
func (CollectionKind) words() kindWords { return kindWords{prefix: "col", noun: "collection"} }
func (GroupKind) words() kindWords      { return kindWords{prefix: "grp", noun: "group"} }
func (PolicyKind) words() kindWords     { return kindWords{prefix: "pol", noun: "policy"} }
func (FrameworkAssignmentKind) words() kindWords {
	return kindWords{prefix: "fwa", noun: "framework assignment"}
}
func (ReportKind) words() kindWords        { return kindWords{prefix: "rep", noun: "report"} }
func (ReportedEmailKind) words() kindWords { return kindWords{prefix: "rpe", noun: "reported email"} }
func (WebhookKind) words() kindWords       { return kindWords{prefix: "whk", noun: "webhook"} }
func (EventKind) words() kindWords         { return kindWords{prefix: "evt", noun: "event"} }
func (ResultKind) words() kindWords        { return kindWords{prefix: "phr", noun: "phishing result"} }
func (CourseKind) words() kindWords        { return kindWords{prefix: "crs", noun: "course"} }
func (TemplateKind) words() kindWords      { return kindWords{prefix: "tpl", noun: "template"} }
func (MessageKind) words() kindWords       { return kindWords{prefix: "msg", noun: "message"} }
func (SyncRunKind) words() kindWords       { return kindWords{prefix: "syn", noun: "sync run"} }
func (DeliveryKind) words() kindWords      { return kindWords{prefix: "dlv", noun: "delivery"} }
func (ExposureKind) words() kindWords      { return kindWords{prefix: "exp", noun: "exposure"} }
func (TrainingKind) words() kindWords      { return kindWords{prefix: "trn", noun: "training assignment"} }
func (BrandKind) words() kindWords         { return kindWords{prefix: "brd", noun: "brand"} }

// ID is the id of an object of kind K. It is a UUID, of version 7 for objects that this service created. Its text form,
// which callers treat as opaque, is the kind's prefix, an underscore, and the UUID in 26 digits of lower-case Crockford
// base32. No object has the zero ID.
type ID[K Kind] [16]byte

// The ids of each kind.
type (
	PartnerID             = ID[PartnerKind]
	KeyID                 = ID[KeyKind]
	ClientID              = ID[ClientKind]
	UserID                = ID[UserKind]
	AdminID               = ID[AdminKind]
	InviteID              = ID[InviteKind]
	CollectionID          = ID[CollectionKind]
	GroupID               = ID[GroupKind]
	PolicyID              = ID[PolicyKind]
	FrameworkAssignmentID = ID[FrameworkAssignmentKind]
	ReportID              = ID[ReportKind]
	ReportedEmailID       = ID[ReportedEmailKind]
	WebhookID             = ID[WebhookKind]
	EventID               = ID[EventKind]
	ResultID              = ID[ResultKind]
	CourseID              = ID[CourseKind]
	TemplateID            = ID[TemplateKind]
	MessageID             = ID[MessageKind]
	SyncRunID             = ID[SyncRunKind]
	DeliveryID            = ID[DeliveryKind]
	ExposureID            = ID[ExposureKind]
	TrainingID            = ID[TrainingKind]
	BrandID               = ID[BrandKind]
)

// crockford encodes ids. An id has its spare bits in the first digit, but base32 has them in the last one. So an id is
// encoded after idPadding zero bytes, and the digits of these, zeros, are omitted.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const (
	idPadding = 4
	zeros     = "000000"
	digits    = 26 // of 128 bits; the first holds only three
)

var errBadID = errors.New("not an ID of this kind")

// Prefix returns the prefix of the ids of this kind.
func (id ID[K]) Prefix() string { return (*new(K)).words().prefix }

// Noun returns the name of an object of this kind.
func (id ID[K]) Noun() string { return (*new(K)).words().noun }

// Bytes returns the 16 bytes of the id's UUID.
func (id ID[K]) Bytes() [16]byte { return id }

// IsZero reports whether the id is the zero ID.
func (id ID[K]) IsZero() bool { return id == ID[K]{} }

// String returns the id in the form of v2.
func (id ID[K]) String() string {
	text, _ := id.AppendText(make([]byte, 0, 32)) // long enough for all ids
	return string(text)
}

// AppendText appends the id in the form of v2. It never fails.
func (id ID[K]) AppendText(b []byte) ([]byte, error) { return appendID(b, id.Prefix(), id), nil }

// appendID appends an id in the form of v2: the prefix, an underscore, and the UUID in 26 digits of base32. Zero bytes
// before the UUID put the spare bits into its first digit, not the last one. The digits of these bytes are omitted.
func appendID(b []byte, prefix string, id [16]byte) []byte {
	var padded [idPadding + len(id)]byte
	var text [len(zeros) + digits]byte
	copy(padded[idPadding:], id[:])
	crockford.Encode(text[:], padded[:])
	return append(append(append(b, prefix...), '_'), text[len(zeros):]...)
}

// MarshalText returns the id in the form of v2. It never fails.
func (id ID[K]) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText parses an id of this kind in the canonical form of v2. zeros are the digits that appendID omits.
func (id *ID[K]) UnmarshalText(text []byte) error {
	code, ok := strings.CutPrefix(string(text), id.Prefix()+"_")
	if !ok || len(code) != digits || code[0] > '7' { // which would overflow 128 bits
		return errBadID
	}
	var padded [idPadding + len(id)]byte
	if n, err := crockford.Decode(padded[:], []byte(zeros+code)); err != nil || n != len(padded) { // Decode skips \n
		return errBadID
	}
	copy(id[:], padded[idPadding:])
	return nil
}

// ParseID parses an id in the form of v2.
func ParseID[K Kind](text string) (id ID[K], err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

// UUID returns the id as UUID text in the canonical form, in lower case, as v1 shows the ids of users, admins and
// messages.
func (id ID[K]) UUID() string {
	var b [36]byte
	hex.Encode(b[0:8], id[0:4])
	hex.Encode(b[9:13], id[4:6])
	hex.Encode(b[14:18], id[6:8])
	hex.Encode(b[19:23], id[8:10])
	hex.Encode(b[24:36], id[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// ParseUUID parses UUID text in the canonical form, in lower case.
func ParseUUID[K Kind](text string) (id ID[K], err error) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return id, errBadID
	}
	hexDigits := text[0:8] + text[9:13] + text[14:18] + text[19:23] + text[24:36]
	if _, err := hex.Decode(id[:], []byte(hexDigits)); err != nil || id.UUID() != text {
		return ID[K]{}, errBadID
	}
	return id, nil
}

// SetUUID sets the id to a UUID, in upper or lower case. It returns false, and sets nothing, if text is no UUID or zero.
func (id *ID[K]) SetUUID(text string) bool {
	parsed, err := ParseUUID[K](strings.ToLower(text))
	if err != nil || parsed.IsZero() {
		return false
	}
	*id = parsed
	return true
}

// Scan implements sql.Scanner for a PostgreSQL uuid, as bytes or text.
func (id *ID[K]) Scan(src any) (err error) {
	switch src := src.(type) {
	case string:
		*id, err = ParseUUID[K](src)
	case []byte:
		if len(src) == len(id) {
			copy(id[:], src)
			return nil
		}
		*id, err = ParseUUID[K](string(src))
	default:
		err = fmt.Errorf("scan %T into an id", src)
	}
	return err
}

// Value implements driver.Valuer: it returns the UUID text.
func (id ID[K]) Value() (driver.Value, error) { return id.UUID(), nil }
