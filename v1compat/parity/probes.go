package parity

import (
	"context"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"partnerapi/domain"
	"partnerapi/v1compat"
)

// unusedNumber is no object's number: the registry gives it last of all.
const unusedNumber = "2147483647"

// unusedID is no object's id.
var unusedID = [16]byte{6: 0x70, 8: 0x80}

// probe is a request that both versions are to refuse, or to answer in a certain way.
type probe struct {
	route  string
	v1     request
	status int // of v1
	// v2 is empty where v2 has no such request.
	v2       string
	v2Status int
	noKey    bool
}

// probes are v1's documented errors (decisions 5.2 to 5.5), and what v2 answers.
func (r *run) probes(clients []entry) []probe {
	foreign := object{unusedNumber, domain.ClientID(unusedID).String()}
	wrong := object{"007", "007"}
	user := object{domain.UserID(unusedID).UUID(), domain.UserID(unusedID).String()}
	list := []probe{
		{route: "partner", v1: get("/v1/partner"), status: 401, v2: "/v2/partner", v2Status: 401, noKey: true},
		{route: "clients", v1: get("/v1/clients?limit=x"), status: 400, v2: "/v2/clients?limit=x", v2Status: 400},
		{route: "clients", v1: get("/v1/clients?offset=-1"), status: 400},
		{route: "clients", v1: get("/v1/clients?ids=x"), status: 400},
		{route: "training", v1: get("/v1/users/nobody/training"), status: 404, v2: "/v2/users/nobody/training", v2Status: 404},
		{route: "sentemails", v1: post("/v1/sentemails", `{}`), status: 400},
		{route: "sentemails", v1: post("/v1/sentemails", `{"user_infima_id":"nobody"}`), status: 400},
		{route: "sentemails", v1: post("/v1/sentemails", `{"user_infima_id":"`+user.v1+`"}`), status: 404,
			v2: "/v2/users/" + user.v2 + "/emails", v2Status: 404},
	}
	for _, route := range []string{"users", "collections", "policies", "exposures", "reports"} {
		none, malformed := r.list(route, object{}, parents{"client": foreign}), r.list(route, object{}, parents{"client": wrong})
		list = append(list,
			probe{route: route, v1: get(none.v1), status: 403, v2: none.v2, v2Status: 404},
			probe{route: route, v1: get(malformed.v1), status: 400, v2: malformed.v2, v2Status: 404})
	}
	l := r.list("training", object{}, parents{"user": user})
	list = append(list,
		probe{route: "training", v1: get(l.v1), status: 404, v2: l.v2, v2Status: 404},
		probe{route: "phishing", v1: get("/v1/users/" + user.v1 + "/phishing"), status: 404})
	if len(clients) > 0 {
		list = append(list, r.probesOf(clients[0].parents)...)
	}
	return list
}

// probesOf are the errors that need a client.
func (r *run) probesOf(c parents) []probe {
	of := c.with("collection", object{unusedNumber, domain.CollectionID(unusedID).String()}).
		with("policy", object{unusedNumber, domain.PolicyID(unusedID).String()}).
		with("report", object{unusedNumber, domain.ReportID(unusedID).String()})
	var list []probe
	for _, route := range []string{"collection-members", "policy-users", "download-report"} {
		l := r.list(route, object{}, of)
		list = append(list, probe{route: route, v1: get(l.v1), status: 404, v2: l.v2, v2Status: 404})
	}
	l := r.list("users", object{"status=nobody", "status=nobody"}, c)
	return append(list, probe{route: "users", v1: get(l.v1), status: 400, v2: l.v2, v2Status: 400})
}

func post(path, body string) request { return request{method: http.MethodPost, path: path, body: body} }

// probe compares how both sides refuse what they are to refuse.
func (r *run) probe(ctx context.Context, clients []entry) error {
	for _, p := range r.probes(clients) {
		p.v1.noKey = p.noKey
		operation := operationOf(r.readings[p.route])
		first := r.service
		if r.old != nil {
			first = r.old
		}
		a, err := first.do(ctx, p.v1)
		if err != nil {
			return err
		}
		if r.old != nil {
			b, err := r.service.do(ctx, p.v1)
			if err != nil {
				return err
			}
			r.compareErrors(operation, a, b)
			continue
		}
		r.refused(operation, a, p.status)
		if p.v2 == "" {
			continue
		}
		b, err := r.service.do(ctx, request{method: http.MethodGet, path: p.v2, noKey: p.noKey})
		if err != nil {
			return err
		}
		r.refused(operation, b, p.v2Status)
	}
	return nil
}

// failure is what an error of either version says.
type failure struct {
	status          int // of v1's body; 0 for v2
	code, requestID string
	message         string // empty where it has none
}

// failureOf reads an error.
func failureOf(a answer) failure {
	var v1 v1compat.Error
	var v2 struct {
		Error struct {
			Code      string `json:"code"`
			Message   string `json:"message"`
			RequestID string `json:"request_id"`
		} `json:"error"`
	}
	if json.Unmarshal(a.body, &v2) == nil && v2.Error.Code != "" {
		return failure{code: v2.Error.Code, requestID: v2.Error.RequestID, message: v2.Error.Message}
	}
	if json.Unmarshal(a.body, &v1) != nil {
		return failure{}
	}
	return failure{status: v1.Status, code: string(v1.Error), requestID: v1.RequestID, message: v1.Message}
}

// message is what an error says.
func message(a answer) string {
	if said := failureOf(a).message; said != "" {
		return said
	}
	return fmt.Sprintf("%.100q", a.body)
}

// codes are the codes of the statuses that are probed.
var codes = map[int]string{400: "invalid_request", 401: "unauthorized", 403: "forbidden", 404: "not_found"}

// refused counts whether an answer is the error that it is to be.
func (r *run) refused(operation string, a answer, status int) {
	if !a.noKey {
		r.checkHeaders(operation, a)
	}
	f := failureOf(a)
	var v verdict
	check := func(name string, said, want jsontext.Value) {
		if string(said) == string(want) {
			v.equal++
			return
		}
		v.faults = append(v.faults, fault{name, said, want})
	}
	check("status", number(a.status), number(status))
	check("error", text(f.code), text(codes[status]))
	check("request_id", text(f.requestID), text(a.header.Get("X-Request-Id")))
	check("message", boolean(f.message != ""), boolean(true))
	if f.status != 0 {
		check("body.status", number(f.status), number(a.status))
	}
	r.report.count(operation, v, a)
}

// compareErrors compares the errors of two services' v1 by status and code.
func (r *run) compareErrors(operation string, old, new answer) {
	said, now := failureOf(old), failureOf(new)
	v := rules{tolerated: append([]string{"message", "request_id"}, r.Tolerate...)}.compare(
		errorValue(old.status, said), errorValue(new.status, now))
	r.report.count(operation, v, old, new)
	r.compareHeaders(operation, old, new)
}

func errorValue(status int, f failure) jsontext.Value {
	return jsontext.Value(`{"status":` + string(number(status)) + `,"error":` + string(text(f.code)) + `}`)
}

// agree reports whether two answers that are no success say the same.
func (r *run) agree(v1, other answer) bool {
	if r.old == nil && v1.status == http.StatusForbidden && other.status == http.StatusNotFound {
		return true // a client beyond reach (decisions 5.2)
	}
	return min(v1.status, other.status) >= 400 && v1.status == other.status && failureOf(v1).code == failureOf(other).code
}
