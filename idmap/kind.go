// Package idmap is the id registry: it maps the ids of objects to the numbers that v1 has for them. No other part of
// the service uses these numbers.
//
// The database allocates a number in the transaction that inserts an object (see migrations). A Registry looks up many
// numbers or ids at once; Resolve and Number do so for every Ref in a value; Import gives objects the numbers that they
// had before the registry existed. The whole package, with its tables, can be deleted with v1: drop.sql removes
// everything of it from a database.
package idmap

import (
	"errors"
	"fmt"
	"strings"

	"partnerapi/domain"
)

// Kind is a kind of objects with its own numbers: v1's number 7 can be a client and a policy. The zero Kind is
// invalid.
type Kind uint8

// The kinds of objects that have numbers (decisions 1.3).
const (
	Client Kind = iota + 1
	Collection
	Policy
	Template
	Group
	Report
)

// MaxNumber is the highest number that an object can have: programs that use v1 often have integers of 32 bits
// (decisions 1.4). The lowest is 1.
const MaxNumber = 1<<31 - 1

// UUID is the id of an object of any kind.
type UUID = [16]byte

// anyID is a UUID with the SQL form of domain.ID and its method UUID, which are the same for all kinds.
type anyID = domain.ID[domain.ClientKind]

// kindInfo describes a kind and the form of its ids.
type kindInfo struct {
	name   string // of the kind in the registry's rows, in commands and in files
	prefix string // of ids in the form of v2
	parse  func(text string) (UUID, error)
	show   func(id UUID) string
}

// kindInfos describes each Kind, at its index.
var kindInfos = [...]kindInfo{
	Client:     kindInfoOf[domain.ClientKind](),
	Collection: kindInfoOf[domain.CollectionKind](),
	Policy:     kindInfoOf[domain.PolicyKind](),
	Template:   kindInfoOf[domain.TemplateKind](),
	Group:      kindInfoOf[domain.GroupKind](),
	Report:     kindInfoOf[domain.ReportKind](),
}

// kindInfoOf describes a kind of domain's ids.
func kindInfoOf[K domain.Kind]() kindInfo {
	return kindInfo{
		name:   domain.ID[K]{}.Noun(),
		prefix: domain.ID[K]{}.Prefix(),
		parse: func(text string) (UUID, error) {
			id, err := domain.ParseID[K](text)
			return UUID(id), err
		},
		show: func(id UUID) string { return domain.ID[K](id).String() },
	}
}

// String returns the kind's name: client, collection, policy, template, group or report.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindInfos) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindInfos[k].name
}

// ParseKind returns the kind with a name. The error lists the valid names.
func ParseKind(name string) (Kind, error) {
	if k, ok := kindNamed(name); ok {
		return k, nil
	}
	return 0, fmt.Errorf("unknown kind %q; use one of %s", name, strings.Join(kindNames(), ", "))
}

// kindNames returns the names of all kinds.
func kindNames() (names []string) {
	for _, s := range kindInfos[Client:] {
		names = append(names, s.name)
	}
	return names
}

// kindNamed returns the kind with a name; false if there is none.
func kindNamed(name string) (Kind, bool) {
	for k := Client; int(k) < len(kindInfos); k++ {
		if kindInfos[k].name == name {
			return k, true
		}
	}
	return 0, false
}

var (
	errIDForm = errors.New("neither an ID nor a UUID")
	errIDKind = errors.New("an ID of another kind")
)

// ParseID parses an id of kind k: in the form of v2, or as a UUID in upper or lower case. The error is errIDKind if
// only the prefix is wrong, and errIDForm otherwise.
func ParseID(k Kind, text string) (UUID, error) {
	if id, err := domain.ParseUUID[domain.ClientKind](strings.ToLower(text)); err == nil { // the same for all kinds
		return UUID(id), nil
	}
	if id, err := kindInfos[k].parse(text); err == nil {
		return id, nil
	}
	prefix, rest, found := strings.Cut(text, "_")
	if found && prefix != kindInfos[k].prefix {
		// If the text is valid with the prefix of k, it is an id of another kind.
		if _, err := kindInfos[k].parse(kindInfos[k].prefix + "_" + rest); err == nil {
			return UUID{}, errIDKind
		}
	}
	return UUID{}, errIDForm
}
