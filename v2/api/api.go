// Package api declares the operations of version 2 of the interface: what each takes
// and gives, its place, its scope, and what documents say of it. What they do is in
// package v2, which needs a database; who calls a service over HTTP by its operations
// (package client) needs this package alone.
//
// ListUsers is an operation, ListUsersInput is what it takes, and User an item of its
// pages.
package api

import "partnerapi/domain"

// ClientPath is the path of an operation on one client.
type ClientPath struct {
	ClientID domain.ClientID `path:"client_id" doc:"Opaque id of the client."`
}

// BudgetClient is the client that a call is charged to.
func (p ClientPath) BudgetClient() domain.ClientID { return p.ClientID }

// UserPath is the path of an operation on one user.
type UserPath struct {
	UserID domain.UserID `path:"user_id" doc:"Opaque id of the user."`
}
