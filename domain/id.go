package domain

import (
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"fmt"
)

// Kind is the kind of the object that an ID identifies. The kinds are empty types, which make the ids of different
// kinds different types for the compiler.
type Kind interface {
	// Prefix returns the prefix of the kind's ids in v2, without the underscore.
	Prefix() string
	// Noun returns the name of an object of the kind in errors and commands.
	Noun() string
}

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
)

// The prefixes that callers see are in decisions 1.2. Those of partners, keys, invites, messages, sync runs and
// exposures are internal.
func (PartnerKind) Prefix() string             { return "par" }
func (KeyKind) Prefix() string                 { return "key" }
func (ClientKind) Prefix() string              { return "cli" }
func (UserKind) Prefix() string                { return "usr" }
func (AdminKind) Prefix() string               { return "adm" }
func (InviteKind) Prefix() string              { return "inv" }
func (CollectionKind) Prefix() string          { return "col" }
func (GroupKind) Prefix() string               { return "grp" }
func (PolicyKind) Prefix() string              { return "pol" }
func (FrameworkAssignmentKind) Prefix() string { return "fwa" }
func (ReportKind) Prefix() string              { return "rep" }
func (ReportedEmailKind) Prefix() string       { return "rpe" }
func (WebhookKind) Prefix() string             { return "whk" }
func (EventKind) Prefix() string               { return "evt" }
func (ResultKind) Prefix() string              { return "phr" }
func (CourseKind) Prefix() string              { return "crs" }
func (TemplateKind) Prefix() string            { return "tpl" }
func (MessageKind) Prefix() string             { return "msg" }
func (SyncRunKind) Prefix() string             { return "syn" }
func (DeliveryKind) Prefix() string            { return "dlv" }
func (ExposureKind) Prefix() string            { return "exp" }

func (PartnerKind) Noun() string             { return "partner" }
func (KeyKind) Noun() string                 { return "key" }
func (ClientKind) Noun() string              { return "client" }
func (UserKind) Noun() string                { return "user" }
func (AdminKind) Noun() string               { return "admin" }
func (InviteKind) Noun() string              { return "invite" }
func (CollectionKind) Noun() string          { return "collection" }
func (GroupKind) Noun() string               { return "group" }
func (PolicyKind) Noun() string              { return "policy" }
func (FrameworkAssignmentKind) Noun() string { return "framework assignment" }
func (ReportKind) Noun() string              { return "report" }
func (ReportedEmailKind) Noun() string       { return "reported email" }
func (WebhookKind) Noun() string             { return "webhook" }
func (EventKind) Noun() string               { return "event" }
func (ResultKind) Noun() string              { return "phishing result" }
func (CourseKind) Noun() string              { return "course" }
func (TemplateKind) Noun() string            { return "template" }
func (MessageKind) Noun() string             { return "message" }
func (SyncRunKind) Noun() string             { return "sync run" }
func (DeliveryKind) Noun() string            { return "delivery" }
func (ExposureKind) Noun() string            { return "exposure" }

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
)

const (
	crockford = "0123456789abcdefghjkmnpqrstvwxyz"
	digits    = 26 // the base32 digits of 128 bits; the first one has only three bits
)

// crockfordValue maps a digit to its value, and every other byte to 0xFF.
var crockfordValue = func() (table [256]byte) {
	for i := range table {
		table[i] = 0xFF
	}
	for i := range crockford {
		table[crockford[i]] = byte(i)
	}
	return table
}()

var errBadID = errors.New("not an id of this kind")

// Prefix returns the prefix of the ids of this kind.
func (id ID[K]) Prefix() string { var k K; return k.Prefix() }

// Noun returns the name of an object of this kind.
func (id ID[K]) Noun() string { var k K; return k.Noun() }

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
func (id ID[K]) AppendText(b []byte) ([]byte, error) {
	b = append(b, id.Prefix()...)
	b = append(b, '_')
	var acc uint32 // the bits that are not yet written; two zero bits come before the first byte
	bits := 2
	for _, octet := range id {
		acc, bits = acc<<8|uint32(octet), bits+8
		for ; bits >= 5; bits -= 5 {
			b = append(b, crockford[acc>>(bits-5)&31])
		}
	}
	return b, nil
}

// MarshalText returns the id in the form of v2. It never fails.
func (id ID[K]) MarshalText() ([]byte, error) { return id.AppendText(nil) }

// UnmarshalText parses an id of this kind in the form of v2. Only the canonical form is valid.
func (id *ID[K]) UnmarshalText(text []byte) error {
	prefix := id.Prefix()
	if len(text) != len(prefix)+1+digits || string(text[:len(prefix)]) != prefix || text[len(prefix)] != '_' {
		return errBadID
	}
	text = text[len(prefix)+1:]
	if text[0] > '7' { // more than 128 bits
		return errBadID
	}
	var out ID[K]
	var acc uint32
	bits, n := -2, 0
	for _, c := range text {
		value := crockfordValue[c]
		if value == 0xFF {
			return errBadID
		}
		acc, bits = acc<<5|uint32(value), bits+5
		if bits >= 8 {
			out[n] = byte(acc >> (bits - 8))
			bits, n = bits-8, n+1
		}
	}
	*id = out
	return nil
}

// ParseID parses an id in the form of v2.
func ParseID[K Kind](text string) (id ID[K], err error) {
	err = id.UnmarshalText([]byte(text))
	return id, err
}

// UUID returns the id as UUID text in the canonical form, in lower case. v1 shows the ids of users, admins and messages
// so.
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

// Scan implements sql.Scanner for a PostgreSQL uuid, as bytes or text.
func (id *ID[K]) Scan(src any) error {
	switch src := src.(type) {
	case string:
		parsed, err := ParseUUID[K](src)
		*id = parsed
		return err
	case []byte:
		if len(src) == len(id) {
			copy(id[:], src)
			return nil
		}
		parsed, err := ParseUUID[K](string(src))
		*id = parsed
		return err
	default:
		return fmt.Errorf("scan %T into an id", src)
	}
}

// Value implements driver.Valuer: it returns the UUID text.
func (id ID[K]) Value() (driver.Value, error) { return id.UUID(), nil }
