package v1compat

import "encoding/json"

func collect(name, description string) func(*caller) answer {
	return func(c *caller) answer {
		body := fields{"name": name, "description": description}
		return c.keep(name, c.do("POST", c.client("A")+"/collections", body))
	}
}

func join(collection, user string) func(*caller) answer {
	return func(c *caller) answer {
		return c.do("POST", c.members("A", collection), fields{"user_infima_id": c.known[user]})
	}
}

func leave(collection, user string) func(*caller) answer {
	return func(c *caller) answer { return c.do("DELETE", c.members("A", collection)+"/"+c.known[user], nil) }
}

func membersOf(collection string) func(*caller) answer {
	return func(c *caller) answer { return c.get("collection-members", c.members("A", collection)) }
}

var collectionSteps = []step{
	{"a collection", collect("Sales", "Those who sell"), shows(fields{"id": "Sales", "name": "Sales", "description": "Those who sell", "member_count": 0})},
	{"another", collect("Överste", ""), shows(fields{"name": "Överste", "member_count": 0})},

	{"a member", join("Sales", "Bob"), shows(fields{"status": "added"})},
	{"a second", join("Sales", "Ada"), done},
	{"by when they came", membersOf("Sales"), shows(
		fields{"user_infima_id": "Bob", "name": "Bob Example", "email": "bob@example.com"}, fields{"user_infima_id": "Ada", "name": "Ada King"})},
	{"the same again", join("Sales", "Bob"), done},
	{"as before", membersOf("Sales"), each("user_infima_id", "Bob", "Ada")},
	{"a move", join("Överste", "Bob"), done},
	{"what is left", membersOf("Sales"), each("user_infima_id", "Ada")},
	{"where to", membersOf("Överste"), each("user_infima_id", "Bob")},
	{"a move back", join("Sales", "Bob"), done},
	{"the last now", membersOf("Sales"), each("user_infima_id", "Ada", "Bob")},
	{"an inactive member", changes("Bob", fields{"status": "inactive"}), done},
	{"still a member", membersOf("Sales"), each("user_infima_id", "Ada", "Bob")},
	{"one who is created in it", func(c *caller) answer {
		return c.keep("New", c.createUser("A", fields{"email": "new@example.com", "collection_id": json.Number(c.known["Sales"])}))
	}, done},
	{"is the last", membersOf("Sales"), each("user_infima_id", "Ada", "Bob", "New")},

	{"one leaves", leave("Sales", "Ada"), shows(fields{"status": "removed"})},
	{"and is gone", membersOf("Sales"), each("user_infima_id", "Bob", "New")},
	{"the list", func(c *caller) answer { return c.get("collections", c.client("A")+"/collections") }, shows(
		fields{"id": "Sales", "member_count": 2}, fields{"id": "Överste", "member_count": 0})},
}
