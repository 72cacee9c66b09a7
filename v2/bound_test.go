package v2_test

import (
	"slices"
	"strings"
	"testing"

	"partnerapi/domain"
	v2 "partnerapi/v2"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
)

// TestEveryDeclarationIsBound: New binds every operation that is declared, in the order
// of the table; one that is declared and not bound is named.
func TestEveryDeclarationIsBound(t *testing.T) {
	t.Parallel()
	set := &v2.New(nil, []byte("secret")).Set
	for i, o := range set.All() {
		if want := api.Operations[i].Meta().ID; o.Meta().ID != want {
			t.Errorf("operation %d is %s, not %s", i, o.Meta().ID, want)
		}
	}
	unbound := op.Declare[struct{}, op.NoContent](op.Meta{
		ID: "users.greet", Method: "POST", Path: "/greet", Scope: domain.Write, Since: op.V2_0, Status: 204, Summary: "Greet",
	})
	err := set.Complete(append(slices.Clone(api.Operations), unbound))
	if err == nil || !strings.Contains(err.Error(), "users.greet is declared but not bound") {
		t.Errorf("an operation that nothing is bound to: %v", err)
	}
	err = set.Complete(api.Operations[1:])
	if err == nil || !strings.Contains(err.Error(), "clients.list is bound but not declared") {
		t.Errorf("an operation that is in no table: %v", err)
	}
}
