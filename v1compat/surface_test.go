package v1compat

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/idmap"
	"partnerapi/v2/v2test"
)

// answer is what a version says, in words that are neither's: an error's code
// and message without the name of the field, or objects with the fields that it
// shows.
type answer struct {
	code, message string
	objects       []map[string]any
}

// surface is a version of the interface as its callers use it. Clients and
// users are named by their UUIDs.
type surface interface {
	createClient(name string) answer
	createUser(client string, body map[string]any) answer
	updateUser(user string, body map[string]any) answer
	users(client, status string) answer
	clients() answer
	partner() answer
}

// refused is an error in the words of neither version.
func refused(code, message any) answer {
	text, _ := message.(string)
	if code == string(domain.InvalidRequest) {
		_, text, _ = strings.Cut(text, " ")
	}
	return answer{code: fmt.Sprint(code), message: text}
}

// renamed are an object's fields under the names that both versions share.
func renamed(object map[string]any, names map[string]string) map[string]any {
	out := map[string]any{}
	for name, common := range names {
		var value any = object
		for part := range strings.SplitSeq(name, ".") {
			inner, ok := value.(map[string]any)
			if !ok || inner[part] == nil {
				value = nil
				break
			}
			value = inner[part]
		}
		if _, there := object[strings.Split(name, ".")[0]]; !there {
			continue
		}
		if value == nil {
			value = "" // v1 has no null
		}
		out[common] = value
	}
	if text, ok := out["created"].(string); ok {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil || at.Location() != time.UTC {
			out["created"] = "not a time in UTC: " + text
		} else {
			out["created"] = at.Unix()
		}
	}
	return out
}

// v1 is version 1 as one key uses it.
type v1 struct {
	*service
	key string
}

var v1Client = map[string]string{
	"id": "id", "client_name": "name", "created_date": "created", "user_count": "active", "inactive_user_count": "inactive", "training_on_track_rate": "on track",
}

var v1User = map[string]string{
	"id": "id", "email": "email", "first_name": "first", "last_name": "last", "department": "department", "status": "status", "role": "role",
	"preferred_language": "language", "created_date": "created", "training_on_track": "on track", "next_course": "next", "courses_behind": "behind", "risk_score": "score",
}

func (v v1) answer(r v2test.Response, names map[string]string) answer {
	body := r.JSON()
	if r.Status >= http.StatusBadRequest {
		return refused(body["error"], body["message"])
	}
	objects := []any{body}
	if items, ok := body["items"].([]any); ok {
		objects = items
	}
	var a answer
	for _, object := range objects {
		out := renamed(object.(map[string]any), names)
		if n, ok := out["id"].(float64); ok {
			key := idmap.NumberKey{Kind: idmap.Client, Number: int64(n)}
			found, err := v.registry.IDs(v.T.Context(), []idmap.NumberKey{key})
			if err != nil {
				v.T.Fatal(err)
			}
			out["id"] = domain.ClientID(found[key]).UUID()
		}
		a.objects = append(a.objects, out)
	}
	return a
}

func (v v1) path(client string) string {
	id, err := domain.ParseUUID[domain.ClientKind](client)
	if err != nil {
		v.T.Fatal(err)
	}
	return "/v1/clients/" + v.number(id)
}

func (v v1) createClient(name string) answer {
	return v.answer(v.Do("POST", "/v1/clients", v.key, map[string]any{"company_name": name}), v1Client)
}

func (v v1) createUser(client string, body map[string]any) answer {
	return v.answer(v.Do("POST", v.path(client)+"/users", v.key, body), v1User)
}

func (v v1) updateUser(user string, body map[string]any) answer {
	return v.answer(v.Do("POST", "/v1/users/"+user, v.key, body), nil)
}

func (v v1) users(client, status string) answer {
	return v.answer(v.Get(v.path(client)+"/users?limit=50&status="+status, v.key), v1User)
}

func (v v1) clients() answer { return v.answer(v.Get("/v1/clients?limit=50", v.key), v1Client) }

func (v v1) partner() answer {
	body := v.Get("/v1/partner", v.key).Want(http.StatusOK).JSON()
	a := answer{objects: []map[string]any{renamed(body, map[string]string{"partner_name": "name", "created_date": "created"})}}
	for _, admin := range body["admins"].([]any) {
		object := admin.(map[string]any)
		out := renamed(object, map[string]string{"id": "id", "email": "email", "role": "role", "created_date": "created"})
		out["name"] = strings.TrimSpace(fmt.Sprint(object["first_name"], " ", object["last_name"]))
		a.objects = append(a.objects, out)
	}
	return a
}

// v2surface is version 2 as one key uses it.
type v2surface struct {
	*service
	key string
}

var v2Client = map[string]string{
	"id": "id", "name": "name", "created_at": "created", "users.active": "active", "users.inactive": "inactive", "training.on_track_rate": "on track",
}

var v2User = map[string]string{
	"id": "id", "email": "email", "first_name": "first", "last_name": "last", "department": "department", "status": "status", "role": "role",
	"preferred_language": "language", "created_at": "created", "training.on_track": "on track", "training.next_course.title": "next",
	"training.overdue_count": "behind", "risk.score": "score",
}

func (v v2surface) answer(r v2test.Response, names map[string]string) answer {
	if r.Status >= http.StatusBadRequest {
		return refused(r.Field("error.code"), r.Field("error.message"))
	}
	body := r.JSON()
	objects := []any{body}
	if data, ok := body["data"].([]any); ok {
		objects = data
	}
	var a answer
	for _, object := range objects {
		a.objects = append(a.objects, v.plain(renamed(object.(map[string]any), names)))
	}
	return a
}

// plain puts a UUID in the place of an id.
func (v v2surface) plain(out map[string]any) map[string]any {
	text, _ := out["id"].(string)
	if id, err := domain.ParseID[domain.ClientKind](text); err == nil {
		out["id"] = id.UUID()
	} else if id, err := domain.ParseID[domain.UserKind](text); err == nil {
		out["id"] = id.UUID()
	} else if id, err := domain.ParseID[domain.AdminKind](text); err == nil {
		out["id"] = id.UUID()
	}
	return out
}

func v2id[K domain.Kind](v v2surface, text string) string {
	id, err := domain.ParseUUID[K](text)
	if err != nil {
		v.T.Fatal(err)
	}
	return id.String()
}

func (v v2surface) createClient(name string) answer {
	return v.answer(v.Do("POST", "/v2/clients", v.key, map[string]any{"name": name}), v2Client)
}

// createUser takes v1's body: collections are a list of ids in v2.
func (v v2surface) createUser(client string, body map[string]any) answer {
	own := map[string]any{}
	for name, value := range body {
		own[name] = value
	}
	if n, ok := body["collection_id"].(int); ok {
		key := idmap.NumberKey{Kind: idmap.Collection, Number: int64(n)}
		found, err := v.registry.IDs(v.T.Context(), []idmap.NumberKey{key})
		if err != nil {
			v.T.Fatal(err)
		}
		delete(own, "collection_id")
		own["collection_ids"] = []string{domain.CollectionID(found[key]).String()}
	}
	return v.answer(v.Do("POST", "/v2/clients/"+v2id[domain.ClientKind](v, client)+"/users", v.key, own), v2User)
}

func (v v2surface) updateUser(user string, body map[string]any) answer {
	return v.answer(v.Do("PATCH", "/v2/users/"+v2id[domain.UserKind](v, user), v.key, body), nil)
}

func (v v2surface) users(client, status string) answer {
	return v.answer(v.Get("/v2/clients/"+v2id[domain.ClientKind](v, client)+"/users?limit=50&status="+status, v.key), v2User)
}

func (v v2surface) clients() answer {
	return v.answer(v.Get("/v2/clients?limit=50&sort=created_at", v.key), v2Client)
}

func (v v2surface) partner() answer {
	body := v.Get("/v2/partner", v.key).Want(http.StatusOK).JSON()
	a := answer{objects: []map[string]any{renamed(body, map[string]string{"name": "name", "created_at": "created"})}}
	for _, admin := range body["admins"].([]any) {
		out := v.plain(renamed(admin.(map[string]any), map[string]string{"id": "id", "email": "email", "role": "role", "name": "name", "created_at": "created"}))
		out["role"] = map[any]string{"owner": "Administrator", "admin": "Administrator", "viewer": "User"}[out["role"]]
		a.objects = append(a.objects, out)
	}
	return a
}

// integer is the number of an object as bodies hold it.
func (s *service) integer(kind idmap.Kind, id idmap.UUID) int {
	n, err := strconv.Atoi(s.numberOf(kind, id))
	if err != nil {
		s.T.Fatal(err)
	}
	return n
}
