package v1compat

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"partnerapi/domain"
	"partnerapi/v2/v2test"
)

// v2surface is version 2 as one key uses it.
type v2surface struct {
	*service
	key string
}

func (v v2surface) answer(r v2test.Response, of shape) answer {
	switch {
	case r.Status >= http.StatusBadRequest:
		return refused(r.Field("error.code"), r.Field("error.message"))
	case r.Status == http.StatusNoContent:
		return answer{objects: []fields{{}}}
	}
	body := r.JSON()
	objects, listed := body["data"].([]any)
	if !listed {
		objects = []any{body}
	}
	var a answer
	for _, object := range objects {
		a.objects = append(a.objects, plain(of.common(object.(fields), inV2, listed)))
	}
	return a
}

// plain puts a UUID instead of an id.
func plain(out fields) fields {
	text, _ := out["id"].(string)
	for _, read := range []func(string) (string, error){
		uuidIn[domain.ClientKind], uuidIn[domain.UserKind], uuidIn[domain.AdminKind], uuidIn[domain.CollectionKind], uuidIn[domain.PolicyKind],
		uuidIn[domain.ReportKind],
	} {
		if id, err := read(text); err == nil {
			out["id"] = id
		}
	}
	return out
}

func uuidIn[K domain.Kind](text string) (string, error) {
	id, err := domain.ParseID[K](text)
	return id.UUID(), err
}

// v2id is the id of an object by its UUID.
func v2id[K domain.Kind](v v2surface, text string) string {
	id, err := domain.ParseUUID[K](text)
	if err != nil {
		v.T.Fatal(err)
	}
	return id.String()
}

func (v v2surface) get(path string, of shape) answer { return v.answer(v.Get(path, v.key), of) }

func (v v2surface) post(path string, body fields, of shape) answer {
	return v.answer(v.Do("POST", path, v.key, body), of)
}

func (v v2surface) client(id string) string {
	return "/v2/clients/" + v2id[domain.ClientKind](v, id)
}

func (v v2surface) user(id string) string { return "/v2/users/" + v2id[domain.UserKind](v, id) }

// clientOf is the path of the client of a user, which v1 finds by itself; or
// what v2 answers where there is no such user.
func (v v2surface) clientOf(user string) (string, answer) {
	r := v.Get(v.user(user), v.key)
	if r.Status != http.StatusOK {
		return "", v.answer(r, nothing)
	}
	return fmt.Sprint("/v2/clients/", r.Field("client_id")), answer{}
}

func (v v2surface) partner() answer {
	body := v.Get("/v2/partner", v.key).Want(http.StatusOK).JSON()
	a := answer{objects: []fields{partnerShape.common(body, inV2, true)}}
	for _, admin := range body["admins"].([]any) {
		out := plain(adminShape.common(admin.(fields), inV2, true))
		out["role"] = map[any]string{"owner": "Administrator", "admin": "Administrator", "viewer": "User"}[out["role"]]
		a.objects = append(a.objects, out)
	}
	return a
}

func (v v2surface) clients() answer {
	return v.get("/v2/clients?limit=50&sort=created_at", clientShape)
}

func (v v2surface) createClient(name string) answer {
	return v.post("/v2/clients", fields{"name": name}, clientShape)
}

func (v v2surface) users(client, status string) answer {
	return v.get(v.client(client)+"/users?limit=50&status="+status, userShape)
}

func (v v2surface) createUser(client string, body fields) answer {
	own := fields{}
	for name, value := range body {
		if name == "collection" {
			name, value = "collection_ids", []string{v2id[domain.CollectionKind](v, value.(string))}
		}
		own[name] = value
	}
	return v.post(v.client(client)+"/users", own, userShape)
}

func (v v2surface) updateUser(user string, body fields) answer {
	return v.answer(v.Do("PATCH", v.user(user), v.key, body), nothing)
}

func (v v2surface) collections(client string) answer {
	return v.get(v.client(client)+"/collections", collectionShape)
}

func (v v2surface) createCollection(client string, body fields) answer {
	return v.post(v.client(client)+"/collections", body, collectionShape)
}

func (v v2surface) membersPath(client, collection string) string {
	return v.client(client) + "/collections/" + v2id[domain.CollectionKind](v, collection) + "/members"
}

func (v v2surface) members(client, collection string) answer {
	return v.get(v.membersPath(client, collection), memberShape)
}

// addMember adds, and takes the user out of wherever else it is a member: a
// move is several requests. A user whom v2 refuses as an item of the body is one
// who is not there in v1.
func (v v2surface) addMember(client, collection, user string) answer {
	r := v.Do("POST", v.membersPath(client, collection), v.key, fields{"user_ids": []string{v2id[domain.UserKind](v, user)}})
	if message, _ := r.Field("error.message").(string); strings.HasPrefix(message, "user_ids[0] is not a user of this client") {
		return absent("user")
	}
	added := v.answer(r, nothing)
	if added.code != "" {
		return added
	}
	for _, other := range v.collections(client).objects {
		isIn := func(member fields) bool { return member["id"] == user }
		id := other["id"].(string)
		if id == collection || !slices.ContainsFunc(v.members(client, id).objects, isIn) {
			continue
		}
		if left := v.removeMember(client, id, user); left.code != "" {
			return left
		}
	}
	return added
}

func (v v2surface) removeMember(client, collection, user string) answer {
	return v.answer(v.Do("DELETE", v.membersPath(client, collection)+"/"+v2id[domain.UserKind](v, user), v.key, nil), nothing)
}

// policies names the scopes by v1's numbers: that of a deleted collection can
// be found from its id, and not the other way.
func (v v2surface) policies(client string) answer {
	a := v.get(v.client(client)+"/policies", policyShape)
	for _, policy := range a.objects {
		id := plain(fields{"id": policy["scope"]})["id"].(string)
		if group, err := uuidIn[domain.GroupKind](id); err == nil {
			id = group
		}
		policy["scope"] = fmt.Sprint(policy["scope type"], " ", v.numberFor(scopeKinds[policy["scope type"]], id))
	}
	return a
}

func (v v2surface) policyUsers(client, policy, status string) answer {
	return v.get(v.client(client)+"/policies/"+v2id[domain.PolicyKind](v, policy)+"/users?status="+status, policyUserShape)
}

func (v v2surface) exposures(client, from, through string) answer {
	query := url.Values{}
	if from != "" {
		if _, err := domain.ParseDate(from); err == nil {
			from += "T00:00:00Z"
		}
		query.Set("since", from)
	}
	if through != "" {
		query.Set("until", after(through))
	}
	return v.get(v.client(client)+"/dark-web/users?"+query.Encode(), exposureShape)
}

// after is the first moment that is not within a period through a time or a
// day: v2's periods are without their end.
func after(through string) string {
	if day, err := domain.ParseDate(through); err == nil {
		return day.AddDays(1).Time().Format(time.RFC3339)
	}
	at, err := time.Parse(time.RFC3339Nano, through)
	if err != nil {
		return through
	}
	return at.Add(time.Microsecond).Format(time.RFC3339Nano)
}

func (v v2surface) reports(client string) answer {
	a := v.get(v.client(client)+"/reports", reportShape)
	slices.Reverse(a.objects) // v2 lists the newest first
	return v.linked(a)
}

func (v v2surface) download(client, report string) answer {
	return v.linked(v.get(v.client(client)+"/reports/"+v2id[domain.ReportKind](v, report), reportShape))
}

// linked says instead of links that there are some.
func (v v2surface) linked(a answer) answer {
	for _, report := range a.objects {
		link, _ := report["link"].(string)
		report["link"] = link != ""
	}
	return a
}

func (v v2surface) training(user string) answer {
	r := v.Get(v.user(user)+"/training", v.key)
	if r.Status != http.StatusOK {
		return v.answer(r, trainingShape)
	}
	var a answer
	for _, row := range r.Field("data").([]any) {
		course := row.(fields)
		course["completed"] = course["status"] == string(domain.TrainingCompleted)
		a.objects = append(a.objects, trainingShape.common(course, inV2, true))
	}
	return a
}

func (v v2surface) send(user, template, at string) answer {
	client, refusal := v.clientOf(user)
	if client == "" {
		return refusal
	}
	body := fields{"user_ids": []string{v2id[domain.UserKind](v, user)}, "template_id": v2id[domain.TemplateKind](v, template)}
	if at != "" {
		body["send_at"] = at
	}
	r := v.Do("POST", client+"/phishing/sends", v.key, body)
	if r.Status != http.StatusAccepted {
		return v.answer(r, sendShape)
	}
	return answer{objects: []fields{sendShape.common(r.Field("sends").([]any)[0].(fields), inV2, true)}}
}

// results puts v2's list, by creation and with what is not sent yet, in v1's
// order, and says how far each mail got in v1's three words.
func (v v2surface) results(user string) answer {
	client, refusal := v.clientOf(user)
	if client == "" {
		return refusal
	}
	r := v.Get(client+"/phishing/results?user_id="+v2id[domain.UserKind](v, user), v.key).Want(http.StatusOK)
	var sent []fields
	for _, row := range r.Field("data").([]any) {
		if result := row.(fields); result["sent_at"] != nil {
			sent = append(sent, result)
		}
	}
	slices.SortFunc(sent, func(a, b fields) int {
		return -cmp.Or(strings.Compare(a["sent_at"].(string), b["sent_at"].(string)), strings.Compare(a["result_id"].(string), b["result_id"].(string)))
	})
	var a answer
	for _, result := range sent {
		inWords(result)
		a.objects = append(a.objects, resultShape.common(result, inV2, true))
	}
	return a
}

// inWords says how far a mail got in v1's three words, and since when.
func inWords(result fields) {
	words := map[any]string{"sent": "Sent", "opened": "Opened", "attachment_opened": "Clicked", "clicked": "Clicked", "credentials_submitted": "Clicked"}
	result["status_date"] = result[fmt.Sprint(result["status"], "_at")]
	result["status"] = words[result["status"]]
}

func (v v2surface) emails(user string, types []string, start string) answer {
	if types == nil {
		types = MessageType("").Values()
	}
	query := url.Values{"message_types": {strings.Join(types, ",")}}
	if start == "" {
		query.Set("since", v.Clock.Now().AddDate(0, 0, -30).Format(time.RFC3339Nano))
	} else {
		query.Set("since", start)
		if from, err := time.Parse(time.RFC3339Nano, start); err == nil {
			query.Set("until", from.AddDate(0, 0, 30).Format(time.RFC3339Nano))
		}
	}
	return v.get(v.user(user)+"/emails?"+query.Encode(), emailShape)
}
