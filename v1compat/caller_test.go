package v1compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

type fields = map[string]any

// answer is a refusal, or the objects of a page; of another answer it is the one.
type answer struct {
	code    domain.Code
	objects []fields
}

// idFields are the members of v1's objects that are ids.
var idFields = []string{"id", "user_infima_id", "report_id", "scope_id"}

// unusedID is the UUID of no object, and unnumbered the number of none.
const (
	unusedID   = "01980000-0000-7000-8000-000000000000"
	unnumbered = "2147483647"
)

func answerOf(r v2test.Response) (a answer) {
	body := r.JSON()
	if r.Status >= http.StatusBadRequest {
		return answer{code: domain.Code(fmt.Sprint(body["error"]))}
	}
	items, listed := body["items"].([]any)
	if !listed {
		items = []any{body}
	}
	for _, item := range items {
		a.objects = append(a.objects, item.(fields))
	}
	return a
}

// uuid is the UUID of an object that is known by its number.
func (c *caller) uuid(kind idmap.Kind, name string) idmap.UUID {
	c.T.Helper()
	number, err := strconv.ParseInt(c.known[name], 10, 64)
	if err != nil {
		c.T.Fatal(err)
	}
	key := idmap.NumberKey{Kind: kind, Number: number}
	found, _, err := c.registry.IDs(c.T.Context(), []idmap.NumberKey{key})
	if err != nil {
		c.T.Fatal(err)
	}
	return found[key]
}

// clientID is the id of a client.
func (c *caller) clientID(name string) domain.ClientID {
	return domain.ClientID(c.uuid(idmap.Client, name))
}

// userID is the id of a user.
func (c *caller) userID(name string) domain.UserID {
	c.T.Helper()
	id, err := domain.ParseUUID[domain.UserKind](c.known[name])
	if err != nil {
		c.T.Fatal(err)
	}
	return id
}

// get reads a route's objects, and follows the link to its successor.
func (c *caller) get(route, path string) answer {
	r := c.Get(path, c.tenant.Key)
	c.followLink(c.tenant.Key, c.route(route), r)
	return answerOf(r)
}

func (c *caller) do(method, path string, body any) answer {
	return answerOf(c.Do(method, path, c.tenant.Key, body))
}

func (c *caller) client(name string) string { return "/v1/clients/" + c.known[name] }

func (c *caller) createClient(name string) answer {
	return c.do("POST", "/v1/clients", fields{"company_name": name})
}

func (c *caller) users(client, status string) answer {
	return c.get("users", c.client(client)+"/users?limit=50&status="+status)
}

func (c *caller) createUser(client string, body fields) answer {
	return c.do("POST", c.client(client)+"/users", body)
}

func (c *caller) updateUser(user string, body fields) answer {
	return c.do("POST", "/v1/users/"+c.known[user], body)
}

func (c *caller) members(client, collection string) string {
	return c.client(client) + "/collections/" + c.known[collection] + "/members"
}

func (c *caller) exposures(client, start, end string) answer {
	query := url.Values{"start": {start}, "end": {end}}
	return c.get("exposures", c.client(client)+"/darkweb/exposures?"+query.Encode())
}

// send returns when the mail is sent, which v1 says in a text.
func (c *caller) send(user, template, at string) answer {
	body := fields{"user_id": c.known[user], "phishing_template": json.Number(c.known[template])}
	if at != "" {
		body["send_time"] = at
	}
	a := c.do("POST", "/v1/sendphishing", body)
	for _, object := range a.objects {
		_, text, _ := strings.Cut(object["message"].(string), "scheduled for ")
		object["at"] = strings.TrimSuffix(text, ".")
	}
	return a
}

func (c *caller) emails(user, start string, types []domain.MessageType) answer {
	body := fields{"user_infima_id": c.known[user]}
	if types != nil {
		body["message_types"] = types
	}
	if start != "" {
		body["start_time"] = start
	}
	r := c.Do("POST", "/v1/sentemails", c.tenant.Key, body)
	c.followLink(c.tenant.Key, c.route("sentemails"), r)
	return answerOf(r)
}
