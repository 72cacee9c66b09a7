package v1compat

import (
	"strings"

	"partnerapi/domain"
)

func collect(client, name, description string) func(*actor) answer {
	return func(a *actor) answer {
		body := fields{"name": name}
		if description != "" {
			body["description"] = description
		}
		return a.keep(name, a.createCollection(a.known[client], body))
	}
}

func join(client, collection, user string) func(*actor) answer {
	return func(a *actor) answer {
		return a.addMember(a.known[client], a.someone(collection), a.someone(user))
	}
}

func leave(client, collection, user string) func(*actor) answer {
	return func(a *actor) answer {
		return a.removeMember(a.known[client], a.someone(collection), a.someone(user))
	}
}

func membersOf(client, collection string) func(*actor) answer {
	return func(a *actor) answer { return a.members(a.known[client], a.someone(collection)) }
}

var collectionSteps = []step{
	{"a collection", collect("A", "Sales", "Those who sell"), shows(fields{"id": "Sales", "name": "Sales", "description": "Those who sell", "members": 0})},
	{"another", collect("A", "Överste", ""), shows(fields{"name": "Överste", "members": 0})},
	{"its name again", collect("A", "ÖVERSTE", ""), refuses(domain.Conflict)},
	{"in another client", collect("B", "Foreign", ""), done},
	{"in a stranger's", collect("theirs", "Sales", ""), refuses(domain.NotFound)},
	{"no name", func(a *actor) answer { return a.createCollection(a.known["A"], fields{}) }, refuses(domain.InvalidRequest)},
	{"a blank name", collect("A", " \t ", ""), refuses(domain.InvalidRequest)},
	{"the longest name", collect("A", strings.Repeat("é", 200), strings.Repeat("é", 2000)), done},
	{"too long a name", collect("A", strings.Repeat("é", 201), ""), refuses(domain.InvalidRequest)},
	{"too long a description", collect("A", "Long", strings.Repeat("é", 2001)), refuses(domain.InvalidRequest)},

	{"a member", join("A", "Sales", "Bob"), done},
	{"a second", join("A", "Sales", "Ada"), done},
	{"by when they came", membersOf("A", "Sales"), shows(
		fields{"id": "Bob", "name": "Bob Example", "email": "bob@example.com"}, fields{"id": "Ada", "name": "Ada King"})},
	{"the same again", join("A", "Sales", "Bob"), done},
	{"as before", membersOf("A", "Sales"), shows(fields{"id": "Bob"}, fields{"id": "Ada"})},
	{"a move", join("A", "Överste", "Bob"), done},
	{"what is left", membersOf("A", "Sales"), shows(fields{"id": "Ada"})},
	{"where to", membersOf("A", "Överste"), shows(fields{"id": "Bob"})},
	{"a move back", join("A", "Sales", "Bob"), done},
	{"the last now", membersOf("A", "Sales"), shows(fields{"id": "Ada"}, fields{"id": "Bob"})},
	{"an inactive member", func(a *actor) answer { return a.updateUser(a.known["Bob"], fields{"status": "inactive"}) }, done},
	{"still a member", membersOf("A", "Sales"), shows(fields{"id": "Ada"}, fields{"id": "Bob"})},
	{"nobody", join("A", "Sales", "nobody"), refuses(domain.NotFound)},
	{"another client's user", join("A", "Sales", "Eve"), refuses(domain.NotFound)},
	{"a stranger's user", join("A", "Sales", "their user"), refuses(domain.NotFound)},
	{"no collection", join("A", "none", "Ada"), refuses(domain.NotFound)},
	{"another client's collection", join("A", "Foreign", "Ada"), refuses(domain.NotFound)},
	{"a stranger's client", join("theirs", "Sales", "Ada"), refuses(domain.NotFound)},
	{"members of none", membersOf("A", "none"), refuses(domain.NotFound)},
	{"members of another client's", membersOf("A", "Foreign"), refuses(domain.NotFound)},

	{"one leaves", leave("A", "Sales", "Ada"), done},
	{"and is gone", membersOf("A", "Sales"), shows(fields{"id": "Bob"})},
	{"again", leave("A", "Sales", "Ada"), refuses(domain.NotFound)},
	{"nobody leaves", leave("A", "Sales", "nobody"), refuses(domain.NotFound)},
	{"from no collection", leave("A", "none", "Bob"), refuses(domain.NotFound)},
	{"from another client's", leave("A", "Foreign", "Bob"), refuses(domain.NotFound)},
	{"at a stranger's", leave("theirs", "Sales", "Bob"), refuses(domain.NotFound)},
	{"a stranger's list", func(a *actor) answer { return a.collections(a.known["theirs"]) }, refuses(domain.NotFound)},
	{"the list", func(a *actor) answer { return a.collections(a.known["A"]) }, shows(
		fields{"id": "Sales", "members": 1, "description": "Those who sell"}, fields{"id": "Överste", "members": 0, "description": ""}, fields{"members": 0})},
}

func collectionViews(a *actor, x surface) map[string]answer {
	shown := map[string]answer{}
	for _, client := range []string{"A", "B"} {
		if id, ok := a.known[client]; ok {
			shown["collections of "+client] = x.collections(id)
		}
	}
	for _, collection := range []string{"Sales", "Överste"} {
		if id, ok := a.known[collection]; ok {
			shown["members of "+collection] = x.members(a.known["A"], id)
		}
	}
	return shown
}
