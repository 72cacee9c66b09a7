package v1compat

import (
	"encoding/json"
	"fmt"
	"strings"

	"partnerapi/db"
	"partnerapi/domain"
	"partnerapi/platform/transfer"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// hears sends the service a signal of now. Its fields are names and values by
// turns; a value that is a name is that object's id.
func hears(kind domain.SignalType, more ...any) func(*actor) answer {
	return each(func(a *actor) {
		body := fields{"type": kind, "at": a.Clock.Now()}
		for i := 0; i < len(more); i += 2 {
			body[more[i].(string)] = more[i+1]
		}
		for field, id := range map[string]func(v2surface, string) string{
			"user_id": v2id[domain.UserKind], "policy_id": v2id[domain.PolicyKind], "result_id": v2id[domain.ResultKind], "course_id": v2id[domain.CourseKind],
		} {
			if name, ok := body[field].(string); ok {
				body[field] = id(v2surface{service: a.service}, a.known[name])
			}
		}
		a.heard++
		body["id"] = fmt.Sprint(a.tenant.ID, " ", a.heard)
		line, err := json.Marshal(body)
		if err != nil {
			a.T.Fatal(err)
		}
		refused := func(_ int, reason string) { a.T.Errorf("%s: %s", line, reason) }
		if _, err := transfer.Ingest(a.T.Context(), a.DB, strings.NewReader(string(line)), transfer.Watcher{Refused: refused}); err != nil {
			a.T.Fatal(err)
		}
	})
}

// governs adds a policy of client A, signatures of which last 30 days.
func governs(name, description string, scope domain.ScopeType, of string, mustSign bool) func(*actor) answer {
	return each(func(a *actor) {
		id := db.NewID[domain.PolicyKind]()
		a.Exec(`INSERT INTO policies (client_id, id, title, description, scope_type, scope_id, requires_acknowledgment, renewal_period_days, reviewed_at, created_at, updated_at)
			VALUES ($1, $2, $3, nullif($4, ''), $5, $6, $7, 30, $8, $8, $8)`, a.known["A"], id, name, description, scope, a.known[of], mustSign, a.Clock.Now())
		a.known[name] = id.UUID()
		a.known["all of "+of] = fmt.Sprint(scope, " ", a.numberFor(scopeKinds[string(scope)], a.known[of]))
	})
}

// signers are the audience of a policy by whether they signed it.
func signers(client, policy, status string) func(*actor) answer {
	return func(a *actor) answer { return a.policyUsers(a.known[client], a.someone(policy), status) }
}

func policiesOf(client string) func(*actor) answer {
	return func(a *actor) answer { return a.policies(a.known[client]) }
}

var policySteps = []step{
	{"the manual group", each(func(a *actor) {
		var group domain.GroupID
		if err := a.DB.SQL().QueryRow("SELECT id FROM groups WHERE client_id = $1", a.known["A"]).Scan(&group); err != nil {
			a.T.Fatal(err)
		}
		a.known["Manual"] = group.UUID()
	}), done},
	{"a collection", collect("A", "Sales", ""), done},
	{"a policy of all", governs("Conduct", "", domain.TenantScope, "A", true), done},
	{"of the group", governs("Travel", "By land and sea", domain.GroupScope, "Manual", true), done},
	{"of the collection", governs("Discounts", "", domain.CollectionScope, "Sales", true), done},
	{"that nobody has to sign", governs("Advice", "", domain.TenantScope, "A", false), done},
	{"a member", join("A", "Sales", "Bob"), done},
	{"the list", policiesOf("A"), shows(
		fields{"id": "Conduct", "scope type": "tenant", "scope": "all of A", "description": "", "version": 1, "must sign": true, "renewal": 30, "audience": 2, "signed": 0, "percent": 0},
		fields{"id": "Travel", "scope type": "user_container", "scope": "all of Manual", "description": "By land and sea", "audience": 2},
		fields{"id": "Discounts", "scope type": "collection", "scope": "all of Sales", "audience": 1},
		fields{"id": "Advice", "must sign": false, "audience": "", "signed": "", "percent": ""})},

	{"Ada signs", hears(domain.PolicySigned, "user_id", "Ada", "policy_id", "Conduct", "version", 1), done},
	{"Bob signs another", hears(domain.PolicySigned, "user_id", "Bob", "policy_id", "Discounts", "version", 1), done},
	{"who signed", signers("A", "Conduct", "signed"), shows(fields{"id": "Ada", "name": "Ada King", "email": "ada@example.com", "signed": true})},
	{"who did not", signers("A", "Conduct", "unsigned"), shows(fields{"id": "Bob", "signed": false, "at": ""})},
	{"all", signers("A", "Conduct", "all"), shows(fields{"id": "Ada", "signed": true}, fields{"id": "Bob", "signed": false})},
	{"a bad filter", signers("A", "Conduct", "lapsed"), refuses(domain.InvalidRequest)},
	{"no policy", signers("A", "none", "all"), refuses(domain.NotFound)},
	{"another client's policy", signers("B", "Conduct", "all"), refuses(domain.NotFound)},
	{"a stranger's client", signers("theirs", "Conduct", "all"), refuses(domain.NotFound)},
	{"a stranger's list", policiesOf("theirs"), refuses(domain.NotFound)},

	{"a new version", hears(domain.PolicyPublished, "policy_id", "Conduct"), done},
	{"unsigns", signers("A", "Conduct", "signed"), shows()},
	{"the old version", hears(domain.PolicySigned, "user_id", "Bob", "policy_id", "Conduct", "version", 1), done},
	{"does not count", signers("A", "Conduct", "signed"), shows()},
	{"the new one", hears(domain.PolicySigned, "user_id", "Bob", "policy_id", "Conduct", "version", 2), done},
	{"does", signers("A", "Conduct", "signed"), shows(fields{"id": "Bob"})},
	{"29 days later", passes(29 * day), done},
	{"it holds", signers("A", "Conduct", "signed"), shows(fields{"id": "Bob"})},
	{"another day later", passes(day), done},
	{"it lapsed", signers("A", "Conduct", "unsigned"), shows(fields{"id": "Ada"}, fields{"id": "Bob", "at": ""})},
	{"signed again", hears(domain.PolicySigned, "user_id", "Bob", "policy_id", "Conduct", "version", 2), done},
	{"and valid again", signers("A", "Conduct", "signed"), shows(fields{"id": "Bob"})},

	{"Bob is inactive", func(a *actor) answer { return a.updateUser(a.known["Bob"], fields{"status": "inactive"}) }, done},
	{"an audience is active", signers("A", "Conduct", "all"), shows(fields{"id": "Ada"})},
	{"Bob is active", func(a *actor) answer { return a.updateUser(a.known["Bob"], fields{"status": "active"}) }, done},
	{"the collection is deleted", each(func(a *actor) {
		in := &api.DeleteCollectionInput{}
		a.scan(&in.Path.ClientID, "A")
		a.scan(&in.Path.CollectionID, "Sales")
		if _, err := op.Call(a.tenant.Ctx, &a.API.Set, api.DeleteCollection, in); err != nil {
			a.T.Fatal(err)
		}
	}), done},
	{"its policy has no audience", signers("A", "Discounts", "all"), shows()},
	{"a policy is archived", each(func(a *actor) {
		a.Exec("UPDATE policies SET archived_at = $2 WHERE id = $1", a.known["Travel"], a.Clock.Now())
	}), done},
	{"and absent", signers("A", "Travel", "all"), refuses(domain.NotFound)},
	{"the list in the end", policiesOf("A"), shows(
		fields{"id": "Conduct", "version": 2, "audience": 2, "signed": 1, "percent": 50},
		fields{"id": "Discounts", "scope": "all of Sales", "audience": 0, "signed": 0, "percent": 0},
		fields{"id": "Advice"})},
}

func policyViews(a *actor, x surface) map[string]answer {
	shown := map[string]answer{}
	if id, ok := a.known["A"]; ok {
		shown["policies"] = x.policies(id)
	}
	for _, policy := range []string{"Conduct", "Travel", "Discounts", "Advice"} {
		if id, ok := a.known[policy]; ok {
			for _, status := range domain.SignAll.Values() {
				shown[status+" of "+policy] = x.policyUsers(a.known["A"], id, status)
			}
		}
	}
	return shown
}
