// Package domain has the types and rules of the service: of partners, clients, users, their training and phishing
// simulations, and the other objects. It does no I/O and imports only the standard library, so that every other package
// can use it. Tags bun name the columns in the row types of package db that embed a type.
package domain
