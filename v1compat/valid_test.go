package v1compat

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/op"
)

// TestTranslatedInputsAreValid: an input is valid by the rules that v1 documents
// exactly when v2 takes what it is translated into. v2's rules alone are
// enforced; v1's are those of the document.
func TestTranslatedInputsAreValid(t *testing.T) {
	api := v2.New(nil, nil)
	rnd := rand.New(rand.NewPCG(9, 9))
	translated(t, rnd, "create-client", []string{"company_name"}, api.CreateClient, fromCreateClient)
	translated(t, rnd, "create-user",
		[]string{"email", "first_name", "last_name", "department", "job_title", "manager_email", "role", "preferred_language", "collection_id"},
		api.CreateUser, fromCreateUser)
	translated(t, rnd, "update-user", []string{"status", "preferred_language", "role"}, api.UpdateUser, fromUpdateUser)
}

func translated[V1, V2, Out any](t *testing.T, rnd *rand.Rand, name string, members []string, o *op.Op[V2, Out], to func(*V1) *V2) {
	t.Helper()
	var set op.Set
	path := ""
	for _, p := range o.Input().Path {
		path += "/:" + p.Name
	}
	v1 := op.Add(&set, op.Meta{ID: "v1", Method: "POST", Path: path, Scope: domain.Read, Since: op.V2_0, Status: 200, Summary: "v1"},
		func(context.Context, *V1) (*op.NoContent, error) { return &op.NoContent{}, nil })
	valid := 0
	for range 4000 {
		body := randomBody(rnd, members)
		in := v1.New()
		if err := v1.Input().Bind(in, op.Request{Path: func(string) string { return "1" }, Body: []byte(body), Lenient: true}); err != nil {
			continue // the same for both: nothing is translated
		}
		v1Err, v2Err := v1.Validate(in), o.Validate(to(in.(*V1)))
		if domain.IsCode(v2Err, domain.InvalidRequest) && strings.Contains(v2Err.Error(), "at least one field") {
			v2Err = nil // the one rule that no tag holds
		}
		if (v1Err == nil) != (v2Err == nil) {
			t.Fatalf("%s %s: v1 says %v, v2 %v", name, body, v1Err, v2Err)
		}
		if v1Err == nil {
			valid++
		}
	}
	if valid < 200 || valid > 3900 {
		t.Errorf("%s: %d of 4000 are valid", name, valid)
	}
}

// randomBody is a JSON object with some of the members, each with a value that
// some rule may dislike.
func randomBody(rnd *rand.Rand, members []string) string {
	body := map[string]any{}
	for _, name := range members {
		if rnd.IntN(3) > 0 {
			body[name] = randomValue(rnd, name)
		}
	}
	if rnd.IntN(4) == 0 {
		body["unknown"] = "x"
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func randomValue(rnd *rand.Rand, name string) any {
	if rnd.IntN(15) == 0 {
		return []any{nil, "", " ", true}[rnd.IntN(4)]
	}
	plain := strings.Repeat("é", []int{1, 20, 199, 200, 200, 200, 201, 499, 500, 501}[rnd.IntN(10)])
	switch {
	case name == "collection_id":
		return 1 + rnd.IntN(1<<31-1)
	case name == "role":
		return append(domain.Role("").Values(), "boss")[rnd.IntN(6)]
	case name == "status":
		return []string{"active", "inactive", "all"}[rnd.IntN(3)]
	case name == "preferred_language":
		return append(domain.Language("").Values(), "de")[rnd.IntN(4)]
	case strings.HasSuffix(name, "email") && rnd.IntN(6) > 0:
		return []string{"a@example.com", "A.B+c@Example.COM", strings.Repeat("a", 60) + "@" + strings.Repeat("b", 60) + ".example", "ü@example.com", "a@b", "a@@b.com"}[rnd.IntN(6)]
	}
	return plain
}
