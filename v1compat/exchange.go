package v1compat

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/idmap"
	"partnerapi/v2/api"
)

// exchangeInput lists the v1 and v2 ids to look up.
type exchangeInput struct{ Body exchangeIDs }

type exchangeIDs struct {
	Kind choice[api.ReachableKind] `json:"kind" validate:"required" doc:"The kind of object that the IDs identify."`
	IDs  givenIDs                  `json:"ids" validate:"required" doc:"Up to 1,000 IDs from version 1, version 2 or both."`
}

// Weight returns the bytes of memory per byte of the body: as sent, as values, as texts, and in the response.
func (*exchangeIDs) Weight() int64 { return 4 }

// addExchangeRoutes adds the route that exchanges ids.
func (f *Facade) addExchangeRoutes() {
	addOwn(f, Meta{
		ID: "exchange-ids", Method: "POST", Path: "/ids/exchange", Status: http.StatusOK, Summary: "Exchange IDs",
		Description: "Returns each object's IDs in both versions, to help you move to version 2; duplicates are omitted. Send IDs from " +
			"version 2 as strings. Send IDs from version 1 as integers, except for the UUIDs of users and admins, which are " +
			"strings. The numeric IDs of reports can be integers or strings.",
		Fails: []int{http.StatusRequestEntityTooLarge},
	}, exchange{f}.run)
}

// Exchanged is the response to an exchange of ids (decisions 11.3).
type Exchanged struct {
	Items   []ExchangedID `json:"items" doc:"The objects that the API key can access, each once, in the order in which you first sent them."`
	Invalid []givenID     `json:"invalid" doc:"All other values, exactly as given, each once. A value is invalid if it does not identify an object of this kind that the API key can access."`
}

// ExchangedID is both ids of one object.
type ExchangedID struct {
	V1 v1ID   `json:"v1" doc:"The ID in version 1: an integer, an integer as a string (reports) or a UUID (users and admins)."`
	V2 string `json:"v2" doc:"The ID in version 2."`
}

// encoding keeps the values of Invalid exactly as sent.
func (*Exchanged) encoding() json.Options {
	return json.JoinOptions(jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true))
}

// givenIDs is a list of any values.
type givenIDs []jsontext.Value

// UnmarshalJSON splits a list of at most api.MaxReachable values, without decoding them.
func (l *givenIDs) UnmarshalJSON(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	if dec.PeekKind() != '[' {
		return domain.Fault("must be an array")
	}
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	*l = givenIDs{}
	for dec.PeekKind() != ']' {
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if len(*l) == api.MaxReachable {
			return domain.Fault("must contain at most " + strconv.Itoa(api.MaxReachable) + " items")
		}
		*l = append(*l, value.Clone())
	}
	return nil
}

// JSONSchema implements openapi.Described.
func (givenIDs) JSONSchema() string {
	return `{"type":"array","maxItems":` + strconv.Itoa(api.MaxReachable) + `,"items":` + v1ID("").JSONSchema() + `}`
}

// givenID is any JSON value as sent, except for white space within it.
type givenID string

// MarshalJSONTo writes the value.
func (g givenID) MarshalJSONTo(enc *jsontext.Encoder) error { return enc.WriteValue(jsontext.Value(g)) }

// JSONSchema implements openapi.Described: any value. In OpenAPI 3.0 null needs a type, here string.
func (givenID) JSONSchema() string {
	return `{"anyOf":[{"type":"string","nullable":true},{"type":"number"},{"type":"boolean"},{"type":"object"},` +
		`{"type":"array","items":{}}]}`
}

// v1ID is the JSON of an id of v1: a number or a text.
type v1ID string

// MarshalJSONTo writes the id.
func (id v1ID) MarshalJSONTo(enc *jsontext.Encoder) error { return enc.WriteValue(jsontext.Value(id)) }

// JSONSchema implements openapi.Described.
func (v1ID) JSONSchema() string { return `{"oneOf":[{"type":"integer"},{"type":"string"}]}` }

// naming converts between the two versions' ids of one kind of object.
type naming struct {
	// kind is the kind in the registry of numbers; 0 for one that v1 names by UUID.
	kind idmap.Kind
	// quoted reports whether v1 writes the id as a text.
	quoted bool
	// parse reads an id of v2, and show writes one.
	parse func(text string) (idmap.UUID, error)
	show  func(idmap.UUID) string
}

// namings maps each kind's noun to its naming.
var namings = map[string]naming{
	domain.ClientID{}.Noun():     newNaming[domain.ClientKind](),
	domain.UserID{}.Noun():       newNaming[domain.UserKind](),
	domain.AdminID{}.Noun():      newNaming[domain.AdminKind](),
	domain.CollectionID{}.Noun(): newNaming[domain.CollectionKind](),
	domain.PolicyID{}.Noun():     newNaming[domain.PolicyKind](),
	domain.ReportID{}.Noun():     newNaming[domain.ReportKind](),
	domain.TemplateID{}.Noun():   newNaming[domain.TemplateKind](),
	domain.GroupID{}.Noun():      newNaming[domain.GroupKind](),
}

// newNaming returns the naming of a kind.
func newNaming[K domain.Kind]() naming {
	kind, _ := idmap.ParseKind(domain.ID[K]{}.Noun()) // 0 for a kind that v1 names by UUID
	return naming{
		kind:   kind,
		quoted: kind == 0 || kind == idmap.Report, // v1 writes the numbers of reports as texts
		parse: func(text string) (idmap.UUID, error) {
			id, err := domain.ParseID[K](text)
			return idmap.UUID(id), err
		},
		show: func(id idmap.UUID) string { return domain.ID[K](id).String() },
	}
}

// candidate is a value of the request and the object it names.
type candidate struct {
	given givenID
	// isID reports whether the value is an id of the kind, even if no object has it.
	isID bool
	// number is v1's number; 0 if the value is not one.
	number int64
	// id is the object's id; zero if the value is not an id, or a number that no object has.
	id idmap.UUID
}

// parseValue parses a value as an id of either version: first as v2's, then as v1's form for the kind, a UUID or a
// number. Of any other value the candidate has only given.
func (n naming) parseValue(value jsontext.Value) candidate {
	_ = value.Compact() // it was just decoded, and is well-formed
	m := candidate{given: givenID(value)}
	text := string(value)
	if value.Kind() == '"' {
		decoded, _ := jsontext.AppendUnquote(nil, value)
		text = string(decoded)
		if id, err := n.parse(text); err == nil {
			m.isID, m.id = true, id
			return m
		}
	}

	switch {
	case n.kind == 0 && value.Kind() == '"':
		var id UUID[domain.UserKind] // all kinds have this form
		if id.UnmarshalText([]byte(text)) == nil {
			m.isID, m.id = true, idmap.UUID(id.ID)
		}
	case n.kind != 0 && (value.Kind() == '0' || value.Kind() == '"' && n.quoted):
		var ref idmap.Ref[domain.ClientKind] // all kinds have this form
		if value.Kind() == '0' {
			text = rule.PlainInteger(text)
		}
		if ref.UnmarshalText([]byte(text)) == nil {
			m.isID, m.number = true, ref.Number
		}
	}
	return m
}

// exchange implements the operation.
type exchange struct{ *Facade }

// run resolves the ids of numbers, checks access, and looks up the numbers of ids, with one statement for each step
// that has something to do. An id beyond the key's access is looked up like an unused one, so that neither the
// answer nor its time discloses which it is.
func (e exchange) run(ctx context.Context, in *exchangeInput) (*Exchanged, error) {
	names := namings[string(in.Body.Kind)]
	mentions := make([]candidate, len(in.Body.IDs))
	for i, value := range in.Body.IDs {
		mentions[i] = names.parseValue(value)
	}
	lookup, err := e.resolve(ctx, names, mentions)
	if err != nil {
		return nil, err
	}
	var ids []idmap.UUID
	for _, m := range mentions {
		if m.isID { // an unused number too, as the zero id, which no object has
			ids = append(ids, m.id)
		}
	}
	reached, err := e.lookUpReach(ctx, string(in.Body.Kind), ids)
	if err != nil {
		return nil, err
	}
	lookup.Only(reached).Cache()

	// found has each reached object once, with its number if any of the mentions has that, otherwise 0.
	found := map[idmap.UUID]int64{}
	for _, m := range mentions {
		if reached[m.id] {
			found[m.id] = max(found[m.id], m.number)
		}
	}
	if err := e.lookUpNumbers(ctx, names, found); err != nil {
		return nil, err
	}
	out := &Exchanged{Items: []ExchangedID{}, Invalid: []givenID{}}
	refused := map[givenID]bool{}
	for _, m := range mentions {
		number, unlisted := found[m.id]
		switch {
		case unlisted:
			delete(found, m.id) // the next mention of the object is not listed
			out.Items = append(out.Items, ExchangedID{V1: names.v1IDOf(m.id, number), V2: names.show(m.id)})
		case !reached[m.id] && !refused[m.given]: // each refused value once
			refused[m.given] = true
			out.Invalid = append(out.Invalid, m.given)
		}
	}
	return out, nil
}

// resolve sets the ids of the mentions that are numbers. The ids of unused numbers stay zero.
func (e exchange) resolve(ctx context.Context, names naming, mentions []candidate) (idmap.Lookup, error) {
	var numbers []idmap.NumberKey
	for _, m := range mentions {
		if m.number != 0 {
			numbers = append(numbers, idmap.NumberKey{Kind: names.kind, Number: m.number})
		}
	}
	found, lookup, err := e.Registry.IDs(ctx, numbers)
	for i, m := range mentions {
		mentions[i].id = cmp.Or(m.id, found[idmap.NumberKey{Kind: names.kind, Number: m.number}])
	}
	return lookup, err
}

// lookUpNumbers sets the numbers that are 0, as their objects were named by id. Objects that v1 names by UUID have
// none. An object without a number is an error: the registry's triggers give every object one.
func (e exchange) lookUpNumbers(ctx context.Context, names naming, objects map[idmap.UUID]int64) error {
	if names.kind == 0 {
		return nil
	}
	var ids []idmap.IDKey
	for id, number := range objects {
		if number == 0 {
			ids = append(ids, idmap.IDKey{Kind: names.kind, ID: id})
		}
	}
	found, err := e.Registry.Numbers(ctx, ids)
	for _, key := range ids {
		objects[key.ID] = found[key]
		if found[key] == 0 && err == nil {
			err = fmt.Errorf("exchange ids: %s has no number", names.show(key.ID))
		}
	}
	return err
}

// v1IDOf returns v1's id of an object.
func (n naming) v1IDOf(id idmap.UUID, number int64) v1ID {
	text := strconv.FormatInt(number, 10)
	if n.kind == 0 {
		text = domain.UserID(id).UUID() // the same for all kinds
	}
	if n.quoted {
		text = `"` + text + `"`
	}
	return v1ID(text)
}
