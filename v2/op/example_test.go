package op_test

import (
	"context"
	"fmt"

	"partnerapi/domain"
	"partnerapi/v2/op"
)

// greeting is the input of an operation: its path, its query and its body.
type greeting struct {
	Path struct {
		ID domain.ClientID `path:"client_id"`
	}
	Query struct {
		Limit int `query:"limit" default:"50"`
	}
}

// An operation is declared once; its route, document, tool and checks follow from that.
func ExampleAdd() {
	set := &op.Set{}
	op.Add(set, op.Meta{
		ID: "clients.greet", Method: "GET", Path: "/clients/:client_id/greeting", Scope: domain.Read,
		Since: op.V2_0, Status: 200, Summary: "Greet a client",
	}, func(context.Context, *greeting) (*struct{}, error) { return &struct{}{}, nil })
	o := set.All()[0]
	fmt.Println(o.Meta().ID, o.Meta().Resource(), op.Braced(o.Meta().Path))
	// Output: clients.greet clients /clients/{client_id}/greeting
}

// The target of an input is what a request has to be to bind to it.
func ExampleTarget() {
	set := &op.Set{}
	op.Add(set, op.Meta{
		ID: "clients.greet", Method: "GET", Path: "/clients/:client_id/greeting", Scope: domain.Read,
		Since: op.V2_0, Status: 200, Summary: "Greet a client",
	}, func(context.Context, *greeting) (*struct{}, error) { return &struct{}{}, nil })
	in := set.All()[0].New().(*greeting)
	in.Path.ID, _ = domain.ParseID[domain.ClientKind]("cli_01h455vb4pex5vsknk084sn02q")
	in.Query.Limit = 20
	fmt.Println(op.Target(set.All()[0], in))
	// Output: /clients/cli_01h455vb4pex5vsknk084sn02q/greeting?limit=20 <nil>
}

// A member of a PATCH is absent, null or a value; null is for what may have none.
func ExampleOptional() {
	name, industry := "Acme", new("Retail")
	fmt.Println(domain.Apply(domain.Optional[string]{}, &name), name)
	fmt.Println(domain.Apply(domain.Give("Acme Ltd"), &name), name)
	fmt.Println(domain.ApplyNullable(domain.Give[*string](nil), &industry), industry == nil)
	// Output:
	// false Acme
	// true Acme Ltd
	// true true
}

// A release is named as the flag of serve has it.
func ExampleParseRelease() {
	release, err := op.ParseRelease("2.1")
	fmt.Println(release == op.V2_1, release < op.Latest, err)
	// Output: true true <nil>
}
