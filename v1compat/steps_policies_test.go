package v1compat

import (
	"encoding/json"
	"fmt"
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/platform/transfer"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// hears sends the service a signal of now. Its fields are names and values by
// turns; a value that names an object is that object's id.
func hears(kind domain.SignalType, more ...any) func(*caller) answer {
	return happens(func(c *caller) {
		body := fields{"type": kind, "at": c.Clock.Now()}
		for i := 0; i < len(more); i += 2 {
			body[more[i].(string)] = more[i+1]
		}
		for field, id := range map[string]func(string) string{
			"user_id": func(name string) string { return c.userID(name).String() }, "result_id": idOf[domain.ResultKind](c),
			"policy_id": func(name string) string { return domain.PolicyID(c.uuid(idmap.Policy, name)).String() }, "course_id": idOf[domain.CourseKind](c),
		} {
			if name, ok := body[field].(string); ok {
				body[field] = id(name)
			}
		}
		c.heard++
		body["id"] = fmt.Sprint(c.tenant.ID, " ", c.heard)
		line, err := json.Marshal(body)
		if err != nil {
			c.T.Fatal(err)
		}
		refused := func(_ int, reason string) { c.T.Errorf("%s: %s", line, reason) }
		if _, err := transfer.Ingest(c.T.Context(), c.DB, strings.NewReader(string(line)), transfer.Watcher{Refused: refused}); err != nil {
			c.T.Fatal(err)
		}
	})
}

// idOf reads the ids of objects that v1 has no number of.
func idOf[K domain.Kind](c *caller) func(name string) string {
	return func(name string) string {
		id, err := domain.ParseUUID[K](c.known[name])
		if err != nil {
			c.T.Fatal(err)
		}
		return id.String()
	}
}

// governs adds a policy of client A, signatures of which last 30 days.
func governs(name, description string, scope domain.ScopeType, of string, mustSign bool) func(*caller) answer {
	return happens(func(c *caller) {
		id := db.NewID[domain.PolicyKind]()
		kind := map[domain.ScopeType]idmap.Kind{
			domain.TenantScope: idmap.Client, domain.GroupScope: idmap.Group, domain.CollectionScope: idmap.Collection,
		}[scope]
		c.Exec(`INSERT INTO policies (client_id, id, title, description, scope_type, scope_id, requires_acknowledgment, renewal_period_days, reviewed_at, created_at, updated_at)
			VALUES ($1, $2, $3, nullif($4, ''), $5, $6, $7, 30, $8, $8, $8)`,
			c.clientID("A"), id, name, description, scope, domain.ClientID(c.uuid(kind, of)), mustSign, c.Clock.Now())
		c.known[name] = c.numberOf(idmap.Policy, idmap.UUID(id))
	})
}

// signers are the audience of a policy by whether they signed it.
func signers(policy, status string) func(*caller) answer {
	return func(c *caller) answer {
		return c.get("policy-users", c.client("A")+"/policies/"+c.known[policy]+"/users?status="+status)
	}
}

func policiesOf(client string) func(*caller) answer {
	return func(c *caller) answer { return c.get("policies", c.client(client)+"/policies") }
}

var policySteps = []step{
	{"the manual group", happens(func(c *caller) {
		var group domain.GroupID
		if err := c.DB.SQL().QueryRow("SELECT id FROM groups WHERE client_id = $1", c.clientID("A")).Scan(&group); err != nil {
			c.T.Fatal(err)
		}
		c.known["Manual"] = c.numberOf(idmap.Group, idmap.UUID(group))
	}), done},
	{"a collection", collect("Sales", ""), done},
	{"a policy of all", governs("Conduct", "", domain.TenantScope, "A", true), done},
	{"of the group", governs("Travel", "By land and sea", domain.GroupScope, "Manual", true), done},
	{"of the collection", governs("Discounts", "", domain.CollectionScope, "Sales", true), done},
	{"that nobody has to sign", governs("Advice", "", domain.TenantScope, "A", false), done},
	{"a member", join("Sales", "Bob"), done},
	{"the list", policiesOf("A"), shows(
		fields{"id": "Conduct", "scope_type": "tenant", "scope_id": "A", "description": nil, "version": 1, "requires_acknowledgment": true,
			"renewal_period_days": 30, "audience_user_count": 2, "acknowledged_count": 0, "acknowledged_percentage": 0},
		fields{"id": "Travel", "scope_type": "user_container", "scope_id": "Manual", "description": "By land and sea", "audience_user_count": 2},
		fields{"id": "Discounts", "scope_type": "collection", "scope_id": "Sales", "audience_user_count": 1},
		fields{"id": "Advice", "requires_acknowledgment": false, "audience_user_count": nil, "acknowledged_count": nil, "acknowledged_percentage": nil})},

	{"Ada signs", hears(domain.PolicySigned, "user_id", "Ada", "policy_id", "Conduct", "version", 1), done},
	{"Bob signs another", hears(domain.PolicySigned, "user_id", "Bob", "policy_id", "Discounts", "version", 1), done},
	{"who signed", signers("Conduct", "signed"), shows(fields{"id": "Ada", "name": "Ada King", "email": "ada@example.com", "acknowledged": true})},
	{"who did not", signers("Conduct", "unsigned"), shows(fields{"id": "Bob", "acknowledged": false, "acknowledged_at": nil})},
	{"all", signers("Conduct", "all"), shows(fields{"id": "Ada", "acknowledged": true}, fields{"id": "Bob", "acknowledged": false})},
	{"all is the default", signers("Conduct", ""), each("id", "Ada", "Bob")},

	{"a new version", hears(domain.PolicyPublished, "policy_id", "Conduct"), done},
	{"unsigns", signers("Conduct", "signed"), shows()},
	{"the old version", hears(domain.PolicySigned, "user_id", "Bob", "policy_id", "Conduct", "version", 1), done},
	{"does not count", signers("Conduct", "signed"), shows()},
	{"the new one", hears(domain.PolicySigned, "user_id", "Bob", "policy_id", "Conduct", "version", 2), done},
	{"does", signers("Conduct", "signed"), each("id", "Bob")},
	{"29 days later", passes(29 * day), done},
	{"it holds", signers("Conduct", "signed"), each("id", "Bob")},
	{"another day later", passes(day), done},
	{"it lapsed", signers("Conduct", "unsigned"), each("id", "Ada", "Bob")},
	{"signed again", hears(domain.PolicySigned, "user_id", "Bob", "policy_id", "Conduct", "version", 2), done},
	{"and valid again", signers("Conduct", "signed"), each("id", "Bob")},

	{"Bob is inactive", changes("Bob", fields{"status": "inactive"}), done},
	{"an audience is active", signers("Conduct", "all"), each("id", "Ada")},
	{"Bob is active", changes("Bob", fields{"status": "active"}), done},
	{"the collection is deleted", happens(func(c *caller) {
		in := &api.DeleteCollectionInput{}
		in.Path.ClientID, in.Path.CollectionID = c.clientID("A"), domain.CollectionID(c.uuid(idmap.Collection, "Sales"))
		if _, err := op.Call(c.tenant.Ctx, &c.API.Set, api.DeleteCollection, in); err != nil {
			c.T.Fatal(err)
		}
	}), done},
	{"its policy has no audience", signers("Discounts", "all"), shows()},
	{"a policy is archived", happens(func(c *caller) {
		c.Exec("UPDATE policies SET archived_at = $2 WHERE id = $1", domain.PolicyID(c.uuid(idmap.Policy, "Travel")), c.Clock.Now())
	}), done},
	{"and absent", signers("Travel", "all"), refuses(domain.NotFound)},
	{"the list in the end", policiesOf("A"), shows(
		fields{"id": "Conduct", "version": 2, "audience_user_count": 2, "acknowledged_count": 1, "acknowledged_percentage": 50},
		fields{"id": "Discounts", "scope_id": "Sales", "audience_user_count": 0, "acknowledged_count": 0, "acknowledged_percentage": 0},
		fields{"id": "Advice"})},
}
