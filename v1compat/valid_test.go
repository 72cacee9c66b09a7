package v1compat

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"partnerapi/domain"
	"partnerapi/domain/rule"
	"partnerapi/v2/op"
)

// TestTranslatedInputsAreValid: an input is valid by the rules that v1 documents
// exactly when v2 takes what it is translated into. v2's rules alone are
// enforced; v1's are those of the document.
func TestTranslatedInputsAreValid(t *testing.T) {
	t.Parallel()
	inputs := &randomInputs{T: t, Rand: rand.New(rand.NewPCG(9, 9))}
	for _, r := range Declare(Config{}).routes {
		if !r.Additive && (r.input.Body != nil || len(r.input.Query) > 0) {
			inputs.tryRoute(r)
		}
	}
}

// randomInputs makes inputs of routes.
type randomInputs struct {
	*testing.T
	*rand.Rand
}

// tryRoute tries a route's translator.
func (i *randomInputs) tryRoute(r *route) {
	i.Helper()
	valid := 0
	for range 4000 {
		req := i.request(r.input)
		in := r.input.New()
		if err := r.input.Bind(in, req); err != nil {
			continue // the same for both: nothing is translated
		}
		v1Err, v2Err := r.input.Validate(in), r.operation.Validate(r.toV2(in))
		if domain.IsCode(v2Err, domain.InvalidRequest) && strings.Contains(v2Err.Error(), "at least one field") {
			v2Err = nil // the one rule that no tag holds
		}
		if (v1Err == nil) != (v2Err == nil) {
			i.Fatalf("%s %s?%s: v1 says %v, v2 %v", r.ID, req.Body, req.Query.Encode(), v1Err, v2Err)
		}
		if v1Err == nil {
			valid++
		}
	}
	if valid < 200 || valid > 3900 {
		i.Errorf("%s: %d of 4000 are valid", r.ID, valid)
	}
}

// request has some of an input's parameters and some of the members of its
// body, each with a value that some rule may dislike.
func (i *randomInputs) request(in *op.Input) op.Request {
	req := op.Request{Path: func(string) string { return "1" }, Query: url.Values{}, Lenient: true}
	for _, p := range in.Query {
		if i.IntN(3) > 0 {
			req.Query.Set(p.Name, fmt.Sprint(i.value(p.Name)))
		}
	}
	if in.Body == nil {
		return req
	}
	body := map[string]any{}
	for _, f := range reflect.VisibleFields(in.Body) {
		if i.IntN(5) > 0 {
			body[rule.WireName(f)] = i.value(rule.WireName(f))
		}
	}
	if i.IntN(4) == 0 {
		body["unknown"] = "x"
	}
	text, err := json.Marshal(body)
	if err != nil {
		i.Fatal(err)
	}
	req.Body = text
	return req
}

func (i *randomInputs) value(name string) any {
	if i.IntN(15) == 0 {
		return one[any](i, nil, "", " ", true)
	}
	some, ok := values[name]
	if !ok {
		i.Fatalf("the tests have no value of %s", name)
	}
	return some(i)
}

func one[V any](i *randomInputs, of ...V) V { return of[i.IntN(len(of))] }

// values are those of parameters and members by their names.
var values = map[string]func(*randomInputs) any{
	"company_name": someName, "first_name": someName, "last_name": someName, "name": someName,
	"department": someText, "job_title": someText,
	"description":   func(i *randomInputs) any { return strings.Repeat("é", one(i, 1, 1999, 2000, 2000, 2001)) },
	"email":         someEmail,
	"manager_email": someEmail,
	"email_address": someEmail,
	"role":          func(i *randomInputs) any { return one(i, append(domain.Role("").Values(), "boss")...) },
	"preferred_language": func(i *randomInputs) any {
		return one(i, append(domain.Language("").Values(), "de")...)
	},
	"status":            func(i *randomInputs) any { return one(i, "active", "inactive", "signed", "unsigned", "all", "gone") },
	"collection_id":     someNumber,
	"phishing_template": someNumber,
	"user_id":           someUser,
	"user_infima_id":    someUser,
	"message_types": func(i *randomInputs) any {
		return []domain.MessageType{domain.PhishingMail, domain.TrainingInvite, one(i, domain.PhishReminder, domain.CertificateMail, domain.WelcomeMail)}[i.IntN(3):]
	},
	"send_time": someMoment, "start_time": someMoment, "start": someMoment, "end": someMoment,
	"limit": func(i *randomInputs) any {
		return one(i, "-1", "0", "1", "50", "51", "200", "1000", "1001", "99999999999999999999", "x")
	},
	"offset": func(i *randomInputs) any { return one(i, "0", "1", "49", "2147483648", "99999999999999999999", "x") },
	"ids":    func(i *randomInputs) any { return one(i, "", "1", "1,2", "0", "-7,99999999999", "1,x") },
}

func someName(i *randomInputs) any {
	return strings.Repeat("é", one(i, 1, 20, 199, 200, 200, 200, 201))
}
func someText(i *randomInputs) any { return strings.Repeat("é", one(i, 1, 200, 499, 500, 500, 501)) }

func someEmail(i *randomInputs) any {
	return one(i, "a@example.com", "A.B+c@Example.COM", strings.Repeat("a", 60)+"@"+strings.Repeat("b", 60)+".example", "ü@example.com",
		"a@b", "a@@b.com", strings.Repeat("é", 200))
}

func someNumber(i *randomInputs) any { return 1 + i.IntN(1<<31-1) }

func someUser(i *randomInputs) any {
	return one(i, "0198000a-0000-7000-8000-000000000000", unusedID, unusedID, "0198000A-0000-7000-8000-000000000000", "usr_01jhz5q7rgec7t3vfd9w8x2k4m")
}

func someMoment(i *randomInputs) any {
	return one(i, "2026-06-15T12:00:00Z", "2026-06-15T14:00:00.123456789+02:00", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z", "2026-06-15", "9999-12-31", "soon")
}
