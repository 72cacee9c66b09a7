package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"time"

	"partnerapi/client"
	"partnerapi/domain"
	"partnerapi/v2/api"
	"partnerapi/v2/op"
	"partnerapi/v2/op/openapi"
)

// sandbox is a service that answers each operation with its example, and every second page
// of a list with none.
func sandbox() *httptest.Server {
	mux := http.NewServeMux()
	for _, o := range api.Operations {
		mux.HandleFunc(o.Meta().Method+" /v2"+op.Braced(o.Meta().Path), func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("cursor") {
				fmt.Fprint(w, `{"data":[],"page":{"next_cursor":null,"has_more":false}}`)
				return
			}
			text, _ := fs.ReadFile(api.Examples, o.Meta().ID+".json")
			var example openapi.Example
			_ = json.Unmarshal(text, &example)
			w.WriteHeader(example.Status)
			_, _ = w.Write(example.Response)
		})
	}
	return httptest.NewServer(mux)
}

// An operation is called with its input, and answers with its output.
func ExampleCall() {
	service := sandbox()
	defer service.Close()
	c, err := client.New(client.Config{URL: service.URL, Key: "pk_…"})
	if err != nil {
		panic(err)
	}
	defer c.Close()

	in := &api.CreateUserInput{}
	in.Path.ClientID, _ = domain.ParseID[domain.ClientKind]("cli_01happrbtrefw90048ft35y9rf")
	in.Body.Email, in.Body.FirstName = "maria.keller@example.com", "Maria"
	user, err := client.Call(context.Background(), c, api.CreateUser, in)
	if err != nil {
		panic(err)
	}
	fmt.Println(user.ID, user.Email, user.Status)
	// Output: usr_01kv5je8g0e01r000000000000 maria.keller@example.com active
}

// A PATCH changes what is given; null clears what may have no value.
func ExampleCall_patch() {
	service := sandbox()
	defer service.Close()
	c, _ := client.New(client.Config{URL: service.URL, Key: "pk_…"})
	defer c.Close()

	in := &api.UpdateUserInput{}
	in.Path.UserID, _ = domain.ParseID[domain.UserKind]("usr_01k7ea2130efnvt5g4t7h9t183")
	in.Body.JobTitle = domain.Give(new("Head of Payroll"))
	in.Body.ManagerEmail = domain.Give[*string](nil)
	user, err := client.Call(context.Background(), c, api.UpdateUser, in)
	if err != nil {
		panic(err)
	}
	fmt.Println(*user.JobTitle, user.ManagerEmail == nil)
	// Output: Head of Payroll true
}

// A list is read to its end, page by page.
func ExampleItems() {
	service := sandbox()
	defer service.Close()
	c, _ := client.New(client.Config{URL: service.URL, Key: "pk_…"})
	defer c.Close()

	in := &api.ListClientsInput{}
	in.Query.Limit = 2
	for of, err := range client.Items(context.Background(), c, api.ListClients, in) {
		if err != nil {
			panic(err)
		}
		fmt.Println(of.Name, of.Risk.AverageScore)
	}
	// Output:
	// Larkspur Pharmacy 803
	// Duskwater Films 792
}

// The feed of events goes on after a cursor that is kept.
func ExampleFeed() {
	service := sandbox()
	defer service.Close()
	c, _ := client.New(client.Config{URL: service.URL, Key: "pk_…"})
	defer c.Close()

	in := &api.ListEventsInput{} // in.Query.Cursor is the one that was kept
	for page, err := range client.Feed(context.Background(), c, api.ListEvents, in, 0) {
		if err != nil {
			panic(err)
		}
		for _, event := range page.Data {
			var user api.UserDetail
			if err := event.Data.Into(&user); err != nil {
				panic(err)
			}
			fmt.Println(event.Type, user.Email)
		}
		break // and keep page.Page.NextCursor
	}
	// Output:
	// user.updated buford.bartell@hollowbrook-manufacturing.example
	// user.updated tiffany.gibson@hollowbrook-manufacturing.example
}

// What the service refuses is an Error, with the code and the fields that are wrong.
func ExampleError() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":{"code":"invalid_request","message":"limit must be between 1 and 500","request_id":"req_1",
			"fields":[{"field":"limit","message":"must be between 1 and 500"}]}}`)
	}))
	defer service.Close()
	c, _ := client.New(client.Config{URL: service.URL, Key: "pk_…"})
	defer c.Close()

	in := &api.ListClientsInput{}
	in.Query.Limit = 501
	_, err := client.Call(context.Background(), c, api.ListClients, in)
	fmt.Println(err)
	fmt.Println(domain.IsCode(err, domain.InvalidRequest))
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Status, refused.RequestID, refused.Fault.Fields)
	}
	// Output:
	// the service returned 400 limit must be between 1 and 500 (request req_1)
	// true
	// 400 req_1 [{limit must be between 1 and 500}]
}

// A Conflict names its cause: an existing object is no error for a program that creates or updates.
func ExampleError_conflict() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		fmt.Fprint(w, `{"error":{"code":"conflict","message":"a client with this name already exists","request_id":"req_1",
			"fields":[{"field":"name","message":"is in use by another client"}]}}`)
	}))
	defer service.Close()
	c, _ := client.New(client.Config{URL: service.URL, Key: "pk_…"})
	defer c.Close()

	in := &api.CreateClientInput{}
	in.Body.Name = "Northwind"
	_, err := client.Call(context.Background(), c, api.CreateClient, in)
	var refused *client.Error
	if errors.As(err, &refused) && refused.Fault.Code == domain.Conflict {
		for _, f := range refused.Fault.Fields {
			fmt.Println(f.Field, f.Message) // Idempotency-Key, if another request has used the key
		}
	}
	// Output:
	// name is in use by another client
}

// A receiver verifies a delivery before it reads it.
func ExampleVerify() {
	secret, body := "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g", []byte(`{"id":"evt_1","type":"user.updated"}`)
	h := http.Header{"X-Service-Signature": {"t=1781524800,v1=d8d73a108c742be4d4384f424c6052f976f74850c5d914b2ca4954b308a12658"}}
	fmt.Println(client.Verify(secret, h, body, time.Unix(1781524810, 0)))
	fmt.Println(client.Verify(secret, h, body, time.Unix(1781528400, 0)))
	fmt.Println(client.Verify(secret, h, append(body, ' '), time.Unix(1781524810, 0)))
	// Output:
	// <nil>
	// the delivery was signed more than 5m0s from now
	// the delivery is not signed with this secret
}
