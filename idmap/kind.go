// Package idmap is the id registry: it maps objects to the numbers that v1 shows
// for them. No other part of the service knows numbers.
//
// Numbers are given by the database, in the transaction that inserts an object
// (see migrations). A Registry looks them up in bulk, both ways; Resolve and
// Number do so for every Ref in a value; Import gives objects the numbers that they
// had before the registry. The whole package, its tables included, can be
// deleted with v1: drop.sql leaves nothing of it in a database.
package idmap

import (
	"errors"
	"fmt"
	"strings"

	"partnerapi/domain"
)

// Kind is a space of numbers: v1's integer 7 is one client, one policy, and so
// on. The zero Kind is none.
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

// MaxNumber is the highest number that an object can have: v1's clients are
// often of 32 bits (decisions 1.4). The lowest is 1.
const MaxNumber = 1<<31 - 1

// UUID is the id of an object of whichever kind.
type UUID = [16]byte

// anyID is a UUID with the text and SQL forms of domain's ids, which are the same
// for all kinds.
type anyID = domain.ID[domain.ClientKind]

// A space is the space of numbers of a kind, and the form of its ids.
type space struct {
	name   string // in the registry's rows, commands and files
	prefix string // of v2's ids
	parse  func(text string) (UUID, error)
	show   func(id UUID) string
}

// spaces holds the space of each Kind at its index.
var spaces = [...]space{
	Client:     spaceOf[domain.ClientKind](),
	Collection: spaceOf[domain.CollectionKind](),
	Policy:     spaceOf[domain.PolicyKind](),
	Template:   spaceOf[domain.TemplateKind](),
	Group:      spaceOf[domain.GroupKind](),
	Report:     spaceOf[domain.ReportKind](),
}

func spaceOf[K domain.Kind]() space {
	var kind K
	return space{
		name:   kind.Noun(),
		prefix: kind.Prefix(),
		parse: func(text string) (UUID, error) {
			id, err := domain.ParseID[K](text)
			return UUID(id), err
		},
		show: func(id UUID) string { return domain.ID[K](id).String() },
	}
}

// String returns the kind's name: client, collection, policy, template, group
// or report.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(spaces) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return spaces[k].name
}

// ParseKind returns the kind of that name.
func ParseKind(name string) (Kind, error) {
	if k, ok := kindNamed(name); ok {
		return k, nil
	}
	names := make([]string, 0, len(spaces)-1)
	for _, s := range spaces[1:] {
		names = append(names, s.name)
	}
	return 0, fmt.Errorf("unknown kind %q: one of %s", name, strings.Join(names, ", "))
}

func kindNamed(name string) (Kind, bool) {
	for k := Client; int(k) < len(spaces); k++ {
		if spaces[k].name == name {
			return k, true
		}
	}
	return 0, false
}

var (
	errIDForm = errors.New("neither an id nor a UUID")
	errIDKind = errors.New("an id of another kind")
)

// ParseID reads an id of kind k as v2 shows it, or as UUID text in either case.
func ParseID(k Kind, text string) (UUID, error) {
	if id, err := domain.ParseUUID[domain.ClientKind](strings.ToLower(text)); err == nil {
		return UUID(id), nil
	}
	if id, err := spaces[k].parse(text); err == nil {
		return id, nil
	}
	prefix, rest, found := strings.Cut(text, "_")
	if found && prefix != spaces[k].prefix {
		if _, err := spaces[k].parse(spaces[k].prefix + "_" + rest); err == nil {
			return UUID{}, errIDKind
		}
	}
	return UUID{}, errIDForm
}
