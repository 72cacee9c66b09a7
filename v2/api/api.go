// Package api declares the operations of version 2 of the API: their inputs, outputs, paths, scopes and
// documentation. Package v2 implements them on a database; a program that calls the service over HTTP (package client)
// needs only this package.
//
// For example, ListUsers is an operation, ListUsersInput is its input, and User the type of the items of its pages.
package api

import "partnerapi/domain"

// ClientPath is the path of an operation on one client.
type ClientPath struct {
	ClientID domain.ClientID `path:"client_id" doc:"Opaque ID of the client."`
}

// BudgetClient returns the client whose budget the call counts against.
func (p ClientPath) BudgetClient() domain.ClientID { return p.ClientID }

// UserPath is the path of an operation on one user.
type UserPath struct {
	UserID domain.UserID `path:"user_id" doc:"Opaque ID of the user."`
}
