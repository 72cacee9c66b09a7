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

// v1 is version 1 as one key uses it.
type v1 struct {
	*service
	key string
}

func (v v1) answer(r v2test.Response, of shape) answer {
	body := r.JSON()
	switch {
	case r.Status >= http.StatusBadRequest && body["message"] == noClient.Message:
		return absent("client") // v1 says that the key has no access to it (decisions 5.2)
	case r.Status >= http.StatusBadRequest:
		return refused(body["error"], body["message"])
	}
	objects, listed := body["items"].([]any)
	if !listed {
		objects = []any{body}
	}
	var a answer
	for _, object := range objects {
		out := of.common(object.(fields), inV1, listed)
		if n, ok := out["id"].(float64); ok {
			out["id"] = v.uuid(of.kind, int64(n))
		}
		a.objects = append(a.objects, out)
	}
	return a
}

// uuid is the UUID of the object with a number.
func (v v1) uuid(kind idmap.Kind, number int64) string {
	key := idmap.NumberKey{Kind: kind, Number: number}
	found, _, err := v.registry.IDs(v.T.Context(), []idmap.NumberKey{key})
	if err != nil {
		v.T.Fatal(err)
	}
	return domain.ClientID(found[key]).UUID()
}

// get also follows the link to the successor.
func (v v1) get(path string, of shape) answer {
	r := v.Get(path, v.key)
	v.follow(r, of)
	return v.answer(r, of)
}

func (v v1) post(path string, body fields, of shape) answer {
	return v.answer(v.Do("POST", path, v.key, body), of)
}

func (v v1) client(id string) string { return "/v1/clients/" + v.numberFor(idmap.Client, id) }

func (v v1) partner() answer {
	r := v.Get("/v1/partner", v.key).Want(http.StatusOK)
	v.follow(r, partnerShape)
	body := r.JSON()
	a := answer{objects: []fields{partnerShape.common(body, inV1, true)}}
	for _, object := range body["admins"].([]any) {
		admin := object.(fields)
		admin["name"] = strings.TrimSpace(fmt.Sprint(admin["first_name"], " ", admin["last_name"]))
		a.objects = append(a.objects, adminShape.common(admin, inV1, true))
	}
	return a
}

func (v v1) clients() answer { return v.get("/v1/clients?limit=50", clientShape) }

func (v v1) createClient(name string) answer {
	return v.post("/v1/clients", fields{"company_name": name}, clientShape)
}

func (v v1) users(client, status string) answer {
	return v.get(v.client(client)+"/users?limit=50&status="+status, userShape)
}

func (v v1) createUser(client string, body fields) answer {
	own := fields{}
	for name, value := range body {
		if name == "collection" {
			name, value = "collection_id", json.Number(v.numberFor(idmap.Collection, value.(string)))
		}
		own[name] = value
	}
	return v.post(v.client(client)+"/users", own, userShape)
}

func (v v1) updateUser(user string, body fields) answer {
	return v.post("/v1/users/"+user, body, nothing)
}

func (v v1) collections(client string) answer {
	return v.get(v.client(client)+"/collections", collectionShape)
}

func (v v1) createCollection(client string, body fields) answer {
	return v.post(v.client(client)+"/collections", body, collectionShape)
}

func (v v1) membersPath(client, collection string) string {
	return v.client(client) + "/collections/" + v.numberFor(idmap.Collection, collection) + "/members"
}

func (v v1) members(client, collection string) answer {
	return v.get(v.membersPath(client, collection), memberShape)
}

func (v v1) addMember(client, collection, user string) answer {
	return v.post(v.membersPath(client, collection), fields{"user_infima_id": user}, nothing)
}

func (v v1) removeMember(client, collection, user string) answer {
	return v.answer(v.Do("DELETE", v.membersPath(client, collection)+"/"+user, v.key, nil), nothing)
}

func (v v1) policies(client string) answer {
	a := v.get(v.client(client)+"/policies", policyShape)
	for _, policy := range a.objects {
		policy["scope"] = fmt.Sprint(policy["scope type"], " ", policy["scope"])
	}
	return a
}

func (v v1) policyUsers(client, policy, status string) answer {
	return v.get(v.client(client)+"/policies/"+v.numberFor(idmap.Policy, policy)+"/users?status="+status, policyUserShape)
}

func (v v1) exposures(client, from, through string) answer {
	query := url.Values{}
	for name, text := range map[string]string{"start": from, "end": through} {
		if text != "" {
			query.Set(name, text)
		}
	}
	return v.get(v.client(client)+"/darkweb/exposures?"+query.Encode(), exposureShape)
}

func (v v1) reports(client string) answer {
	return v.reportsAt(v.client(client) + "/reports?limit=50")
}

func (v v1) download(client, report string) answer {
	return v.reportsAt(v.client(client) + "/reports/" + v.numberFor(idmap.Report, report))
}

// reportsAt are the reports of a page, whose numbers are texts.
func (v v1) reportsAt(path string) answer {
	a := v.get(path, reportShape)
	for _, report := range a.objects {
		number, err := strconv.ParseInt(report["id"].(string), 10, 64)
		if err != nil {
			v.T.Fatal(err)
		}
		report["id"], report["link"] = v.uuid(idmap.Report, number), report["link"] != ""
	}
	return a
}

func (v v1) training(user string) answer {
	return v.get("/v1/users/"+user+"/training?limit=50", trainingShape)
}

// send reads the time off the text, which is all that v1 says.
func (v v1) send(user, template, at string) answer {
	body := fields{"user_id": user, "phishing_template": json.Number(v.numberFor(idmap.Template, template))}
	if at != "" {
		body["send_time"] = at
	}
	r := v.Do("POST", "/v1/sendphishing", v.key, body)
	if r.Status != http.StatusOK {
		return v.answer(r, sendShape)
	}
	_, text, _ := strings.Cut(r.Field("message").(string), "scheduled for ")
	return answer{objects: []fields{sendShape.common(fields{"at": strings.TrimSuffix(text, ".")}, inV1, true)}}
}

func (v v1) results(user string) answer {
	return v.get("/v1/users/"+user+"/phishing?limit=50", resultShape)
}

func (v v1) emails(user string, types []string, start string) answer {
	body := fields{"user_infima_id": user}
	if types != nil {
		body["message_types"] = types
	}
	if start != "" {
		body["start_time"] = start
	}
	r := v.Do("POST", "/v1/sentemails", v.key, body)
	v.follow(r, emailShape)
	return v.answer(r, emailShape)
}
